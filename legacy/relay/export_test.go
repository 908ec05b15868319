package relay

// For tests of whole sessions.
const (
	MaxInputs  = maxInputs
	MaxWaiting = maxWaiting
)
