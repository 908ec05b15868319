package front

import (
	"context"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Pipe is one legacy client on a connection of messages: stdio, a WebSocket. It
// has at most one session, which initialize opens.
//
// Spec: 2025-11-25, basic/transports, stdio.
type Pipe struct {
	f     *Front
	send  func([]byte) error
	share mcp.Share

	ctx    context.Context // of handshakes; ends with Close
	cancel context.CancelFunc
	untold chan struct{} // closed when no more changes will come although the session lasts

	// mu guards the fields below.
	mu     sync.Mutex
	d      *downstream
	closed bool
	ending bool          // Shutdown was called: no more requests are taken
	early  early         // what came during a handshake
	shaken chan struct{} // closed when the last handshake has ended, and what came meanwhile is served; nil before the first

	lost chan struct{} // closed when the session has ended upstream; see Lost

	running sync.WaitGroup // handshakes
}

// OpenPipe returns a Pipe for the principal of share. send writes one message; it is called from
// several goroutines, and returns an error once the client can't be reached. Whoever
// opened the Pipe closes it.
func (f *Front) OpenPipe(send func(msg []byte) error, share mcp.Share) *Pipe {
	p := &Pipe{f: f, send: send, share: share, untold: make(chan struct{}), lost: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pipes == nil {
		p.closed = true
	} else {
		f.pipes[p] = struct{}{}
	}
	return p
}

// Serve takes one message. It does not wait for the answer, nor for a handshake: the
// end of the input and cancellations are behind it. Before initialize only ping is
// served. What comes while the handshake is under way is served after it, in order:
// scripts send all they have to say at once, and servers of one's own read it in turn.
func (p *Pipe) Serve(m *wire.Message) {
	if m.Kind() == wire.Request && m.Method != spec.MethodPing && p.isEnding() {
		p.refuse(m.ID, wire.Errorf(spec.CodeInternal, "%v", mcp.ErrShutdown))
		return
	}
	if !p.keep(held{m: m}) {
		p.serve(m)
	}
}

// serve serves one message while no handshake is under way.
func (p *Pipe) serve(m *wire.Message) {
	d, closed := p.session()
	switch {
	case d == nil && closed && m.Kind() == wire.Request:
		p.refuse(m.ID, wire.Errorf(spec.CodeInternal, "%v", mcp.ErrShutdown))
	case d == nil && m.Kind() == wire.Request:
		p.serveEarly(m)
	case d == nil:
		p.f.opts.Metrics.Dropped("message before initialize")
	case m.Kind() == wire.Request:
		d.begin(m, &pipeOutlet{p})
	default:
		d.take(m)
	}
}

func (p *Pipe) isEnding() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ending
}

// session returns the session, nil if there is none, and whether the Pipe is closed.
func (p *Pipe) session() (d *downstream, closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.d, p.closed
}

func (p *Pipe) refuse(id wire.ID, e *wire.Error) {
	_ = p.send(wire.AppendError(nil, id, e)) // nobody is left to tell
}

// serveEarly serves a request that came before there is a session.
func (p *Pipe) serveEarly(m *wire.Message) {
	switch m.Method {
	case spec.MethodPing:
		_ = p.send(empty(m.ID)) // nobody is left to tell
	case spec.MethodInitialize:
		if ctx := p.open(m); ctx != nil {
			go p.run(ctx, m) // ends with the handshake and what came meanwhile, which Close cuts short
			return
		}
		fallthrough
	default:
		p.refuse(m.ID, wire.Errorf(spec.CodeInvalidRequest,
			"%s came before the handshake was done; send initialize first, or _meta with %s", m.Method, spec.MetaProtocolVersion))
	}
}

// Lost returns a channel that is closed when the session of the client has ended
// upstream: as a direct connection would have ended then, this one should.
func (p *Pipe) Lost() <-chan struct{} { return p.lost }

// tell sends changes until the session ends.
func (p *Pipe) tell(d *downstream) {
	for {
		select {
		case <-d.subs.mail.Ready():
		case <-p.ctx.Done():
			return
		}
		for ev, ok := d.subs.mail.Next(); ok; ev, ok = d.subs.mail.Next() {
			if p.send(appendChange(nil, ev)) != nil {
				return // the connection is lost, and Close follows
			}
			p.f.opts.Metrics.Delivered(1)
		}
		if _, ended := d.subs.mail.Ended(); ended {
			close(p.untold)
			return
		}
	}
}

// Unread is told of a message that was refused for its size, of which start is the
// beginning. If that shows a request it returns the id, else none; and whoever asked
// what the client has answered with it gets why instead.
func (p *Pipe) Unread(start []byte, why *wire.Error) wire.ID {
	id, isRequest := wire.LeadingID(start)
	if isRequest || id.IsZero() {
		return id
	}
	if m, err := wire.Parse(wire.AppendError(nil, id, why), wire.Options{}); err == nil {
		p.Serve(&m)
	}
	return wire.ID{}
}

// ServeBatch takes a batch.
func (p *Pipe) ServeBatch(body []byte) {
	if !p.keep(held{batch: body}) {
		p.serveBatch(body)
	}
}

func (p *Pipe) serveBatch(body []byte) {
	d, _ := p.session()
	if d == nil {
		p.refuse(wire.ID{}, wire.Errorf(spec.CodeInvalidRequest, "a batch came before the handshake was done"))
		return
	}
	b, err := d.readBatch(body)
	if err != nil {
		p.refuse(wire.ID{}, err)
		return
	}
	for _, m := range b.others {
		d.take(m)
	}
	if len(b.requests)+len(b.refusals) == 0 {
		return
	}
	out := &batchOutlet{p: p, pending: len(b.requests) + len(b.refusals)}
	for _, refusal := range b.refusals {
		out.answer(response{msg: refusal})
	}
	for _, m := range b.requests {
		d.begin(m, out)
	}
}

// Shutdown refuses further requests, and waits until none is in flight, a handshake
// and what came during it among them, or ctx ends: then it returns ctx's cause.
func (p *Pipe) Shutdown(ctx context.Context) error {
	p.mu.Lock()
	p.ending = true
	shaken := p.shaken
	p.mu.Unlock()
	if shaken == nil {
		return nil
	}
	select {
	case <-shaken:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	d, _ := p.session()
	if d == nil {
		return nil
	}
	return d.settle(ctx)
}

// Close ends the session, and waits for all that runs for it. It may be called
// again.
func (p *Pipe) Close() {
	p.mu.Lock()
	d := p.d
	p.closed, p.d = true, nil
	p.mu.Unlock()
	p.cancel()
	if d != nil { // before its messages are waited for: the server may not take them
		d.close()
		p.f.opts.Metrics.Sessions(-1)
	}
	p.running.Wait()
	p.f.mu.Lock()
	delete(p.f.pipes, p) // of nil too
	p.f.mu.Unlock()
}

// A pipeOutlet sends what belongs to one request.
type pipeOutlet struct{ p *Pipe }

func (o *pipeOutlet) message(_ context.Context, msg []byte) error { return o.p.send(msg) }
func (o *pipeOutlet) silent()                                     {}

func (o *pipeOutlet) answer(r response) {
	_ = o.p.send(r.msg) // nobody is left to tell
	r.room.Release()
}

// A batchOutlet sends the answers of a batch together.
type batchOutlet struct {
	p *Pipe

	mu      sync.Mutex // guards the fields below
	pending int
	answers [][]byte
	rooms   []mcp.Room // of them
}

func (o *batchOutlet) message(_ context.Context, msg []byte) error { return o.p.send(msg) }
func (o *batchOutlet) answer(r response)                           { o.settle(&r) }
func (o *batchOutlet) silent()                                     { o.settle(nil) }

func (o *batchOutlet) settle(r *response) {
	o.mu.Lock()
	if r != nil {
		o.answers = append(o.answers, r.msg)
		o.rooms = append(o.rooms, r.room)
	}
	o.pending--
	done := o.pending == 0 && len(o.answers) > 0
	o.mu.Unlock()
	if done {
		_ = o.p.send(joined(o.answers)) // nobody is left to tell
		for i := range o.rooms {
			o.rooms[i].Release()
		}
	}
}
