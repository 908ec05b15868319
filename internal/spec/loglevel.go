package spec

import "slices"

// A LogLevel is a severity of RFC 5424 as the protocol spells it. The empty
// LogLevel asks for no messages.
//
// Spec: 2026-07-28, server/utilities/logging, Log Levels.
type LogLevel string

// Most verbose first.
var logLevels = []LogLevel{
	"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency",
}

// Valid reports whether l is one of the eight severities.
func (l LogLevel) Valid() bool { return slices.Contains(logLevels, l) }

// Allows reports whether a message of severity m is wanted by one who asked for
// l. A message of an unknown severity is wanted by whoever wants any.
func (l LogLevel) Allows(m LogLevel) bool {
	if l == "" {
		return false
	}
	i := slices.Index(logLevels, m)
	return i < 0 || i >= slices.Index(logLevels, l)
}

// MoreVerbose returns the one of l and m that lets more messages through.
func (l LogLevel) MoreVerbose(m LogLevel) LogLevel {
	switch {
	case l == "":
		return m
	case m == "" || l.Allows(m):
		return l
	}
	return m
}
