package spec

// The media types of HTTP bodies.
const (
	TypeJSON   = "application/json"
	TypeStream = "text/event-stream"
)

// AcceptBoth is the Accept header of a POST. Some servers compare it literally.
const AcceptBoth = TypeJSON + ", " + TypeStream
