package back

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/link"
	"github.com/mcpbridge/mcpbridge/legacy/tasks"
)

// maxInputs bounds the pending input requests of a session, in case a server sends them
// without end. Parked calls have limits of their own.
const maxInputs = 16 << 10

// errWithdrawn is why an input request ends that the server has cancelled.
var errWithdrawn = errors.New("the server cancelled its request")

// inputs are the input requests of a session's server: roots/list, elicitation and
// sampling. Each is attributed to one call, whose caller responds, or refused. Safe for
// concurrent use.
type inputs struct {
	s           *sessionLink
	server      *negotiated
	roots       *roots
	tasks       *tasks.Table[*taskHost]
	onAmbiguous func() // called if streams don't tell to which call an input request belongs

	changed wake.Broadcast // a call has ended, was parked or unparked

	// mu guards the fields below. Calls are parked under it, so that their stages don't
	// change during an attribution.
	mu         sync.Mutex
	closed     bool                      // no more input requests are accepted
	pending    map[wire.ID]*pendingInput // by the server's id
	answered   map[*pendingInput]bool    // whose responses are being sent
	cancelling int                       // cancelled calls that an input request may belong to: see beginCancel
	creating   int                       // calls of which tasks are made: see creates
}

// A pendingInput is an input request on its way to a client.
type pendingInput struct {
	m          wire.Message
	cancel     context.CancelCauseFunc
	receivedAt time.Time
	task       string      // the task it names; empty if none
	from       *call       // on whose stream it arrived; nil for none
	held       *tasks.Held // the task of which it is, if a client holds that
	aside      mcp.Caller  // of the client that holds the task, which is the server's own
	early      bool        // it names a task that is not known yet

	candidates        []*call // it belongs to one of these calls, or to none
	attributed        bool    // it is known to which call it belongs
	cancelledRecently bool    // it may belong to a call that was cancelled a moment ago
	blocking          bool    // the server is assumed to do nothing else for the call in the meantime
	parked            bool    // a call was parked for it

	// it follows roots.announce
	announced  bool // it was provoked by roots.announce
	counted    bool // in roots.open
	changes    int  // what roots.begin has returned
	fromClient bool // the response has roots that the client returned for it

	exchange *trace.Exchange // of the call that it belongs to, once that is known
	call     *call           // whose caller is being asked; nil before and after
	asked    *call           // whose caller was asked; nil for none
}

func (p *pendingInput) isRoots() bool { return p.m.Method == spec.MethodRootsList }

// receive handles an input request. It never blocks: some servers process no other
// messages until they have the response, so the reader must go on. If it can, it
// attributes the request at once, because the next message may start another call.
func (in *inputs) receive(ctx context.Context, m *wire.Message, on *upstream.Call) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	p := &pendingInput{m: *m, cancel: cancel, receivedAt: time.Now(), from: clientCallOf(on), held: heldOf(on)}
	p.task, _ = wire.GetString(wire.Get(wire.Get(m.Params, "_meta"), spec.MetaRelatedTask), "taskId")
	if in.register(ctx, p) {
		return
	}
	cancel(nil)
	in.s.Drop("question")
	in.s.SendLater(ctx, wire.AppendError(nil, m.ID, wire.Errorf(spec.CodeInternal, "%s: too many requests are pending, or one that has the same id", m.Method)))
}

// register registers p, if a limit does not prevent it.
func (in *inputs) register(ctx context.Context, p *pendingInput) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed || len(in.pending)+len(in.answered) >= maxInputs || in.pending[p.m.ID] != nil {
		return false
	}
	in.pending[p.m.ID] = p
	if p.isRoots() {
		p.changes = in.roots.begin()
	}
	c := in.placeLocked(p)
	// It ends when p has a response or is cancelled, or its call or the session ends; Close
	// waits for it.
	return in.s.Start(func() {
		defer in.forget(p)
		in.resolve(ctx, p, c)
	})
}

// close accepts no more input requests, and ends the pending ones.
func (in *inputs) close(cause error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	for _, p := range in.pending {
		p.cancel(cause)
	}
	for p := range in.answered {
		p.cancel(cause)
	}
}

// resolve gets the response to p, from the caller of c if the call is known already, and
// sends it to the server.
func (in *inputs) resolve(ctx context.Context, p *pendingInput, c *call) {
	var frame []byte
	switch a, err := in.answer(ctx, p, c); {
	case context.Cause(ctx) != nil:
		return // cancelled: the server expects no response
	case err != nil:
		frame = wire.AppendError(nil, p.m.ID, refusalOf(err))
	case a.Err != nil:
		frame = wire.AppendError(nil, p.m.ID, a.Err)
	default:
		frame = wire.AppendResult(nil, p.m.ID, p.related(a.Result), nil)
	}
	p.exchange.Sent(frame)
	in.freeID(p) // before the response: the server may use the id again at once
	if !in.deliver(ctx, p, frame) {
		return
	}
	if p.fromClient {
		in.roots.settled(p.changes)
	}
}

// deliver sends the response to p, for which the server waits, and reports whether that has it. The
// call of p fails if the server refuses the response: it would wait for ever.
func (in *inputs) deliver(ctx context.Context, p *pendingInput, frame []byte) bool {
	if p.asked != nil {
		defer context.AfterFunc(p.asked.inputContext(), func() { // nobody needs the response any more
			time.AfterFunc(closeTimeout, func() { p.cancel(nil) })
		})()
	}
	err := link.SendAnswer(ctx, in.s.Link, frame, func() bool { return in.isFree(p.m.ID) })
	if err == nil || ctx.Err() != nil {
		return err == nil
	}
	in.s.Drop("answer")
	in.s.log.Warn("the response to a request of the server was refused", "method", p.m.Method, "error", transport.Cause(err))
	in.s.EndIfLost(err)
	if p.asked != nil {
		p.asked.Cancel(wire.Errorf(spec.CodeInternal, "server %q asked %s and did not accept the answer: %v; its log may say why", in.s.opts.Name, p.m.Method, transport.Cause(err)))
	}
	return false
}

// refusalOf returns the error for a server whose input request was not passed to a client.
func refusalOf(err error) *wire.Error {
	var we *wire.Error
	if errors.As(err, &we) {
		return we
	}
	return wire.Errorf(spec.CodeInternal, "no answer from the client: %v", err)
}

// answer attributes p to a call, unless c is given, and returns the response of its
// caller.
func (in *inputs) answer(ctx context.Context, p *pendingInput, c *call) (mcp.InputResponse, error) {
	p.observe(c)
	if p.early {
		c = in.awaitTask(ctx, p)
	}
	switch {
	case p.held != nil:
		return in.askHeld(ctx, p)
	case p.aside != nil:
		return in.askAside(ctx, p)
	case p.isRoots():
		return in.answerRoots(ctx, p, c)
	case c == nil:
		if err := in.checkCandidates(p); err != nil {
			return mcp.InputResponse{}, err
		}
		var err error
		if c, err = in.attribute(ctx, p); err != nil {
			return mcp.InputResponse{}, err
		}
		p.observe(c)
	}
	if need := mcp.MissingCapability(c.capabilities(), p.m.Method, p.m.Params); need != nil {
		c.noteMissing(need)
		return mcp.InputResponse{}, p.undeclared(need)
	}
	return in.ask(ctx, c, p)
}

// observe tells the observers of c, which may be nil, that it was asked.
func (p *pendingInput) observe(c *call) {
	if c != nil {
		p.exchange = c.Exchange
		p.exchange.Received(p.m.Text)
	}
}

// answerRoots answers roots/list: from the configuration, from the caller of c or, if
// there is no call, with the last roots of the only client, or with none. That answer is
// provisional; see roots.refresh.
func (in *inputs) answerRoots(ctx context.Context, p *pendingInput, c *call) (mcp.InputResponse, error) {
	r := in.roots
	switch {
	case len(in.s.opts.Settings.Roots) > 0:
		return mcp.InputResponse{Result: rootsResult(in.s.opts.roots())}, nil
	case c == nil:
		return mcp.InputResponse{Result: r.provisional()}, nil
	case !c.mayBeAsked: // the roots of another client are replaced, and those of its own are unknown
		p.fromClient = true
		r.setOwner(nil)
		return mcp.InputResponse{Result: r.provisional()}, nil
	case mcp.MissingCapability(c.capabilities(), p.m.Method, nil) != nil:
		p.fromClient = true
		r.setOwner(c) // it has no roots
		return mcp.InputResponse{Result: r.provisional()}, nil
	}
	a, err := in.ask(ctx, c, p)
	if err == nil && a.Err == nil {
		p.fromClient = true
		r.setOwner(c)
		r.profile.put(r, a.Result)
	}
	return a, err
}

// ask returns the response to p of the caller of c, which is parked. In the meantime the
// call's lane is free for others.
func (in *inputs) ask(ctx context.Context, c *call, p *pendingInput) (mcp.InputResponse, error) {
	if !p.parked {
		return mcp.InputResponse{}, errors.New("the call has ended")
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	unlink := context.AfterFunc(c.inputContext(), cancel)
	defer unlink()
	keep := c.freeLaneAfterBurst(p)
	out := mcp.InputRequest{Method: p.m.Method, Params: link.InputParams(c.capabilities(), p.m.Params), Revision: in.server.revision}
	if c.req.HoldsTasks {
		out.Params = p.related(out.Params)
	}
	p.asked = c
	answers, err := c.caller.RequestInput(asking, []mcp.InputRequest{out})
	c.withCaller.Done()
	keep()
	in.unpark(p)
	if err != nil {
		return mcp.InputResponse{}, err
	}
	return link.InputResponse(in.server.revision, p.m.Method, answers[0]), nil
}

// freeID allows the server to use the id of p again.
func (in *inputs) freeID(p *pendingInput) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.pending, p.m.ID)
	in.answered[p] = true
	if in.closed {
		p.cancel(nil)
	}
}

// isFree reports whether the server has not used an id again.
func (in *inputs) isFree(id wire.ID) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.pending[id] == nil
}

// forget removes p.
func (in *inputs) forget(p *pendingInput) {
	p.cancel(nil)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.unparkLocked(p)
	delete(in.answered, p)
	if in.pending[p.m.ID] == p {
		delete(in.pending, p.m.ID)
	}
	if p.isRoots() {
		in.roots.end(p)
	}
}

// withdraw ends an input request that the server has cancelled. From the next message on,
// its call counts as running.
//
// Spec: 2025-11-25, basic/utilities/cancellation.
func (in *inputs) withdraw(m *wire.Message) {
	id, err := wire.ParseID(wire.Get(m.Params, "requestId"))
	if err != nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if p := in.pending[id]; p != nil {
		in.unparkLocked(p)
		p.cancel(errWithdrawn)
	}
}
