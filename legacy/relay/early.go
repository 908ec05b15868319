package relay

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/link"
)

// passTimeout bounds the passing on of what came early; a client that reads nothing ends
// earlier.
const passTimeout = 5 * time.Second

// early is what the server has sent before its response to initialize. Its client gets it
// after that response.
type early struct {
	opening atomic.Pointer[link.Call] // initialize; nil before it is sent

	mu       sync.Mutex // guards the fields below; a leaf
	messages mcp.EarlyQueue[earlyMessage]
	told     bool // the log has heard of their limit
}

type earlyMessage struct {
	m    wire.Message
	from *upstream.Call
}

func (e *early) opens(c *link.Call) { e.opening.Store(c) }

// isOver reports whether the server has answered initialize.
func (e *early) isOver() bool {
	c := e.opening.Load()
	return c != nil && c.IsSettled()
}

// add keeps a message. It reports whether there was room, and if not whether this is the
// first.
func (e *early) add(m *wire.Message, from *upstream.Call) (fits, first bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.messages.Add(earlyMessage{*m, from}, len(m.Text)) {
		return true, false
	}
	first, e.told = !e.told, true
	return false, first
}

func (e *early) next() (earlyMessage, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.messages.Next()
}

// holdBack keeps what the server sent before its response to initialize, and reports
// whether that is still to come. It must not wait for the response, which comes by the
// same reader. A ping is answered here: some servers go on only then.
func (s *Session) holdBack(ctx context.Context, m *wire.Message, from *upstream.Call) bool {
	if s.early.isOver() {
		return false
	}
	if m.Kind() == wire.Request && m.Method == spec.MethodPing {
		s.link.SendLater(ctx, wire.AppendResult(nil, m.ID, []byte("{}"), nil))
		return true
	}
	if fits, first := s.early.add(m, from); !fits {
		s.refuseEarly(ctx, m, first)
	}
	return true
}

// refuseEarly drops what there is no room for. first says that it is the first.
func (s *Session) refuseEarly(ctx context.Context, m *wire.Message, first bool) {
	s.link.Drop("before initialize")
	if first {
		s.opts.Logger.Warn("messages of server dropped: it sent too many before it answered initialize", "limit", mcp.MaxEarly, "bytes", mcp.MaxEarlyBytes)
	}
	if m.Kind() == wire.Request {
		s.link.SendLater(ctx, wire.AppendError(nil, m.ID, wire.Errorf(spec.CodeInternal,
			"%d messages or %d bytes came before the answer to initialize, the limit; answer it first", mcp.MaxEarly, mcp.MaxEarlyBytes)))
	}
}

// passEarly hands on what was held back, in order.
func (s *Session) passEarly() {
	ctx, cancel := context.WithTimeout(context.Background(), passTimeout)
	defer cancel()
	for e, ok := s.early.next(); ok; e, ok = s.early.next() {
		s.pass(ctx, &e.m, e.from)
	}
}
