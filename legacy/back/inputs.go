package back

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/tasks"
)

// maxInputs bounds the pending inputs of a session. Whoever lets calls park bounds them in
// earnest; this is against servers that ask without end.
const maxInputs = 16 << 10

// errWithdrawn is the cause with which a pending input ends that the server took back.
var errWithdrawn = errors.New("the server withdrew its question")

// inputs are what the server of a session asks its clients: roots/list, elicitation and
// sampling. Each request is attributed to one call, whose caller answers it, or refused.
// Safe for concurrent use.
type inputs struct {
	s           *sessionLink
	server      *negotiated
	roots       *roots
	tasks       *tasks.Table[*call]
	onAmbiguous func() // told when streams don't tell whose an input is

	changed broadcast // of calls: one has ended, or is parked, or not any more

	// mu guards the fields below. All calls are parked under it, so that they stand still
	// while one is looked for.
	mu             sync.Mutex
	closed         bool                      // no more are taken in
	pending        map[wire.ID]*pendingInput // by the server's id
	cancelledUntil time.Time                 // until then an input may be a cancelled call's
	cancelling     int                       // calls that are being cancelled: see beginCancel
}

// A pendingInput is a request of the server on its way to a client.
type pendingInput struct {
	m          wire.Message
	cancel     context.CancelCauseFunc
	receivedAt time.Time
	task       string // the task it names; empty if none

	candidates        []*call // it belongs to one of them, or to none
	attributed        bool    // something tells whose it is
	cancelledRecently bool    // it may be that of a call that was cancelled a moment ago
	blocking          bool    // the server is taken to do nothing else for the call meanwhile
	parked            bool    // a call was parked for it

	// Of a roots/list.
	announced  bool // it was provoked by roots.announce
	counted    bool // in roots.open
	fromClient bool // answered with roots that the client gave for it

	// Guarded by inputs.mu.
	call *call // whose caller is being asked; nil before and after
}

func (p *pendingInput) isRoots() bool { return p.m.Method == spec.MethodRootsList }

// receive takes a request that a client may answer. It never blocks: some
// servers serve nothing until they are answered, and the reader must go on.
//
// Whose it is is decided here where it can be: with the next message, more calls
// may run.
func (in *inputs) receive(ctx context.Context, m *wire.Message, from *call) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	p := &pendingInput{m: *m, cancel: cancel, receivedAt: time.Now()}
	p.task, _ = wire.GetString(wire.Get(wire.Get(m.Params, "_meta"), tasks.MetaRelated), "taskId")
	if in.admit(ctx, p, from) {
		return
	}
	cancel(nil)
	in.s.Drop("question")
	in.s.SendLater(ctx, wire.AppendError(nil, m.ID, wire.Errorf(spec.CodeInternal, "%s: too many questions are open", m.Method)))
}

// admit takes p in, if there is room for it.
func (in *inputs) admit(ctx context.Context, p *pendingInput, from *call) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed || len(in.pending) >= maxInputs || in.pending[p.m.ID] != nil {
		return false
	}
	in.pending[p.m.ID] = p
	if p.isRoots() {
		in.roots.begin()
	}
	in.findCandidatesLocked(p, from)
	var c *call
	if len(p.candidates) == 1 && !p.cancelledRecently {
		c = p.candidates[0]
		in.assignLocked(p, c)
	}
	// It ends when p is answered or withdrawn, its call has ended, or the session has; the
	// session's close waits.
	return in.s.Start(func() {
		defer in.forget(p)
		in.resolve(ctx, p, c)
	})
}

// close takes no more in, and gives up what is pending.
func (in *inputs) close(cause error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	for _, p := range in.pending {
		p.cancel(cause)
	}
}

// resolve has p answered, by the caller of c if that is known already, and tells the
// server.
func (in *inputs) resolve(ctx context.Context, p *pendingInput, c *call) {
	var frame []byte
	switch a, err := in.answer(ctx, p, c); {
	case context.Cause(ctx) != nil:
		return // withdrawn: nobody waits for an answer
	case err != nil:
		frame = wire.AppendError(nil, p.m.ID, refusalOf(err))
	case a.Err != nil:
		frame = wire.AppendError(nil, p.m.ID, a.Err)
	default:
		frame = wire.AppendResult(nil, p.m.ID, p.related(a.Result), nil)
	}
	in.freeID(p) // a server may use it again once it is answered
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	if err := in.s.Send(ctx, frame); err != nil {
		in.s.log.Debug("answering question of server", "method", p.m.Method, "error", cause(err))
		return
	}
	if p.fromClient {
		in.roots.settled()
	}
}

// refusalOf is what a server is told whose request was not put to a client.
func refusalOf(err error) *wire.Error {
	var we *wire.Error
	if errors.As(err, &we) {
		return we
	}
	return wire.Errorf(spec.CodeInternal, "no answer from the client: %v", err)
}

// answer finds out whose p is, unless c is given, and has its caller answer.
func (in *inputs) answer(ctx context.Context, p *pendingInput, c *call) (mcp.InputResponse, error) {
	if p.isRoots() {
		return in.answerRoots(ctx, p, c)
	}
	if c == nil {
		if err := in.checkCandidates(p); err != nil {
			return mcp.InputResponse{}, err
		}
		var err error
		if c, err = in.attribute(ctx, p); err != nil {
			return mcp.InputResponse{}, err
		}
	}
	if need := mcp.MissingCapability(c.capabilities(), p.m.Method, p.m.Params); need != nil {
		c.noteMissing(need)
		return mcp.InputResponse{}, p.undeclared(need)
	}
	return in.ask(ctx, c, p)
}

// answerRoots answers roots/list: from the config, from the caller of c, or,
// where there is no call to ask, with what the only client has answered last, else
// nothing. That is provisional; see roots.refresh.
func (in *inputs) answerRoots(ctx context.Context, p *pendingInput, c *call) (mcp.InputResponse, error) {
	r := in.roots
	switch {
	case in.s.opts.Roots != nil:
		return mcp.InputResponse{Result: rootsResult(in.s.opts.Roots)}, nil
	case c == nil:
		return mcp.InputResponse{Result: r.provisional()}, nil
	case !c.mayBeAsked: // others' roots are taken back, and its own not known
		p.fromClient = true
		r.setOwner(nil)
		return mcp.InputResponse{Result: r.provisional()}, nil
	case mcp.MissingCapability(c.capabilities(), p.m.Method, nil) != nil:
		p.fromClient = true
		r.setOwner(c) // which are none
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

// ask has the caller of c, which is parked, answer p. Meanwhile the call's lane is free for
// others.
func (in *inputs) ask(ctx context.Context, c *call, p *pendingInput) (mcp.InputResponse, error) {
	if !p.parked {
		return mcp.InputResponse{}, errors.New("the call has ended")
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	unlink := context.AfterFunc(c.inputContext(), cancel)
	defer unlink()
	keep := c.freeLaneAfterBurst(p)
	out := mcp.InputRequest{Method: p.m.Method, Params: inputParams(c.capabilities(), p.m.Params)}
	answers, err := c.caller.RequestInput(asking, []mcp.InputRequest{out})
	c.withCaller.Done()
	keep()
	in.unpark(p)
	if err != nil {
		return mcp.InputResponse{}, err
	}
	return legacyResponse(in.server.revision, p.m.Method, answers[0]), nil
}

// freeID lets another request of the server have the id of p.
func (in *inputs) freeID(p *pendingInput) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.pending, p.m.ID)
}

// forget ends what is left of p.
func (in *inputs) forget(p *pendingInput) {
	p.cancel(nil)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.unparkLocked(p)
	if in.pending[p.m.ID] == p {
		delete(in.pending, p.m.ID)
	}
	if p.isRoots() {
		in.roots.end(p)
	}
}

// withdraw gives up a request that the server has cancelled. Its call is at
// work again from the next message on.
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
