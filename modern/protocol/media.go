package protocol

// The media types of messages over HTTP.
const (
	TypeJSON   = "application/json"
	TypeStream = "text/event-stream"
)
