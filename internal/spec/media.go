package spec

// The media types of HTTP bodies.
const (
	TypeJSON   = "application/json"
	TypeStream = "text/event-stream"
)

// AcceptBoth is what a POST accepts. It is sent to the letter, since some servers compare
// it literally.
const AcceptBoth = TypeJSON + ", " + TypeStream
