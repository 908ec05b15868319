package back

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// lastAnswer is how long a call that its client has cancelled is still heard: some
// servers answer it, and who would have got that directly gets it.
const lastAnswer = 2 * time.Second

// A relay is the upstream session of one legacy client. What passes under it is not
// read beyond what ids and streams need.
type relay struct {
	b      *Back
	s      *wireSession // its own; set when it is opened
	to     mcp.Hearer   // what belongs to no call goes there
	answer []byte       // to initialize, for the client; set when it is opened
	leave  func()       // gives s back to the pool

	start   sync.Once
	started chan struct{} // closed by Start
	greet   sync.Once     // before notifications/initialized
	listens chan struct{} // closed when that was done
	greeted sync.Once     // after it

	memory mcp.Memory // of answers; read-only, as the next
	share  mcp.Share

	// mu guards the fields below. Nothing else is taken under it.
	mu     sync.Mutex
	first  *wireCall            // initialize; nil before it is sent
	early  []heldBack           // what came before the answer to it, oldest first
	calls  map[wire.ID]*relayed // in flight, by the client's ids
	tokens map[wire.ID]*relayed // of these, by progress token
	asked  map[wire.ID]wire.ID  // the server's open questions: its ids by those the client has
	asks   map[wire.ID]wire.ID  // the other way round
	lastID int64                // of a question
	oldest int64                // ids in asked are greater

	earlyBytes int  // of all in early
	earlyTold  bool // the log has heard of their limit
}

// errClientEnded is why calls end with the session of their client.
var errClientEnded = errors.New("the session has ended")

var _ mcp.Linker = (*Back)(nil)

// Link implements [mcp.Linker].
func (b *Back) Link(ctx context.Context, req *mcp.Request, m *wire.Message, h mcp.Hearer) (mcp.Link, []byte, error) {
	r := &relay{
		b: b, to: h, memory: req.Memory, share: req.Share, started: make(chan struct{}), listens: make(chan struct{}),
		calls: make(map[wire.ID]*relayed), tokens: make(map[wire.ID]*relayed),
		asked: make(map[wire.ID]wire.ID), asks: make(map[wire.ID]wire.ID),
	}
	_, leave, err := b.pool.getBy(ctx, req.Profile, true, func() bool { return h.Idle() }, func(ctx context.Context, _ mcp.Profile) (*session, error) {
		s, err := b.openRelay(ctx, r, m)
		return s, b.connected(ctx, err)
	})
	var no *relayRefusal
	switch {
	case err == nil:
		r.leave = leave
		b.mu.Lock()
		b.links.Add(req.Principal, r)
		b.mu.Unlock()
		return r, r.answer, nil
	case errors.As(err, &no):
		return nil, no.answer, nil
	case ctx.Err() != nil:
		return nil, nil, context.Cause(ctx)
	}
	return nil, nil, b.clientError(spec.MethodInitialize, err)
}

// A relayRefusal says that a server answered a client's own initialize with an
// error.
type relayRefusal struct {
	answer []byte // for the client
	text   string
}

func (e *relayRefusal) Error() string { return "initialize: " + e.text }

// openRelay opens a session with the client's own handshake.
func (b *Back) openRelay(ctx context.Context, r *relay, m *wire.Message) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, b.opts.Timeouts.Connect)
	defer cancel()
	return b.overLink(ctx, r.share, func(ctx context.Context, to connector) (*session, error) { return b.relayOver(ctx, r, m, to) })
}

// relayOver opens a session over the link that connect gives it.
func (b *Back) relayOver(ctx context.Context, r *relay, m *wire.Message, connect connector) (*session, error) {
	s := newSession(&b.opts, func() *watch { return nil }, profileRoots{}, false)
	s.to, r.s = r, s.wireSession
	if b.endpoint != nil {
		s.calls.ids = &b.endpoint.ids
	}
	if err := connect(ctx, r.s); err != nil {
		return nil, err
	}
	if err := r.handshake(ctx, m); err != nil {
		why := s.connectError(ctx, err)
		s.abort(ctx)
		return nil, why
	}
	return s, nil
}

func (r *relay) handshake(ctx context.Context, m *wire.Message) error {
	c := &wireCall{method: spec.MethodInitialize}
	ctx, err := r.s.begin(ctx, c)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.first = c
	r.mu.Unlock()
	a, err := r.s.exchange(ctx, c, withID(r.declared(m), wire.NumberID(c.id)))
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	answer := r.described(a.forClient(m.ID))
	version, _ := wire.GetString(a.result, "protocolVersion")
	failed := a.err
	if !r.s.start(a.free) { // it reads the rest of a stream
		a.free()
	}
	if failed != nil {
		return &relayRefusal{answer, failed.Error()}
	}
	r.answer = answer
	r.s.link.negotiated(spec.Revision(version)) // not every client says that it is initialized first
	return nil
}

// describe tells what the server answered to initialize; nil if that is of no legacy
// revision.
func (r *relay) describe() *mcp.Description {
	n, err := readNegotiated(r.b.opts.Name, wire.Get(r.answer, "result"))
	if err != nil {
		return nil
	}
	return n.describe(&r.b.opts)
}

// declared returns the client's initialize, with the roots of the config and without what
// that hides.
func (r *relay) declared(m *wire.Message) []byte {
	capabilities := wire.Get(m.Params, "capabilities")
	edits := mcp.Hiding(capabilities, r.b.opts.HideExtensions)
	if r.b.opts.Roots != nil {
		edits = append(edits, wire.Edit{Name: "roots", Value: []byte("{}")})
	}
	if len(edits) == 0 {
		return m.Text
	}
	params := wire.AppendEdited(nil, m.Params, wire.Edit{Name: "capabilities", Value: wire.AppendEdited(nil, capabilities, edits...)})
	return wire.AppendEdited(nil, m.Text, wire.Edit{Name: "params", Value: params})
}

// described returns the server's answer to initialize without what the config hides.
func (r *relay) described(answer []byte) []byte {
	result := wire.Get(answer, "result")
	capabilities := wire.Get(result, "capabilities")
	edits := mcp.Hiding(capabilities, r.b.opts.HideExtensions)
	if len(edits) == 0 {
		return answer
	}
	result = wire.AppendEdited(nil, result, wire.Edit{Name: "capabilities", Value: wire.AppendEdited(nil, capabilities, edits...)})
	return wire.AppendEdited(nil, answer, wire.Edit{Name: "result", Value: result})
}

// withID returns a copy of a message with another id.
func withID(text []byte, id wire.ID) []byte {
	return wire.AppendEdited(make([]byte, 0, len(text)+16), text, wire.Edit{Name: "id", Value: id.Append(nil)})
}

// withRequestID returns a copy of a cancellation of another request.
func withRequestID(m *wire.Message, id wire.ID) []byte {
	params := wire.AppendEdited(nil, m.Params, wire.Edit{Name: "requestId", Value: id.Append(nil)})
	return wire.AppendEdited(nil, m.Text, wire.Edit{Name: "params", Value: params})
}

// forClient returns the response as it goes to a client whose request had an id.
func (a *answer) forClient(id wire.ID) []byte {
	if a.text == nil { // it could not be read
		return wire.AppendError(nil, id, a.err)
	}
	return withID(a.text, id)
}

// failed is the error that the response is, or that its tool failed; nil if neither.
func (a *answer) failed(method string) error {
	switch {
	case a.err != nil:
		return a.err
	case mcp.ToolFailed(method, a.result, a.outline):
		return mcp.ErrToolFailed
	}
	return nil
}

// Start implements [mcp.Link].
func (r *relay) Start() {
	r.start.Do(func() {
		r.passEarly() // before what waits for started
		close(r.started)
	})
}

// Done implements [mcp.Link].
func (r *relay) Done() <-chan struct{} { return r.s.gone }

// Close implements [mcp.Link].
func (r *relay) Close() {
	r.start.Do(func() { close(r.started) })
	r.cancelAll()
	r.leave()
}

// cancelAll cancels what is in flight: not every server takes the end of a session
// for that.
func (r *relay) cancelAll() {
	r.mu.Lock()
	calls := slices.Collect(maps.Values(r.calls))
	r.mu.Unlock()
	for _, x := range calls {
		if r.s.alive() {
			r.s.sendLater(context.Background(), wire.AppendNotification(nil, spec.NotifyCancelled, cancelledParams(x.c.id, errClientEnded), nil)) // the session ends next, and waits
		}
		x.c.cancel(errClientEnded)
	}
}

// Send implements [mcp.Link].
func (r *relay) Send(ctx context.Context, m *wire.Message) error {
	ctx, cancel := context.WithTimeout(ctx, r.b.opts.Timeouts.Connect)
	defer cancel()
	text := m.Text
	switch {
	case m.Kind() == wire.Response && !m.ID.IsZero():
		id, ok := r.answered(m.ID)
		if !ok {
			r.s.drop("late answer of client")
			return nil
		}
		err := r.send(ctx, withID(text, id))
		if err != nil {
			r.reask(m.ID, id) // its client may try again
		}
		return err
	case m.Method == spec.NotifyInitialized:
		return r.initialized(ctx, text)
	case m.Method == spec.NotifyCancelled:
		return r.cancel(ctx, m)
	case m.Method == spec.NotifyRootsListChanged && r.b.opts.Roots != nil:
		return nil // they don't change
	}
	return r.send(ctx, text)
}

// Await implements [mcp.Link]. Over HTTP nothing overtakes
// notifications/initialized, which leaves once there is a way for what the server says.
func (r *relay) Await(m *wire.Message, sent <-chan struct{}) {
	if r.isConn() {
		<-sent
		return
	}
	if m.Method == spec.NotifyInitialized {
		select {
		case <-r.listens:
		case <-sent:
		}
	}
	late := time.NewTimer(takeTime)
	defer late.Stop()
	select {
	case <-sent:
	case <-late.C:
	}
}

// initialized opens the way for what the server sends unasked before it tells the
// server that it may.
func (r *relay) initialized(ctx context.Context, text []byte) error {
	r.greet.Do(func() {
		defer close(r.listens)
		r.s.link.listen(ctx)
	})
	err := r.send(ctx, text)
	r.greeted.Do(func() { r.s.link.initialized(ctx) })
	return err
}

// send sends what has no answer.
func (r *relay) send(ctx context.Context, text []byte) error {
	err := r.s.link.send(ctx, text)
	if err == nil {
		return nil
	}
	var status *statusError
	if r.isConn() || r.isNamed() && errors.As(err, &status) && status.code == http.StatusNotFound {
		r.s.lost(err)
	}
	if !r.s.alive() {
		return mcp.LinkEnded(transport.Reason{Err: err})
	}
	return mcp.Inside(spec.CodeInternal, "server %q did not take the message: %v; send it again if that is safe", r.b.opts.Name, transport.Reason{Err: err})
}

// isNamed reports whether messages name the session, so that 404 is a word about it.
func (r *relay) isNamed() bool {
	l, ok := r.s.link.(*httpLink)
	return !ok || l.id() != ""
}

// cancel passes a cancellation on, and ends the call that it names.
//
// Spec: 2025-11-25, basic/utilities/cancellation.
func (r *relay) cancel(ctx context.Context, m *wire.Message) error {
	id, err := wire.ParseID(wire.Get(m.Params, "requestId"))
	r.mu.Lock()
	x := r.calls[id]
	r.mu.Unlock()
	if err != nil || x == nil {
		r.s.drop("late cancellation of client")
		return nil
	}
	x.cancelled.Store(true) // it may end before the server has answered
	if _, ok := r.s.link.(*httpLink); ok {
		x.awaitTaken(ctx) // or it may overtake its call, which then runs on
	}
	err = r.send(ctx, withRequestID(m, wire.NumberID(x.c.id)))
	time.AfterFunc(lastAnswer, func() { x.c.cancel(mcp.ErrCancelled) })
	return err
}
