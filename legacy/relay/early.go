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

// passTimeout bounds the time to forward the early messages, in case the client does not
// read.
const passTimeout = 5 * time.Second

// early contains the messages that the server sent before its response to initialize. The
// client gets them after that response.
type early struct {
	opening atomic.Pointer[link.Call] // initialize; nil before it is sent

	mu       sync.Mutex // guards the fields below; a leaf
	messages mcp.EarlyQueue[earlyMessage]
	told     bool // the log has the limit already
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

// add stores a message. It reports whether there was room, and if not, whether this was the
// first time.
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

// holdBack stores a message that the server sent before its response to initialize, and
// reports whether that is still to come. It must not wait for the response, because the
// same goroutine reads it. It answers a ping, because some servers wait for that.
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

// refuseEarly drops a message for which there is no room. first says that it is the first
// one.
func (s *Session) refuseEarly(ctx context.Context, m *wire.Message, first bool) {
	s.link.Drop("before initialize")
	if first {
		s.opts.Logger.Warn("messages of server dropped: it sent too many before it answered initialize", "limit", mcp.MaxEarly, "bytes", mcp.MaxEarlyBytes)
	}
	if m.Kind() == wire.Request {
		s.link.SendLater(ctx, wire.AppendError(nil, m.ID, wire.Errorf(spec.CodeInternal,
			"%d messages or %d bytes came before the response to initialize, the limit; respond to it first", mcp.MaxEarly, mcp.MaxEarlyBytes)))
	}
}

// passEarly forwards the stored messages in order.
func (s *Session) passEarly() {
	ctx, cancel := context.WithTimeout(context.Background(), passTimeout)
	defer cancel()
	for e, ok := s.early.next(); ok; e, ok = s.early.next() {
		s.pass(ctx, &e.m, e.from)
	}
}
