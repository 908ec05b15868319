package front

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/eventstream"
)

// A session is the session of one client, over Streamable HTTP or on a connection.
type session struct {
	// Set at the handshake, read-only after.
	front   *Front
	id      SessionID // empty on a connection
	name    string    // for logs and profiles; it grants no access
	opener  mcp.Sender
	address string // from which it was opened; empty if nobody wants to know
	conn    *Conn  // for messages outside of calls; nil over Streamable HTTP
	handshake
	service // set again if the session is relayed

	usage         usage // in the table of sessions
	calls         downstream.InFlight[*request]
	inputs        inputs
	subscriptions subscriptions
	streams       *eventstream.Streams // over Streamable HTTP

	// mu guards the fields below. It is held for map work only.
	mu     sync.Mutex
	level  spec.LogLevel
	ctx    context.Context         // of its goroutines; nil before the first
	cancel context.CancelCauseFunc // of ctx
	ended  bool
	visits []string // ids of elicitations that were required, and are not complete

	outside *outside // where its tasks ask; nil before the first

	running sync.WaitGroup // its goroutines except those of calls
}

// A handshake is the outcome of initialize.
type handshake struct {
	revision     spec.Revision
	capabilities json.RawMessage // the client's, in neutral form
	info         json.RawMessage // the client's
	offered      mcp.ServerCapabilities
	opened       int64 // in Unix seconds
}

// errSessionEnded is why calls end with their session.
var errSessionEnded = errors.New("the session has ended")

// errCancelledByClient is why a call ends that its client cancelled: it has no response.
var errCancelledByClient = errors.New("cancelled by the client")

// errGone is why a call ends that its client has abandoned. The client gets it if it comes
// back after all.
var errGone error = wire.Errorf(spec.CodeInternal, "the call was cancelled, because its response had no connection for %v; send it again if that is safe", goneTime)

func (f *Front) newSession(id SessionID, name string, sender mcp.Sender, h handshake, c *Conn) *session {
	address := ""
	if sender.Arrival != nil {
		address = sender.Arrival.Client
	}
	sender.Arrival = nil // that of its first message alone
	s := &session{front: f, id: id, name: name, opener: sender, address: address, handshake: h, conn: c, level: f.opts.Settings.Level()}
	s.opened = time.Now().Unix()
	mail := (*fanout.Mailbox)(nil)
	if c != nil {
		mail = c.mail
	}
	s.service = bridged{s}
	s.subscriptions.init(s, mail)
	s.streams = eventstream.New(&f.streams, name, func() { f.sessions.end(s, endedStuck) })
	return s
}

// sessionSize is the memory of a session without what its client declared, in bytes.
const sessionSize = 4 << 10

// takeMemory reserves memory for the session, which close gives back.
func (s *session) takeMemory() error {
	return s.streams.Reserve(s.front.opts.Memory, s.opener.Share, sessionSize+len(s.info)+len(s.capabilities))
}

// close cancels all calls, waits for them, and removes everything of the session.
func (s *session) close() {
	s.mu.Lock()
	s.ended = true
	end := s.cancel
	s.mu.Unlock()
	if end != nil {
		end(errSessionEnded)
	}
	for _, r := range s.calls.Close() {
		r.Cancel(errSessionEnded)
	}
	s.subscriptions.close()
	s.closeUpstream()
	s.streams.Close()
	s.wait()
	s.streams.Release()
	if to := s.front.opts.Clients; to != nil && !s.hasOwnUpstream() {
		s.follow(to.ClientLeft, &wire.Message{})
	}
}

// An Ended is a session that has ended.
type Ended struct {
	Name    string // grants no access
	Opener  mcp.Sender
	Address string // from which it was opened; empty if it is not known
	Info    []byte // the client's name and version, JSON
	Opened  time.Time
	Reason  string
}

// tellEnd tells of the end of the session.
func (s *session) tellEnd(why string) {
	if f := s.front.opts.Ended; f != nil {
		f(&Ended{Name: s.name, Opener: s.opener, Address: s.address, Info: s.info, Opened: time.Unix(s.handshake.opened, 0), Reason: why})
	}
}

// wait waits for all goroutines of the session.
func (s *session) wait() {
	_ = s.calls.Wait(context.Background()) // no error: the context does not end
	s.running.Wait()
}

// spawn runs f on a goroutine of the session, unless the session has ended. Its context
// ends with the session.
func (s *session) spawn(f func(context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	ctx := lifeLocked(s)
	s.running.Go(func() { f(ctx) }) // close waits for it
	return true
}

// lifeLocked returns a context that ends with a session.
func lifeLocked(s *session) context.Context {
	if s.ctx == nil {
		s.ctx, s.cancel = context.WithCancelCause(context.Background())
	}
	return s.ctx
}

// neutralRequest returns the neutral form of m, which from has sent.
func (s *session) neutralRequest(m *wire.Message, from origin) *mcp.Request {
	s.mu.Lock()
	level := s.level
	s.mu.Unlock()
	return &mcp.Request{
		Method:        m.Method,
		Params:        m.Params,
		Extra:         m.Extra,
		Plain:         m.Plain,
		Era:           spec.Legacy,
		Revision:      s.revision,
		Capabilities:  s.capabilities,
		ClientInfo:    s.info,
		Principal:     s.opener.Share.Principal,
		Identity:      from.identity,
		Observed:      mcp.Observed{ID: m.ID, Arrival: from.arrival, Meta: m.Meta},
		Share:         s.opener.Share,
		Memory:        s.front.opts.Memory,
		Session:       s.name,
		LogLevel:      level,
		ProgressToken: wire.Get(wire.Get(m.Params, "_meta"), spec.MetaProgressToken),
	}
}

// newCall returns the call of a request, which cancel cancels.
func (s *session) newCall(id wire.ID, cancel context.CancelCauseFunc) downstream.Call {
	return downstream.Call{ID: id, Cancel: cancel, Memory: mcp.NewReservation(s.front.opts.Memory, s.opener.Share)}
}

// enter reserves memory for a request and registers it, or refuses it.
func (s *session) enter(r *request, m *wire.Message) error {
	_, err := s.calls.Enter(r, len(m.Text), maxCalls)
	switch err {
	case downstream.ErrClosed:
		return wire.Errorf(spec.CodeSessionNotFound, "%v; initialize anew", errSessionEnded)
	case downstream.ErrSameID:
		return wire.Errorf(spec.CodeInvalidRequest, "a request with the id %s is in flight; use another id", r.ID)
	case downstream.ErrFull:
		s.front.limits.Hit("client_calls", "request refused: too many in flight", "session", s.name, "limit", maxCalls)
		return mcp.RefuseForNow("%d requests of this session are in flight, the limit; wait for some", maxCalls)
	}
	return err
}

// free removes a request: the client may use its id again at once.
func (s *session) free(r *request) {
	r.Memory.Release()
	s.calls.Free(r)
}

// receiveNotification handles a notification.
func (s *session) receiveNotification(m *wire.Message) {
	switch m.Method {
	case spec.NotifyInitialized:
		s.subscriptions.begin()
	case spec.NotifyCancelled:
		s.cancelCall(m.Params)
	case spec.NotifyRootsListChanged:
		// They are asked for when a server needs them.
		if to := s.front.opts.Clients; to != nil && !s.follow(to.RootsChanged, m) {
			s.front.drop("client notification")
		}
	default:
		s.front.drop("client notification")
	}
}

// follow tells something of the client, with m as a request, and reports whether that was admitted.
func (s *session) follow(to func(*mcp.Request), m *wire.Message) bool {
	req := s.neutralRequest(m, originOf(s.opener))
	if err := s.front.opts.Admit(req); err != nil {
		return false
	}
	to(req)
	return true
}

// cancelCall handles notifications/cancelled. The cancelled call has no response.
//
// Spec: 2025-11-25, basic/utilities/cancellation, Behavior Requirements.
func (s *session) cancelCall(params []byte) {
	id, err := wire.ParseID(wire.Get(params, "requestId"))
	if err != nil {
		s.front.drop("client notification")
		return
	}
	r, ok := s.calls.Find(id)
	if !ok {
		s.front.drop("late cancellation")
		return
	}
	r.Cancel(errCancelledByClient)
}
