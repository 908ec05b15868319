package bridgetest

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
)

// Counts counts things by name. The zero Counts is ready for use. Safe for concurrent use.
type Counts struct {
	mu sync.Mutex
	n  map[string]int
}

// Add counts one.
func (c *Counts) Add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = make(map[string]int)
	}
	c.n[name]++
}

// Count returns how many there were.
func (c *Counts) Count(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[name]
}

// Logs is a [slog.Handler] that counts records by their message.
type Logs struct {
	slog.Handler
	Counts
}

// Enabled implements [slog.Handler].
func (l *Logs) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements [slog.Handler].
func (l *Logs) WithAttrs([]slog.Attr) slog.Handler { return l }

// Handle implements [slog.Handler].
func (l *Logs) Handle(_ context.Context, r slog.Record) error {
	l.Add(r.Message)
	return nil
}

// A Log is a log that a test reads. Safe for concurrent use.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns what was logged.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Logger returns what writes to the log.
func (l *Log) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
