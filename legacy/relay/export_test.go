package relay

// MaxInputs is for tests of whole sessions.
const MaxInputs = maxInputs
