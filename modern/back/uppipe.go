package back

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxFarewells bounds the cancellations that are being sent, which nobody waits
// for.
const maxFarewells = 1024

// A pipe is one connection and what is in flight on it.
type pipe struct {
	// Set by newPipe, read-only after.
	l    *connLink
	conn transport.Conn
	born time.Time

	// mu guards the fields below. It is held for map work only, and may be held
	// when a connCall's mu is taken.
	mu        sync.Mutex
	calls     map[int64]*connCall
	listens   map[int64]*connListen
	err       error // why it has ended; nil while alive
	farewells int
}

// newPipe starts to read conn, until it ends or is closed.
func newPipe(l *connLink, conn transport.Conn) *pipe {
	p := &pipe{l: l, conn: conn, born: time.Now(), calls: make(map[int64]*connCall), listens: make(map[int64]*connListen)}
	l.running.Go(p.read)
	return p
}

func (p *pipe) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err == nil
}

// read takes every message until the connection ends, and closes it then.
func (p *pipe) read() {
	ration := transport.Throttle{Busy: p.busy, Done: p.l.live.Done()}
	for {
		text, err := p.conn.Read()
		var long *transport.TooLongError
		switch {
		case err == nil:
			n, before := len(text), p.l.useless.Load()
			p.receive(text)
			if p.l.useless.Load() != before {
				ration.Message(n)
			}
		case errors.As(err, &long):
			p.tooLong(long)
		default:
			if !errors.Is(err, transport.ErrClosed) {
				err = transport.Ending(p.conn, err)
			}
			if p.fail(err) {
				p.l.ended(p, err)
			}
			_ = p.conn.Close() // it has ended
			return
		}
	}
}

// busy reports whether a call waits for its answer.
func (p *pipe) busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls) > 0
}

// fail ends everything that is in flight, and reports whether it was not ended
// before.
func (p *pipe) fail(err error) bool {
	p.mu.Lock()
	if p.err != nil {
		p.mu.Unlock()
		return false
	}
	p.err = err
	calls, listens := p.calls, p.listens
	p.calls, p.listens = nil, nil
	p.mu.Unlock()
	f := &upstream.Failure{Cause: err, Fate: upstream.MayHaveRun, Again: true}
	for _, c := range calls {
		c.settle(upstream.Response{}, f)
	}
	for _, s := range listens {
		s.end(f)
	}
	return true
}

// exchange is link.exchange on this connection.
func (p *pipe) exchange(ctx context.Context, c *upcall) (upstream.Response, error) {
	pc := newConnCall(c)
	if err := p.add(func() { p.calls[c.ID] = pc }); err != nil {
		return upstream.Response{}, err
	}
	if err := p.conn.Write(c.frame); err != nil {
		return upstream.Response{}, p.writeFailed(c.ID, err)
	}
	for {
		select {
		case <-pc.wake:
			pc.drain(ctx)
		case <-pc.done:
			pc.drain(ctx)
			return pc.answer, pc.err
		case <-ctx.Done():
			return p.abandon(ctx, pc)
		}
	}
}

// add registers something in flight, unless the connection has ended: then nothing
// was sent.
func (p *pipe) add(register func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return &upstream.Failure{Cause: p.err, Fate: upstream.NotSent, Again: p.err != mcp.ErrShutdown}
	}
	register()
	return nil
}

// writeFailed says what a failed Write means: half a line reached nobody. The
// others under way may have run; a connection that takes no more is of no use to
// them either.
func (p *pipe) writeFailed(id int64, err error) error {
	if how := transport.Exited(err); how != nil {
		err = how
	} else {
		err = fmt.Errorf("writing to it: %w", err)
	}
	p.forget(id)
	if p.fail(err) {
		p.l.ended(p, err)
		p.l.running.Go(func() { _ = p.conn.Close() }) // makes read end, which close waits for
	}
	return &upstream.Failure{Cause: err, Fate: upstream.NotSent, Again: true}
}

// abandon gives up on a call whose caller has, and tells the server.
//
// Spec: 2026-07-28, basic/transports/stdio, Cancellation.
func (p *pipe) abandon(ctx context.Context, pc *connCall) (upstream.Response, error) {
	cause := context.Cause(ctx)
	p.forget(pc.ID)
	if !pc.settle(upstream.Response{}, cause) {
		a := pc.answer
		a.Free() // it came, and nobody wants it
		return upstream.Response{}, cause
	}
	if !pc.probes {
		p.cancel(pc.ID, cause)
	}
	return upstream.Response{}, cause
}

// forget makes later answers late ones.
func (p *pipe) forget(id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, id)
	delete(p.listens, id)
}

// cancel tells the server, in the background, that nobody waits for a request.
func (p *pipe) cancel(id int64, cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil || p.farewells == maxFarewells {
		return
	}
	p.farewells++
	reason := "the client cancelled the request"
	if errors.Is(cause, upstream.ErrTooLong) || errors.Is(cause, context.DeadlineExceeded) {
		reason = "time-out"
	}
	params := wire.AppendEdited(nil, nil,
		wire.Edit{Name: "requestId", Value: wire.NumberID(id).Append(nil)},
		wire.Edit{Name: "reason", Value: wire.Quote(reason)})
	p.l.running.Go(func() { // ends by the connection's own time-out
		// A connection that takes no more is found out by whoever reads it.
		_ = p.conn.Write(wire.AppendNotification(nil, spec.NotifyCancelled, params, nil))
		p.mu.Lock()
		defer p.mu.Unlock()
		p.farewells--
	})
}

// receive takes one message. What can't be read fails its call, or is logged and
// skipped.
func (p *pipe) receive(text []byte) {
	m, err := wire.Parse(text, wire.Options{})
	switch {
	case err != nil:
		p.unreadable(text, err)
	case m.Kind() == wire.Response:
		p.response(&m, text)
		return // text went with it, or stays
	case m.Kind() == wire.Notification:
		p.notification(&m)
	default:
		p.skip("request", m.Method) // this era has none from servers
	}
	transport.PutBuffer(text)
}

func (p *pipe) skip(what, method string) {
	p.l.drop(what)
	p.l.opts.Logger.Debug("skipping message of server", "what", what, "method", method)
}

func (p *pipe) unreadable(text []byte, err error) {
	if id, method := wire.Salvage(text); method == "" {
		if pc := p.take(id); pc != nil {
			pc.settle(upstream.Response{}, &upstream.Failure{Cause: fmt.Errorf("its answer can't be read: %v", err), Fate: upstream.MayHaveRun})
			return
		}
	}
	p.l.drop("unreadable")
	p.l.odd.Warn(p.l.opts.Logger, "skipping unreadable message of server", "error", err)
}

// tooLong fails the call that a message beyond the limit answers, as far as its
// beginning tells.
func (p *pipe) tooLong(e *transport.TooLongError) {
	p.l.server.BeyondLimit(e.Limit)
	id, isRequest := wire.LeadingID(e.Start)
	if !isRequest {
		if pc := p.take(id); pc != nil {
			pc.settle(upstream.Response{}, &upstream.Failure{Cause: e, Fate: upstream.MayHaveRun})
			return
		}
	}
	p.l.useless.Add(1)
}

// response hands a response to who waits for it. One to nothing in flight is dropped and
// counted: ids alone tell whose an answer is, it may be to a call that was cancelled, and
// the end of the connection would be that of everybody's calls.
func (p *pipe) response(m *wire.Message, text []byte) {
	free := func() { transport.PutBuffer(text) }
	if pc := p.take(m.ID); pc != nil {
		a, err := upstream.ResponseOf(m, free), pc.takes(len(text))
		if err != nil {
			a = upstream.Response{}
		}
		if err != nil || !pc.settle(a, nil) {
			free()
			pc.settle(upstream.Response{}, err)
		}
		return
	}
	if s := p.listenOf(m.ID); s != nil {
		p.forget(s.c.ID)
		s.answered(m)
	} else {
		p.l.drop("late answer")
	}
	free()
}

// take returns the call in flight with an id that the server wrote, which is not in
// flight any more; nil if there is none.
func (p *pipe) take(id wire.ID) *connCall {
	n, ok := id.Int()
	if !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	pc := p.calls[n]
	delete(p.calls, n)
	return pc
}

// call returns the call with an upstream id, or nil.
func (p *pipe) call(id int64) *connCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[id]
}

// listenOf returns the listen stream with an id that the server wrote, or nil.
func (p *pipe) listenOf(id wire.ID) *connListen {
	n, ok := id.Int()
	if !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listens[n]
}

// sole returns the only client's request in flight, or nil if there is none or more
// than one: then a message that names no request can't be told whose it is.
func (p *pipe) sole() *connCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	var sole *connCall
	for _, pc := range p.calls {
		switch {
		case pc.of == nil:
		case sole != nil:
			return nil
		default:
			sole = pc
		}
	}
	return sole
}

// notification hands a notification to the request, or the stream, that it names.
func (p *pipe) notification(m *wire.Message) {
	if pc := p.owner(m); pc != nil {
		p.tellOwner(pc, m)
		return
	}
	switch m.Method {
	case spec.NotifyProgress:
		if id, ok := tokenOf(m); ok {
			p.tell(p.call(id), m)
			return
		}
		p.skip("progress", m.Method)
	case spec.NotifyMessage:
		p.tell(p.sole(), m)
	case spec.NotifyAcknowledged, spec.NotifyToolsListChanged, spec.NotifyPromptsListChanged,
		spec.NotifyResourcesListChanged, spec.NotifyResourceUpdated, spec.NotifyCancelled:
		p.change(m)
	default:
		p.skip("unknown notification", m.Method)
	}
}

// tell gives a notification to the goroutine of a call.
func (p *pipe) tell(pc *connCall, m *wire.Message) {
	if pc == nil {
		p.skip(droppedAs(m.Method), m.Method)
		return
	}
	pc.heard()
	n, ok := pc.note(m)
	if !ok || !pc.queue(n) {
		p.skip(droppedAs(m.Method), m.Method)
	}
}
