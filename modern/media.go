package modern

// The media types of messages over HTTP.
const (
	typeJSON   = "application/json"
	typeStream = "text/event-stream"
)
