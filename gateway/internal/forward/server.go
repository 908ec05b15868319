package forward

import (
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/admission"
	"github.com/mcpbridge/mcpbridge/gateway/internal/sockets"
	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
)

// An Endpoint is where the requests of a transport are served, here and at the peer listeners
// of all replicas. The name of a server follows, unless there is only one.
type Endpoint string

// The endpoints of a server.
//
// Spec: 2024-11-05, basic/transports, HTTP with SSE.
const (
	Streamable Endpoint = "/mcp"     // Streamable HTTP, and WebSockets
	Events     Endpoint = "/sse"     // the streams of HTTP+SSE
	Messages   Endpoint = "/message" // what is posted to them
)

// Path returns where a server has the endpoint.
func (e Endpoint) Path(server string) string { return string(e) + "/" + server }

// ServerOptions describe a server. All are required but HoldFor, Untried and Remote.
type ServerOptions struct {
	Name    string
	Front   *legacyfront.Front // has its clients' sessions
	Back    mcp.Back
	Life    *admission.Lifetime
	Streams *downstream.Streams // of clients
	// Whole says that another replica can't verify a client's credential: what is known of
	// it is sent along.
	Whole bool

	// HoldFor has all calls of a principal served by one replica, for this long after the
	// last call. Zero means that each replica serves what it is asked.
	HoldFor time.Duration
	// ClaimFor returns the name by which replicas claim what a principal has at the server;
	// empty if each request has a session of its own.
	ClaimFor func(mcp.Principal) string
	// OwnSessions reports whether each legacy client has a session of its own at the server.
	OwnSessions func() bool
	// Untried reports whether nobody has asked the server here, and nothing is known of it from
	// other replicas, so that OwnSessions does not know. Nil means that it was tried.
	Untried func() bool

	// Remote returns the server at another replica, for what clients of groups here ask of it; nil
	// if others can't be asked.
	Remote func(to replicas.Replica) Remote

	// Parse parses a client's message. If it fails, the message has the id, if that is known.
	Parse func(text []byte) (wire.Message, error)
	// RefuseBody answers a request whose body can't be read.
	RefuseBody func(w http.ResponseWriter, r *http.Request, err error)
}

// A Server is one whose requests may be answered by other replicas. It is safe for concurrent
// use.
type Server struct {
	g *Group
	o ServerOptions
}

// Open returns a server of the Group. There is nothing to close.
func (g *Group) Open(o ServerOptions) *Server { return &Server{g, o} }

// A Request is a request to a server that was not served yet.
type Request struct {
	W      http.ResponseWriter
	R      *http.Request
	At     Endpoint
	Sender mcp.Sender
	// Moved says that it was forwarded for a session that has just been handed over; see
	// [peer.Envelope].
	Moved bool

	// Claimed is the era that the headers tell of: legacy if they name a session.
	Claimed spec.Era
	// Read reads the message of a POST, which is nil if the body is not a single one. It
	// reports false if it has refused the request.
	Read func() (m *wire.Message, era spec.Era, ok bool)
	// Peek reads the body of a POST, which can be forwarded all the same, and returns its era.
	// It reports false if it has refused the request.
	Peek func() (era spec.Era, ok bool)
	// Room takes the room of a WebSocket. It reports false if there is none, and it has
	// refused the request. If another replica answers, give is called with the WebSocket
	// once it has ended, or nil if there is none.
	Room func() (give func(sockets.Socket), ok bool)
}

func nothing() {}

// Elsewhere has a request answered by the replica that it belongs to, and reports whether it
// was answered: if not, it is answered here, and a session that this replica holds stays until
// release.
func (s *Server) Elsewhere(q *Request) (release func(), answered bool) {
	release, answered = s.bySession(q)
	if answered || q.Sender.Via != "" { // what was forwarded is answered here
		return release, answered
	}
	switch method := q.R.Method; {
	case q.At == Streamable && method == http.MethodPost:
		answered = s.byMessage(q)
	case q.At == Streamable && method == http.MethodGet && transport.IsUpgrade(q.R):
		answered = s.o.HoldFor > 0 && s.socketByPrincipal(q)
	case q.At == Events && method == http.MethodGet && headerEra(q.R) != spec.Modern:
		answered = s.o.HoldFor > 0 && s.eventsByPrincipal(q)
	}
	return release, answered
}

// byMessage has a message answered by the replica that holds the call which it continues, or
// that serves its principal.
func (s *Server) byMessage(q *Request) (answered bool) {
	view := s.g.opts.Peers.View()
	others := len(view.Members) > 1 || !view.KnowsAll(time.Now())
	if !others && s.o.HoldFor == 0 {
		return false
	}
	m, era, ok := q.Read()
	switch {
	case !ok:
		return true
	case m == nil:
		return false
	case others && era != spec.Legacy && s.byHolder(q, m): // a legacy client's session is asked for what it holds
		return true
	}
	return s.o.HoldFor > 0 && s.messageByPrincipal(q, m, era)
}

// byHolder forwards a request that continues a call which another replica holds, or is about a task
// of its. If that replica is gone, the front says so, or who has the server's tasks; if that is not known
// yet, the client is to try again.
func (s *Server) byHolder(q *Request, m *wire.Message) (answered bool) {
	instance := namedHolder(m.Method, m.Params)
	if instance == "" {
		return false
	}
	if s.g.mayLive(instance) {
		downstream.WriteBusy(q.W, m.ID, unheard())
		return true
	}
	to, lives := s.g.opts.Peers.Member(instance)
	return lives && !isGone(s.forward(q, peer.Forward{To: to, Body: m.Text}))
}

// mayLive reports whether a replica that was not heard of may live all the same: this one does not know all
// others yet.
func (g *Group) mayLive(instance string) bool {
	view := g.opts.Peers.View()
	_, lives := view.Member(instance)
	return instance != "" && !lives && instance != g.instance && !view.KnowsAll(time.Now())
}

// unheard is the error for what such a replica may hold.
func unheard() *wire.Error {
	return wire.Errorf(spec.CodeInternal, "%v; try again in a moment", errStranger)
}

// namedHolder returns the instance that a request names as that which holds what it is about: the
// call that it continues, the task, or the first of the tasks that a listen stream is to follow;
// empty if it names none.
func namedHolder(method string, params []byte) string {
	switch {
	case spec.OnTask(method):
		return peer.OfState(taskOf(params))
	case method == spec.MethodListen:
		for id := range wire.Elements(wire.Get(wire.Get(params, "notifications"), spec.FilterTaskIDs)) {
			return peer.OfState(wire.Unquote(id))
		}
		return ""
	}
	state, _ := wire.GetString(params, "requestState")
	return peer.OfState(state)
}

func taskOf(params []byte) string {
	id, _ := wire.GetString(params, "taskId")
	return id
}

// headerEra returns the era of the revision in the header, or spec.Unknown without one.
func headerEra(r *http.Request) spec.Era {
	return spec.Revision(r.Header.Get(spec.HeaderProtocolVersion)).Era()
}
