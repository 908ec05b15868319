package spec

import "slices"

// A LogLevel is the protocol's name of a severity of RFC 5424. The empty LogLevel
// requests no messages.
//
// Spec: 2026-07-28, server/utilities/logging, Log Levels.
type LogLevel string

// LogWarning is the level of what the gateway itself has to say.
const LogWarning LogLevel = "warning"

// Most verbose first.
var logLevels = []LogLevel{
	"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency",
}

// Valid reports whether l is one of the eight severities.
func (l LogLevel) Valid() bool { return slices.Contains(logLevels, l) }

// Allows reports whether a client that has set l receives messages of severity m. A
// client that has set any level receives messages of unknown severities.
func (l LogLevel) Allows(m LogLevel) bool {
	if l == "" {
		return false
	}
	i := slices.Index(logLevels, m)
	return i < 0 || i >= slices.Index(logLevels, l)
}

// MoreVerbose returns the one of l and m that allows more messages.
func (l LogLevel) MoreVerbose(m LogLevel) LogLevel {
	switch {
	case l == "":
		return m
	case m == "" || l.Allows(m):
		return l
	}
	return m
}
