package front

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Bounds of what is kept of a client while its handshake is under way. One message is,
// whatever its size.
const (
	maxEarly      = 1000
	maxEarlyBytes = 1 << 20
)

// An early is what came on a Pipe while a handshake was under way, and is served after
// it. It is guarded by the Pipe's mu.
type early struct {
	open  bool                    // a handshake is under way, or what came meanwhile is being served
	id    wire.ID                 // of the last initialize
	stop  context.CancelCauseFunc // ends the handshake; nil when it has ended
	queue []held                  // oldest first
	bytes int                     // of all in queue
	told  bool                    // the log has heard of the limit
}

// A held is a message, or a batch, that waits for the end of the handshake.
type held struct {
	m     *wire.Message // nil for a batch
	batch []byte
}

func (h *held) size() int {
	if h.m != nil {
		return len(h.m.Text)
	}
	return len(h.batch)
}

// open begins the handshake of m, and returns its context; nil if there can't be one.
func (p *Pipe) open(m *wire.Message) context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.early.open || p.d != nil || p.closed {
		return nil
	}
	p.shaken = make(chan struct{})
	p.running.Add(1)
	return p.early.begin(p.ctx, m.ID)
}

// run carries the handshake that m begins, and serves what came meanwhile. If the
// upstream refused the client, that may be another handshake.
func (p *Pipe) run(ctx context.Context, m *wire.Message) {
	defer p.running.Done()
	p.initialize(ctx, m)
	for h, ok := p.nextHeld(); ok; h, ok = p.nextHeld() {
		switch {
		case h.m == nil:
			p.serveBatch(h.batch)
		case h.m.Method == spec.MethodInitialize:
			p.retry(h.m)
		default:
			p.serve(h.m)
		}
	}
}

// retry serves an initialize that came while another was under way.
func (p *Pipe) retry(m *wire.Message) {
	p.mu.Lock()
	var ctx context.Context
	if p.d == nil && !p.closed {
		ctx = p.early.begin(p.ctx, m.ID)
	}
	p.mu.Unlock()
	if ctx == nil {
		p.serve(m)
		return
	}
	p.initialize(ctx, m)
}

func (p *Pipe) initialize(ctx context.Context, m *wire.Message) {
	d, answer, err := p.f.initialize(ctx, "", m, p.share, p.send)
	if !p.adopt(d) {
		d.close()
		d, err = nil, wire.Errorf(spec.CodeInternal, "%v", mcp.ErrShutdown)
	}
	if d != nil {
		p.f.opts.Metrics.Sessions(1)
	}
	if err != nil {
		answer = wire.AppendError(nil, m.ID, mcp.WireError(err))
	}
	if d == nil && context.Cause(ctx) == errCancelledByClient {
		return // it wants no answer
	}
	switch err := p.send(answer); {
	case d == nil:
	case d.link != nil:
		d.follow(func() { close(p.lost) })
		d.link.Start()
	case err == nil:
		d.spawn(func() { p.tell(d) }) // ends when the session does
	}
}

// adopt makes d, which may be nil, the session, unless the Pipe was closed meanwhile.
func (p *Pipe) adopt(d *downstream) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.early.stop(nil)
	p.early.stop = nil
	if d != nil && p.closed {
		return false
	}
	p.d = d // nil: the client may try again
	return true
}

// keep takes h if a handshake is under way, or what came meanwhile is being served, and
// reports whether it has. During the handshake pings are answered at once, and
// cancellations of what waits are served at once.
func (p *Pipe) keep(h held) bool {
	p.mu.Lock()
	for p.early.open {
		switch {
		case p.early.stop != nil && h.m != nil && h.m.Method == spec.MethodPing && h.m.Kind() == wire.Request:
			p.mu.Unlock()
			_ = p.send(empty(h.m.ID)) // nobody is left to tell
			return true
		case h.m != nil && h.m.Method == spec.NotifyCancelled && p.cancelLocked(h.m):
			p.mu.Unlock()
			return true
		case p.early.add(h):
			p.mu.Unlock()
			return true
		case p.early.stop != nil:
			p.refuseHeld(h) // which unlocks
			return true
		}
		// The handshake is done, and what it held up is being served.
		shaken := p.shaken
		p.mu.Unlock()
		<-shaken // which Close cuts short
		p.mu.Lock()
	}
	p.mu.Unlock()
	return false
}

// begin takes down that a handshake begins, and returns its context.
func (e *early) begin(ctx context.Context, id wire.ID) context.Context {
	e.open, e.id = true, id
	ctx, e.stop = context.WithCancelCause(ctx)
	return ctx
}

// add puts h into the queue, unless that is full.
func (e *early) add(h held) bool {
	if len(e.queue) > 0 && (len(e.queue) >= maxEarly || e.bytes+h.size() > maxEarlyBytes) {
		return false
	}
	e.queue = append(e.queue, h)
	e.bytes += h.size()
	return true
}

// cancelLocked cancels the handshake, or a request that waits for its end, and reports
// whether m names one of them.
func (p *Pipe) cancelLocked(m *wire.Message) bool {
	id, err := wire.ParseID(wire.Get(m.Params, "requestId"))
	if err != nil {
		return false
	}
	e := &p.early
	if e.stop != nil && e.id == id {
		e.stop(errCancelledByClient)
		return true
	}
	for i, h := range e.queue {
		if h.m != nil && h.m.Kind() == wire.Request && h.m.ID == id {
			e.bytes -= h.size()
			e.queue = append(e.queue[:i], e.queue[i+1:]...)
			return true
		}
	}
	return false
}

// refuseHeld refuses what there is no room for. It gives up mu.
func (p *Pipe) refuseHeld(h held) {
	first := !p.early.told
	p.early.told = true
	p.mu.Unlock()
	p.f.opts.Metrics.Limit("early_messages")
	if first {
		p.f.log.Warn("messages refused: too many came before the handshake was done", "limit", maxEarly, "bytes", maxEarlyBytes)
	}
	if h.m != nil && h.m.Kind() != wire.Request {
		p.f.opts.Metrics.Dropped("message before initialize")
		return
	}
	var id wire.ID
	if h.m != nil {
		id = h.m.ID
	}
	p.refuse(id, wire.Errorf(spec.CodeInternal,
		"%d messages or %d bytes wait for the end of the handshake, the limit; wait for the answer to initialize", maxEarly, maxEarlyBytes))
}

// nextHeld takes what is to be served next. If there is nothing, the handshake is over
// in the eyes of what comes.
func (p *Pipe) nextHeld() (h held, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := &p.early
	if len(e.queue) == 0 {
		p.early = early{}
		close(p.shaken) // as it is: another handshake has its own
		return held{}, false
	}
	h = e.queue[0]
	e.queue[0] = held{}
	e.queue = e.queue[1:]
	e.bytes -= h.size()
	return h, true
}
