package relay

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
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
)

// lastResponse is how long a cancelled call can still get its response, because some
// servers send one anyway.
const lastResponse = 2 * time.Second

// Options configure the sessions with one server.
type Options struct {
	*upstream.Options
	// Roots are the roots that the server gets instead of each client's own: an array as in
	// the result of roots/list. Nil means the client's own.
	Roots json.RawMessage
	// Explain converts the error that prevented a response to a request of method to the
	// one for the client.
	Explain func(method string, err error) error
}

// A Session is the upstream session of one legacy client. It implements [mcp.Relay].
type Session struct {
	opts   *Options
	link   *link.Link
	to     mcp.RelayClient // gets the messages that belong to no call
	answer []byte          // the response to initialize, for the client; set by Open
	memory mcp.Memory      // for responses
	share  mcp.Share

	start   sync.Once
	started chan struct{} // closed by Start
	leave   func()        // called by Close; set by OnClose
	state   func()        // set by OnState

	beforeInitialized sync.Once
	listens           chan struct{} // closed when beforeInitialized is done
	afterInitialized  sync.Once

	line   *line // over a connection
	calls  calls
	inputs inputs
	early  early
}

// New returns a Session for the client of req. to gets the messages that belong to no call.
// Connect its Link before Open.
func New(o *Options, req *mcp.Request, to mcp.RelayClient) *Session {
	s := &Session{
		opts: o, to: to, memory: req.Memory, share: req.Share,
		started: make(chan struct{}), listens: make(chan struct{}),
		state:  func() {},
		line:   newLine(),
		calls:  calls{byID: make(map[wire.ID]*call), byToken: make(map[wire.ID]*call)},
		inputs: inputs{server: make(map[wire.ID]wire.ID), client: make(map[wire.ID]wire.ID)},
	}
	s.link = link.New(o.Options, s)
	return s
}

// Link returns the session's Link.
func (s *Session) Link() *link.Link { return s.link }

// OnClose sets a function that Close calls. Close does not end the session upstream itself.
func (s *Session) OnClose(leave func()) { s.leave = leave }

// OnState sets a function that is called before a call after which the server may have state of
// the client.
func (s *Session) OnState(note func()) { s.state = note }

// Start implements [mcp.Relay].
func (s *Session) Start() {
	s.start.Do(func() {
		s.passEarly() // before the messages that wait for started
		close(s.started)
	})
}

// Done implements [mcp.Relay].
func (s *Session) Done() <-chan struct{} { return s.link.Done() }

// Close implements [mcp.Relay].
func (s *Session) Close() {
	s.start.Do(func() { close(s.started) })
	s.line.end()
	s.cancelAll()
	s.leave()
}

// cancelAll cancels the calls in flight, because some servers do not cancel them at the end
// of a session.
func (s *Session) cancelAll() {
	s.calls.mu.Lock()
	all := slices.Collect(maps.Values(s.calls.byID))
	s.calls.mu.Unlock()
	for _, c := range all {
		if !s.withdraws(c, errClientEnded) && s.link.Alive() {
			s.link.SendLater(context.Background(), c.Cancellation(errClientEnded)) // the session ends next, which waits for it
		}
		c.Cancel(errClientEnded)
	}
}

// Send implements [mcp.Relay]. Over HTTP it waits for the server to take the message, for at most
// timeouts.connect.
func (s *Session) Send(ctx context.Context, m *wire.Message) error {
	if s.link.Ordered() { // the server has it when it reads on
		return s.sendInLine(m)
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Settings.Timeouts.Connect)
	defer cancel()
	return s.forward(ctx, m)
}

// forward sends a message of the client that is no request, or does what it asks for.
func (s *Session) forward(ctx context.Context, m *wire.Message) error {
	switch {
	case m.Kind() == wire.Response && !m.ID.IsZero():
		return s.sendResponse(ctx, m)
	case m.Method == spec.NotifyInitialized:
		return s.sendInitialized(ctx, m.Text)
	case m.Method == spec.NotifyCancelled:
		return s.sendCancelled(ctx, m)
	case m.Method == spec.NotifyRootsListChanged && s.opts.Roots != nil:
		return nil // they don't change
	}
	return s.send(ctx, m.Text)
}

// patience returns how long the next message waits for m.
func (s *Session) patience(m *wire.Message) time.Duration {
	if m.Method == spec.NotifyInitialized && s.link.Ordered() {
		return initializedTimeout
	}
	return takeTimeout
}

// Await implements [mcp.Relay]. For notifications/initialized its time begins when the stream of
// [link.Link.Listen] is open, so that no other message is sent before it.
func (s *Session) Await(m *wire.Message, sent <-chan struct{}) {
	if m.Method == spec.NotifyInitialized {
		select {
		case <-s.listens:
		case <-sent:
		}
	}
	late := time.NewTimer(s.patience(m))
	defer late.Stop()
	select {
	case <-sent:
	case <-late.C:
	}
}

// sendInitialized opens the stream for messages that belong to no call before it sends
// notifications/initialized.
func (s *Session) sendInitialized(ctx context.Context, text []byte) error {
	s.beforeInitialized.Do(func() {
		defer close(s.listens)
		s.link.Listen(ctx)
	})
	err := s.send(ctx, text)
	s.afterInitialized.Do(func() { s.link.Initialized(ctx) })
	return err
}

// sendResponse forwards the client's response to a request of the server.
func (s *Session) sendResponse(ctx context.Context, m *wire.Message) error {
	x := s.inputs.observer(m.ID)
	id, ok := s.inputs.take(m.ID)
	if !ok {
		s.link.Drop("late answer of client")
		return nil
	}
	text := withID(m.Text, id)
	observeAnswer(x, m, text)
	err := s.send(ctx, text)
	if err != nil {
		s.inputs.putBack(m.ID, id) // the client may send it again
	}
	return err
}

// sendCancelled forwards a cancellation, and ends the cancelled call.
//
// Spec: 2025-11-25, basic/utilities/cancellation.
func (s *Session) sendCancelled(ctx context.Context, m *wire.Message) error {
	id, err := wire.ParseID(wire.Get(m.Params, "requestId"))
	c := s.calls.find(id)
	if err != nil || c == nil {
		s.link.Drop("late cancellation of client")
		return nil
	}
	if c.cancelled.Swap(true) && s.link.Ordered() { // the call may end before the server has answered
		s.link.Drop("late cancellation of client") // the first one is on its way
		return nil
	}
	if !s.link.Ordered() {
		c.awaitTaken(ctx, overtakeTimeout) // otherwise the cancellation may arrive before the call, and have no effect
	} else if c.awaitTaken(ctx, takeTimeout); s.withdraws(c, mcp.ErrCancelled) {
		return nil
	}
	time.AfterFunc(lastResponse, func() { c.Cancel(mcp.ErrCancelled) }) // the server may take it much later
	return s.send(ctx, withRequestID(m, wire.NumberID(c.ID)))
}

// withdraws ends a call that waits for a server which does not read its connection, and reports
// whether nothing of it was written, so that the server need not know.
func (s *Session) withdraws(c *call, cause error) bool {
	if !s.link.Ordered() || wake.Closed(c.Taken) {
		return false
	}
	c.Cancel(cause)
	select {
	case <-c.Taken:
		return c.Withdrawn
	case <-s.link.Done():
		return false
	}
}

// send sends a message that has no response.
func (s *Session) send(ctx context.Context, text []byte) error {
	err := s.link.Send(ctx, text)
	if err == nil {
		return nil
	}
	s.link.EndIfLost(err)
	if !s.link.Alive() {
		return mcp.SessionEnded(transport.Reason{Err: err})
	}
	return mcp.Inside(spec.CodeInternal, "server %q did not take the message: %v; send it again if that is safe", s.opts.Name, transport.Reason{Err: err})
}

// withID returns a copy of a message with a different id.
func withID(text []byte, id wire.ID) []byte {
	return wire.AppendEdited(make([]byte, 0, len(text)+16), text, wire.Edit{Name: "id", Value: id.Append(nil)})
}

// traced returns the text of a request with the context of a trace, if x has one.
func traced(m *wire.Message, x *trace.Exchange) []byte {
	if !x.HasContext() {
		return m.Text
	}
	meta := x.AppendMeta(nil, m.Meta)
	params := wire.AppendEdited(nil, m.Params, wire.Edit{Name: "_meta", Value: meta})
	return wire.AppendEdited(nil, m.Text, wire.Edit{Name: "params", Value: params})
}

// withRequestID returns a copy of a cancellation with a different request id.
func withRequestID(m *wire.Message, id wire.ID) []byte {
	params := wire.AppendEdited(nil, m.Params, wire.Edit{Name: "requestId", Value: id.Append(nil)})
	return wire.AppendEdited(nil, m.Text, wire.Edit{Name: "params", Value: params})
}

var (
	_ link.Sink = (*Session)(nil)
	_ mcp.Relay = (*Session)(nil)
)
