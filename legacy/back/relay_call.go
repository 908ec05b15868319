package back

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// takeTime is how long a caller waits for the answer to the POST of a call over
// HTTP+SSE, or of a notification or response over HTTP, so that what comes next leaves
// after it: some servers answer it only when they have run what was posted.
const takeTime = 200 * time.Millisecond

// maxAsked bounds the open questions of one server to one client.
const maxAsked = 1000

// A relayed is a client's call under a relay. Whoever reads what the server sends
// hands it on: so the order is kept.
type relayed struct {
	r     *relay
	c     *wireCall
	id    wire.ID // the client's
	token wire.ID // zero for no progress
	out   mcp.Outcome
	begun time.Time

	cancelled atomic.Bool // by the client; the server was told, or is about to be
}

// Call implements [mcp.Link].
func (r *relay) Call(m *wire.Message, o mcp.Outcome) {
	x := &relayed{r: r, id: m.ID, out: o, begun: time.Now()}
	x.token, _ = wire.ParseID(wire.Get(wire.Get(m.Params, "_meta"), spec.MetaProgressToken)) // zero if it is none
	x.c = &wireCall{method: m.Method, owner: x, passed: true, taken: make(chan struct{}, 1)}
	x.c.in.Use(r.memory, r.share)
	// It ends with x.c.cancel, which run calls.
	ctx, stop := context.WithTimeoutCause(context.Background(), r.b.opts.Timeouts.Max, errTooLong)
	ctx, err := r.s.begin(ctx, x.c)
	r.enter(x)
	if err != nil {
		stop()
		x.lost(err)
		return
	}
	frame := withID(m.Text, wire.NumberID(x.c.id))
	if r.isConn() { // in the order of the calls
		err = r.send(ctx, frame)
	}
	if err != nil || !r.s.start(func() { r.run(ctx, x, frame); stop() }) {
		r.s.calls.remove(x.c)
		x.c.cancel(nil)
		stop()
		x.lost(&failure{cause: r.s.ending(), fate: notSent, lost: true})
		return
	}
	if _, ok := r.s.link.(*eventLink); ok {
		x.awaitTaken(ctx)
	}
}

// isConn reports whether messages leave on one connection, in order.
func (r *relay) isConn() bool {
	_, ok := r.s.link.(*connLink)
	return ok
}

// awaitTaken waits until the server has begun to answer the POST of the call, or has
// answered the call, but not for long.
func (x *relayed) awaitTaken(ctx context.Context) {
	late := time.NewTimer(takeTime - time.Since(x.begun))
	defer late.Stop()
	select {
	case <-x.c.taken:
	case <-ctx.Done():
	case <-late.C:
	}
}

// run waits for the end of a call.
func (r *relay) run(ctx context.Context, x *relayed, frame []byte) {
	var err error
	if r.isConn() {
		<-ctx.Done()
		err = context.Cause(ctx)
	} else {
		err = r.s.link.exchange(ctx, x.c, frame)
	}
	if a, ok := x.c.settled(); ok { // and was handed on
		r.s.calls.remove(x.c)
		a.free() // which may read the rest of a stream
		x.c.in.Close()
		x.c.cancel(nil)
		return
	}
	defer x.c.in.Close()
	if x.cancelled.Load() {
		r.s.calls.remove(x.c)
		x.c.cancel(nil)
		x.lost(mcp.ErrCancelled)
		return
	}
	switch context.Cause(ctx) {
	case errClientEnded: // the server was told
		r.s.calls.remove(x.c)
		x.c.cancel(nil)
		x.lost(errClientEnded)
		return
	case errTooLong:
		r.s.drop("time limit")
		r.s.log.Warn("call ended: it took too long", "method", x.c.method, "limit", r.b.opts.Timeouts.Max)
	}
	x.lost(r.s.abandon(ctx, x.c, err))
}

func (r *relay) enter(x *relayed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[x.id] = x
	if !x.token.IsZero() {
		r.tokens[x.token] = x
	}
}

// leave reports whether x was still in flight, as it is for one caller alone.
func (x *relayed) leave() bool {
	r := x.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls[x.id] != x {
		return false
	}
	delete(r.calls, x.id)
	if r.tokens[x.token] == x {
		delete(r.tokens, x.token)
	}
	return true
}

// answered implements callOwner: it hands the response on.
func (x *relayed) answered(_ *wireCall, a answer) {
	if x.leave() {
		failed := a.failed(x.c.method) // before the text is its owner's
		x.out.Answer(a.forClient(x.id), failed)
	}
}

// lost says why there is no response.
func (x *relayed) lost(err error) {
	if !x.leave() {
		return
	}
	b, f := x.r.b, asFailure(err)
	switch {
	case err == mcp.ErrCancelled:
	case f != nil && f.lost || errors.Is(err, mcp.ErrShutdown) || err == errClientEnded:
		err = mcp.LinkEnded(transport.Reason{Err: err})
	case errors.Is(err, errTooLong):
		err = wire.Errorf(spec.CodeInternal, "server %q did not answer %s within %v; raise timeouts.max if that is normal for it", b.opts.Name, x.c.method, b.opts.Timeouts.Max)
	default:
		err = b.clientError(x.c.method, err)
	}
	x.out.Lost(err)
}

// deliver implements callOwner: nothing is queued.
func (x *relayed) deliver() {}

// listening implements sink.
func (r *relay) listening(bool) {}

// missed implements sink.
func (r *relay) missed() {}

// receive implements sink.
func (r *relay) receive(ctx context.Context, m *wire.Message, from *wireCall) {
	if r.holdBack(ctx, m, from) {
		return
	}
	select { // nothing overtakes the answer to initialize
	case <-r.started:
	case <-r.s.gone:
	case <-ctx.Done():
	}
	r.pass(ctx, m, from)
}

// pass hands a request or notification of the server on.
func (r *relay) pass(ctx context.Context, m *wire.Message, from *wireCall) {
	text := m.Text
	switch {
	case m.Kind() == wire.Request:
		text = r.question(ctx, m)
	case m.Method == spec.NotifyCancelled:
		text = r.withdrawn(m)
	}
	if text == nil {
		return
	}
	if err := r.deliver(ctx, m, from, text); err != nil {
		r.s.drop("undelivered")
		r.s.log.Debug("message of server was not delivered", "method", m.Method, "error", err)
	}
}

// deliver hands a message to the call that it belongs to, else to the session. A
// connection has no streams: there progress belongs to whoever has its token.
func (r *relay) deliver(ctx context.Context, m *wire.Message, from *wireCall, text []byte) error {
	var x *relayed
	isConn := r.s.link.wakes()
	var on *relayed // nil unless it came on a client's call's own stream
	if from != nil {
		on, _ = from.owner.(*relayed)
	}
	r.mu.Lock()
	switch {
	case on != nil && r.calls[on.id] == on:
		x = on
	case isConn && m.Method == spec.NotifyProgress:
		token, _ := wire.ParseID(wire.Get(m.Params, spec.MetaProgressToken)) // zero finds none
		x = r.tokens[token]
	}
	r.mu.Unlock()
	if x != nil {
		return x.out.Message(ctx, text)
	}
	return r.to.Hear(ctx, text, isConn && (m.Kind() == wire.Request || m.Method == spec.NotifyCancelled))
}

// question returns the server's request under an id of the client session's, nil if
// it was answered here.
func (r *relay) question(ctx context.Context, m *wire.Message) []byte {
	if m.Method == spec.MethodRootsList && r.b.opts.Roots != nil {
		roots := wire.AppendEdited(nil, nil, wire.Edit{Name: "roots", Value: r.b.opts.Roots})
		r.s.sendLater(ctx, wire.AppendResult(nil, m.ID, roots, nil))
		return nil
	}
	r.mu.Lock()
	oldest, full := r.giveUpLocked()
	r.lastID++
	id := wire.NumberID(r.lastID)
	r.asked[id], r.asks[m.ID] = m.ID, id
	r.mu.Unlock()
	if full {
		r.s.drop("questions")
		r.s.log.Warn("question of server given up: too many are open", "limit", maxAsked)
		r.s.sendLater(ctx, wire.AppendError(nil, oldest, wire.Errorf(spec.CodeInternal, "%d later questions to this client are open, the limit; it did not answer this one", maxAsked)))
	}
	return withID(m.Text, id)
}

// giveUpLocked makes room for a question: the one that has been open longest gives way
// at the limit, and the server's id of it is returned. Some are never answered, such as
// pings to a client that opens no stream for them.
func (r *relay) giveUpLocked() (theirs wire.ID, full bool) {
	for full = len(r.asked) >= maxAsked; full; {
		r.oldest++
		if theirs, ok := r.dropLocked(wire.NumberID(r.oldest)); ok {
			return theirs, true
		}
	}
	return wire.ID{}, false
}

// withdrawn returns the cancellation of a question, nil if that is not open.
func (r *relay) withdrawn(m *wire.Message) []byte {
	theirs, err := wire.ParseID(wire.Get(m.Params, "requestId"))
	r.mu.Lock()
	id, ok := r.asks[theirs]
	if ok {
		delete(r.asks, theirs)
		delete(r.asked, id)
	}
	r.mu.Unlock()
	if err != nil || !ok {
		r.s.drop("late cancellation")
		return nil
	}
	return withRequestID(m, id)
}

// answered returns the server's id of the question that the client answers.
func (r *relay) answered(id wire.ID) (wire.ID, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropLocked(id)
}

func (r *relay) dropLocked(id wire.ID) (theirs wire.ID, ok bool) {
	theirs, ok = r.asked[id]
	delete(r.asked, id)
	if r.asks[theirs] == id {
		delete(r.asks, theirs)
	}
	return theirs, ok
}

// reask opens a question again whose answer did not reach the server.
func (r *relay) reask(id, theirs wire.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asks[theirs].IsZero() { // else it has asked another under its id
		r.asked[id], r.asks[theirs] = theirs, id
		if n, ok := id.Int(); ok {
			r.oldest = min(r.oldest, n-1)
		}
	}
}
