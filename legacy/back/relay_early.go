package back

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Bounds of what a server sends before its answer to initialize. One message is kept,
// whatever its size.
const (
	maxHeldBack      = 1000
	maxHeldBackBytes = 1 << 20
)

// A heldBack is a request or notification of a server that its client gets after the
// answer to initialize. It is what came over s: another session may take its place.
type heldBack struct {
	s    *wireSession
	m    *wire.Message
	from *wireCall
}

// holdBack keeps what the server sent before its answer to initialize, and reports
// whether that is still to come. It must not wait for the answer, which comes by the
// same reader. A ping is answered here: some servers go on only then.
func (r *relay) holdBack(ctx context.Context, m *wire.Message, from *wireCall) bool {
	if r.isAnswered() {
		return false
	}
	if m.Kind() == wire.Request && m.Method == spec.MethodPing {
		r.s.sendLater(ctx, wire.AppendResult(nil, m.ID, []byte("{}"), nil))
		return true
	}
	r.mu.Lock()
	size := len(m.Text)
	fits := len(r.early) == 0 || len(r.early) < maxHeldBack && r.earlyBytes+size <= maxHeldBackBytes
	if fits {
		r.early = append(r.early, heldBack{r.s, m, from})
		r.earlyBytes += size
	}
	first := !fits && !r.earlyTold
	r.earlyTold = r.earlyTold || !fits
	r.mu.Unlock()
	if !fits {
		r.refuseEarly(ctx, m, first)
	}
	return true
}

// isAnswered reports whether the server has answered initialize.
func (r *relay) isAnswered() bool {
	r.mu.Lock()
	first := r.first
	r.mu.Unlock()
	if first == nil {
		return false
	}
	_, ok := first.settled()
	return ok
}

// refuseEarly drops what there is no room for. first says that it is the first.
func (r *relay) refuseEarly(ctx context.Context, m *wire.Message, first bool) {
	r.s.drop("before initialize")
	if first {
		r.s.log.Warn("messages of server dropped: it sent too many before it answered initialize", "limit", maxHeldBack, "bytes", maxHeldBackBytes)
	}
	if m.Kind() == wire.Request {
		r.s.sendLater(ctx, wire.AppendError(nil, m.ID, wire.Errorf(spec.CodeInternal,
			"%d messages or %d bytes came before the answer to initialize, the limit; answer it first", maxHeldBack, maxHeldBackBytes)))
	}
}

// passEarly hands on what was held back, in order.
func (r *relay) passEarly() {
	r.mu.Lock()
	early := r.early
	r.early = nil
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeTimeout) // a client that reads nothing ends earlier
	defer cancel()
	for _, h := range early {
		if h.s == r.s {
			r.pass(ctx, h.m, h.from)
		}
	}
}
