package mcp

import "slices"

// Bounds of an [EarlyQueue]. One message is queued whatever its size.
const (
	MaxEarly      = 1000
	MaxEarlyBytes = 1 << 20
)

// An EarlyQueue holds the messages that come during a handshake, in order. The zero value
// is ready to use. It is not safe for concurrent use.
type EarlyQueue[M any] struct {
	messages []earlyMessage[M] // oldest first
	bytes    int               // of all in messages
}

type earlyMessage[M any] struct {
	m    M
	size int
}

// Add adds a message of size bytes, and reports whether it fits.
func (q *EarlyQueue[M]) Add(m M, size int) bool {
	if len(q.messages) > 0 && (len(q.messages) >= MaxEarly || q.bytes+size > MaxEarlyBytes) {
		return false
	}
	q.messages = append(q.messages, earlyMessage[M]{m, size})
	q.bytes += size
	return true
}

// Next removes and returns the oldest message. It reports false if there is none.
func (q *EarlyQueue[M]) Next() (m M, ok bool) {
	if len(q.messages) == 0 {
		q.messages = nil
		return m, false
	}
	e := q.messages[0]
	q.messages[0] = earlyMessage[M]{}
	q.messages = q.messages[1:]
	q.bytes -= e.size
	return e.m, true
}

// Remove removes the oldest message for which is returns true. It reports false if there is
// none.
func (q *EarlyQueue[M]) Remove(is func(M) bool) bool {
	for i, e := range q.messages {
		if is(e.m) {
			q.bytes -= e.size
			q.messages = slices.Delete(q.messages, i, i+1)
			return true
		}
	}
	return false
}
