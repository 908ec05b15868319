package live

import (
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// Bounds of what Lines keep.
const (
	keptLines = 200      // of one server
	keptLine  = 1 << 10  // bytes of one line
	keptBytes = 64 << 10 // of one server
	keptAll   = 8 << 20  // bytes of all servers
)

// A Line is one that a server has written to its standard error.
type Line struct {
	Seq  uint64    `json:"seq"` // counts those of the server, from 1
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

// Lines keep the last ones that servers have written to their standard error. Secrets are hidden
// in them. Safe for concurrent use; the methods of a nil Lines keep nothing.
type Lines struct {
	secrets *redact.Redactor

	// mu guards the fields below.
	mu    sync.Mutex
	of    map[string]*tail
	bytes int // of all
}

// A tail has the last lines of a server, the oldest first.
type tail struct {
	lines []Line
	last  uint64
	bytes int
}

// NewLines returns Lines that have none. secrets are hidden in them; nil for none.
func NewLines(secrets *redact.Redactor) *Lines {
	return &Lines{secrets: secrets, of: make(map[string]*tail)}
}

// Add keeps a line of a server.
func (l *Lines) Add(server, text string) {
	if l == nil {
		return
	}
	text = redact.Cut(l.secrets.String(text), keptLine)
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.of[server]
	if t == nil {
		t = &tail{}
		l.of[server] = t
	}
	t.last++
	t.lines = append(t.lines, Line{t.last, time.Now(), text})
	t.bytes, l.bytes = t.bytes+len(text), l.bytes+len(text)
	for len(t.lines) > 0 && (len(t.lines) > keptLines || t.bytes > keptBytes || l.bytes > keptAll) {
		n := len(t.lines[0].Text)
		t.bytes, l.bytes = t.bytes-n, l.bytes-n
		t.lines[0] = Line{}
		t.lines = t.lines[1:]
	}
}

// After returns the lines of a server after the one with a number.
func (l *Lines) After(server string, seq uint64) []Line {
	if l == nil {
		return []Line{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	out := []Line{}
	if t := l.of[server]; t != nil {
		for _, one := range t.lines {
			if one.Seq > seq {
				out = append(out, one)
			}
		}
	}
	return out
}

// Keep forgets the lines of all servers but those that a configuration has.
func (l *Lines) Keep(has func(server string) bool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for server, t := range l.of {
		if !has(server) {
			l.bytes -= t.bytes
			delete(l.of, server)
		}
	}
}
