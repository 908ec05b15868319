package front

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A session is that of one client, whatever it came over.
type session struct {
	// Set at the handshake, read-only after.
	front     *Front
	id        SessionID // empty on a connection
	name      string    // for logs and profiles: grants nothing
	principal mcp.Principal
	share     mcp.Share
	handshake

	// Set at the handshake too, of a session that is linked upstream.
	link        mcp.Link     // nil for others
	conn        *Conn        // what belongs to no call is sent on it; nil over Streamable HTTP
	unsolicited *eventStream // over Streamable HTTP: likewise

	subscriptions subscriptions

	memory mcp.Room // of what its client says of itself, and of its streams; set by reserve, then guarded by streams.mu

	uses   int           // guarded by sessions.mu
	ending bool          // guarded by sessions.mu
	over   chan struct{} // closed by sessions when the session's end is done

	// mu guards the fields below. It is held for map work only.
	mu        sync.Mutex
	cancels   map[int]context.CancelFunc // of what context returned
	lives     int
	last      uint64               // the last call's n
	calls     map[wire.ID]*request // in flight; nil after close
	pending   map[int64]*pendingInput
	lastInput int64 // the last question's id
	level     spec.LogLevel
	idle      chan struct{} // closed when the last call ends; nil unless somebody waits
	streams   streams       // over Streamable HTTP

	running sync.WaitGroup // calls, and what initialized starts
}

// A handshake is what initialize settled.
type handshake struct {
	revision     spec.Revision
	capabilities json.RawMessage // the client's, in the neutral form
	info         json.RawMessage // the client's
	offered      mcp.ServerCapabilities
}

// errSessionEnded is why calls end with their session.
var errSessionEnded = errors.New("the session has ended")

// errCancelledByClient is why a call ends that its client cancelled: it has no
// answer.
var errCancelledByClient = errors.New("cancelled by the client")

func (f *Front) newSession(id SessionID, name string, share mcp.Share, h handshake, c *Conn) *session {
	s := &session{
		front:     f,
		id:        id,
		name:      name,
		principal: share.Principal,
		share:     share,
		handshake: h,
		conn:      c,
		cancels:   make(map[int]context.CancelFunc),
		over:      make(chan struct{}),
		calls:     make(map[wire.ID]*request),
		pending:   make(map[int64]*pendingInput),
		level:     f.opts.LogLevel,
	}
	mail := (*fanout.Mailbox)(nil)
	if c != nil {
		mail = c.mail
	}
	s.subscriptions.init(s, mail)
	s.streams.init(s)
	return s
}

// sessionSize is what a session takes beside what its client says of itself, in bytes.
const sessionSize = 4 << 10

// takeMemory takes memory for the session, which close gives back.
func (s *session) takeMemory() (err error) {
	s.memory, err = mcp.Take(s.front.opts.Memory, s.share, sessionSize+len(s.info)+len(s.capabilities))
	return err
}

// close cancels what is in flight and waits for it, and leaves nothing of the
// session behind.
func (s *session) close() {
	s.mu.Lock()
	calls, cancels := s.calls, s.cancels
	s.calls, s.cancels = nil, nil
	s.mu.Unlock()
	for _, cancel := range cancels {
		cancel()
	}
	for _, c := range calls {
		c.cancel(errSessionEnded)
	}
	s.subscriptions.close()
	if s.link != nil {
		s.link.Close()
		s.running.Wait() // calls are told on their streams that there will be no answer
	}
	s.streams.close()
	s.running.Wait()
	s.streams.releaseMemory()
}

// context returns one that ends with the session, for one of its goroutines.
func (s *session) context() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		cancel(errSessionEnded)
		return ctx, func() {}
	}
	s.lives++
	n := s.lives
	s.cancels[n] = func() { cancel(errSessionEnded) }
	return ctx, func() {
		cancel(nil)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.cancels, n) // of nil too
	}
}

// neutral returns the neutral request that m is.
func (s *session) neutral(m *wire.Message) *mcp.Request {
	s.mu.Lock()
	level := s.level
	s.mu.Unlock()
	return &mcp.Request{
		Method:        m.Method,
		Params:        m.Params,
		Extra:         m.Extra,
		Era:           spec.Legacy,
		Revision:      s.revision,
		Capabilities:  s.capabilities,
		ClientInfo:    s.info,
		Principal:     s.principal,
		Share:         s.share,
		Memory:        s.front.opts.Memory,
		Session:       s.name,
		LogLevel:      level,
		ProgressToken: wire.Get(wire.Get(m.Params, "_meta"), spec.MetaProgressToken),
	}
}

// serve serves a request on a goroutine of the session's: it does not end with the
// connection that it came on. Its answer goes to w.
func (s *session) serve(m *wire.Message, w replyWriter) {
	if s.link != nil {
		s.serveLinked(m, w)
		return
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &request{session: s, id: m.ID, w: w, cancel: cancel}
	if err := s.admit(r, m); err != nil {
		cancel(nil)
		r.refuse(err)
		return
	}
	go func() { // ends when the handler returns, which close makes it
		defer s.running.Done()
		defer cancel(nil)
		r.serve(ctx, m)
	}()
}

// spawn runs f on a goroutine of the session's, unless the session has ended.
func (s *session) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls != nil {
		s.running.Go(f) // close waits for it
	}
	return s.calls != nil
}

// admit takes memory for a request and counts it in, or refuses it.
func (s *session) admit(r *request, m *wire.Message) (err error) {
	if r.memory, err = mcp.Take(s.front.opts.Memory, s.share, len(m.Text)); err != nil {
		return err
	}
	if err = s.add(r); err != nil {
		r.memory.Release()
	}
	return err
}

func (s *session) add(r *request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.calls == nil:
		return wire.Errorf(spec.CodeSessionNotFound, "%v; initialize anew", errSessionEnded)
	case s.calls[r.id] != nil:
		return wire.Errorf(spec.CodeInvalidRequest, "a request with the id %s is in flight; take another id", r.id)
	case len(s.calls) >= maxCalls:
		s.front.opts.Metrics.Limit("client_calls")
		s.running.Go(func() { // not under the lock
			s.front.log.Warn("request refused: too many in flight", "session", s.name, "limit", maxCalls)
		})
		return mcp.RefuseForNow("%d requests of this session are in flight, the limit; wait for some", maxCalls)
	}
	s.last++
	r.n = s.last
	s.calls[r.id] = r
	s.running.Add(1) // here, where close is yet to look
	return nil
}

func (s *session) remove(r *request) {
	r.memory.Release()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, r.id) // of nil too
	if len(s.calls) == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// waitIdle waits until no request is in flight, or ctx ends.
func (s *session) waitIdle(ctx context.Context) error {
	s.mu.Lock()
	if len(s.calls) == 0 {
		s.mu.Unlock()
		return nil
	}
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	quiet := s.idle
	s.mu.Unlock()
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// notified handles a notification.
func (s *session) notified(m *wire.Message) {
	switch m.Method {
	case spec.NotifyInitialized:
		s.subscriptions.begin()
	case spec.NotifyCancelled:
		s.cancelled(m.Params)
	case spec.NotifyRootsListChanged:
		// Roots are asked for when they are needed.
	default:
		s.front.opts.Metrics.Dropped("client notification")
	}
}

// cancelled cancels a call. It has no answer, and neither has the cancellation.
//
// Spec: 2025-11-25, basic/utilities/cancellation, Behavior Requirements.
func (s *session) cancelled(params []byte) {
	id, err := wire.ParseID(wire.Get(params, "requestId"))
	if err != nil {
		s.front.opts.Metrics.Dropped("client notification")
		return
	}
	s.mu.Lock()
	c := s.calls[id]
	s.mu.Unlock()
	if c == nil {
		s.front.opts.Metrics.Dropped("late cancellation")
		return
	}
	c.cancel(errCancelledByClient)
}
