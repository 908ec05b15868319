// Package reload answers one question: is anybody disturbed when the configuration of a
// running mcpbridge is reloaded, whose server did not change?
package reload
