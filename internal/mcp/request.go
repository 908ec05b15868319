package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Request is one client request in a form that does not depend on the era.
type Request struct {
	// The message.
	Method string
	Params json.RawMessage // an object as received, or nil
	Extra  []byte          // unknown members of the envelope, as in wire.Message
	Plain  wire.Plain      // of Params as they were received, as in wire.Message
	// ParamHeaders are headers that may repeat parameters of a tool whose schema is
	// unknown here, or of an unknown method. Only the server can check them. Read-only.
	ParamHeaders map[string][]string

	// The client, by its own account.
	Era spec.Era
	// BareMeta says that the _meta of Params has nothing but what every modern request may have:
	// revision, capabilities, client, log level and progress token.
	BareMeta bool
	// HoldsTasks says that the client's session was told of tasks of 2025-11-25, which it may hold: it
	// asks for one, about one, or for the tools that make some.
	HoldsTasks   bool
	Revision     spec.Revision
	Capabilities json.RawMessage // an object; nil reads as {}
	ClientInfo   json.RawMessage // nil if not given

	// The verified principal, its credential, which is nil for an anonymous client and for
	// requests of the gateway itself, and the pool of upstream state.
	Principal Principal
	Identity  *Identity
	Profile   Profile // set by the gateway
	// Share is the owner for limits per client, and Memory the memory that the request
	// uses.
	Share  Share
	Memory Memory

	// Aside sends to the client what belongs to a task, outside of the request and after it, while
	// the session lasts. It is set with HoldsTasks.
	Aside Caller

	// Passage is set by a group, for the members that it asks; nil at the endpoint of a server.
	Passage *Passage

	// Session identifies the legacy session of the request by a name that does not grant
	// access. It is empty for a modern client. Each one gets a session of its own with a
	// legacy server.
	Session string

	// The notifications that the caller requested.
	LogLevel      spec.LogLevel   // empty: no log messages
	ProgressToken json.RawMessage // nil: no progress

	Observed
}

// Observed is what observers of a request are told of it.
type Observed struct {
	// ID and Arrival are set for a message of a client.
	ID      wire.ID
	Arrival *trace.Arrival
	// Meta is the message's _meta if it may have a trace context; else nil.
	Meta json.RawMessage
	// Trace is set by the gateway when the request is admitted, and ended by whoever has it
	// admitted; it is nil while nobody observes.
	Trace *trace.Request
}

// A Principal is the name of the authenticated client. It is part of every pool key and
// cache key. [Anonymous] is a principal, too.
type Principal string

// Attr returns what a line in the log says of the principal: nothing of an anonymous client.
func (p Principal) Attr() slog.Attr {
	if p == Anonymous || p == "" {
		return slog.Attr{}
	}
	return slog.String("principal", string(p))
}

// Anonymous is the principal of a client without credentials.
const Anonymous Principal = "anonymous"

// AdminPrincipal is on whose behalf the requests are that the admin address sends.
const AdminPrincipal Principal = "admin"

// A Profile identifies a pool of upstream state that requests may share: the server, an
// isolation key, and the client's capabilities in canonical form.
type Profile struct {
	// Scope is the server's name and a digest of the other fields. It means the same in
	// every replica.
	Scope string
	// Share identifies the clients that share limits per client. It does not grant access
	// to shared state.
	Share Share
	// Principal is the owner of the state; empty if all principals share it.
	Principal Principal
	// Capabilities are the client capabilities that are declared to the server.
	Capabilities json.RawMessage
	// ClientInfo is the clientInfo that is sent to the server; nil for the gateway's own.
	ClientInfo json.RawMessage
	// Revision is the revision for opening an upstream session; empty for the newest.
	Revision spec.Revision
	// Single requests upstream state for this request only.
	Single bool
}

// A Result is the result of a successful request. The caller must call Release once,
// after the last use of Body.
type Result struct {
	Body  json.RawMessage // an object
	Extra []byte          // unknown members of the envelope, as in wire.Message
	// Outline is the outline of Body, or nil.
	Outline *wire.Outline

	// Era is the server's. It decides which members of the body have their meaning in the
	// specification.
	Era spec.Era
	// ServerInfo is the server's serverInfo; nil if unknown.
	ServerInfo json.RawMessage
	// Cache says how long the result may be cached and for whom, if its era can't express
	// that in the body.
	Cache CacheHint
	// Tool is the tool whose result it is, if the request asked for what a task came to; else empty.
	Tool string
	// StateLost says why the server may have lost what it had of the client before this
	// result; empty if it has not. The client is to be told.
	StateLost string

	judged, failed bool // see Failed

	lost    func() // is called if the client did not get the result; may be nil
	release func() // gives the body back; may be nil
	before  func() // is called before; may be nil
}

// NewResult returns a Result with body. release, which may be nil, releases body.
func NewResult(body json.RawMessage, release func()) *Result {
	return &Result{Body: body, release: release}
}

// Failed reports whether the result of a request has isError, as ToolFailed does. Whoever edits Body
// leaves that member as it is, so that it is looked for once.
func (r *Result) Failed(method string) bool {
	if !r.judged {
		r.judged, r.failed = true, ToolFailed(method, r.Body, r.Outline)
	}
	return r.failed
}

// OnRelease makes Release call f before it releases the body. Use it for work for which
// the client need not wait.
func (r *Result) OnRelease(f func()) {
	if first := r.before; first != nil {
		r.before = func() { f(); first() }
		return
	}
	r.before = f
}

// OnLost has Lost call f: the client must not be without the result for good.
func (r *Result) OnLost(f func()) { r.lost = f }

// Lost says that the client did not get the result. Release is called all the same.
func (r *Result) Lost() {
	if r != nil && r.lost != nil {
		r.lost()
	}
}

// Release releases the body. The Result must not be used afterwards.
func (r *Result) Release() {
	if r == nil {
		return
	}
	if before := r.before; before != nil {
		r.before = nil
		before()
	}
	if release := r.release; release != nil {
		r.release, r.Body = nil, nil
		release()
	}
}

// A CacheHint says how long a result is fresh, in milliseconds, and whether all
// principals may share it.
//
// Spec: 2026-07-28, server/utilities/caching.
type CacheHint struct {
	TTL    int64
	Public bool
}

// Tightest returns the hint of what was made of two results.
func (h CacheHint) Tightest(o CacheHint) CacheHint {
	return CacheHint{TTL: min(h.TTL, o.TTL), Public: h.Public && o.Public}
}

// A Notification is a progress or log message that belongs to one request.
type Notification struct {
	Method string
	Params json.RawMessage // an object; progress has the caller's own token
	// More says that another one follows at once, so that this one may be sent with that.
	More bool
}

// An InputRequest is a server's request to the client: elicitation, sampling, roots.
type InputRequest struct {
	Method string
	Params json.RawMessage // nil if none
	// Server is the server of a group that asks; empty for a single one. The client is told in
	// the _meta that its era has for that, under [spec.MetaServer].
	Server string
	// Revision is that of the session in which a legacy server asks; empty if a modern one does.
	Revision spec.Revision
}

// NoteInputs tells of input requests, or that they are answered.
func NoteInputs(r *trace.Request, k trace.Kind, qs []InputRequest) {
	for _, q := range qs {
		r.Event(k, q.Method)
	}
}

// An InputResponse is the client's response to one InputRequest: a result or an error.
type InputResponse struct {
	Result json.RawMessage
	Err    *wire.Error
}

// ErrCannotAsk reports that input requests can't be sent to the caller.
var ErrCannotAsk = errors.New("the client can't be asked")

// A Caller sends messages to the client of a request while the request is served. It is
// safe for concurrent use, and must not be used after the Handler has returned.
type Caller interface {
	// Notify sends notifications to the client, in order. It returns an error if the
	// client is no longer connected; the context of Serve ends then, too.
	Notify(ctx context.Context, n Notification) error
	// RequestInput sends all input requests to the client at once, waits, and returns the
	// responses in the same order. It returns [ErrCannotAsk] if they can't be sent.
	RequestInput(ctx context.Context, reqs []InputRequest) ([]InputResponse, error)
}

// Nobody is the Caller of what no client waits for.
type Nobody struct{}

// Notify implements [Caller].
func (Nobody) Notify(context.Context, Notification) error { return nil }

// RequestInput implements [Caller].
func (Nobody) RequestInput(context.Context, []InputRequest) ([]InputResponse, error) {
	return nil, ErrCannotAsk
}

// A Handler serves requests. The error is a [*wire.Error] if the server returned an
// error, a [*Refusal] if the request was not sent, and another error if serving failed;
// see [WireError].
//
// Serve returns when ctx ends; a cancelled request is cancelled upstream. It
// must not use c after returning.
type Handler interface {
	Serve(ctx context.Context, req *Request, c Caller) (*Result, error)
}

// A Description is a server's description of itself.
type Description struct {
	Capabilities json.RawMessage // an object
	ServerInfo   json.RawMessage // nil if the server gave none
	Instructions json.RawMessage // a string; nil if the upstream gave none
	// Cache says how long the description may be cached and for whom, if the server's era
	// can't express that.
	Cache CacheHint
}

// A Describer returns the description of a server, and connects to the server if
// necessary. If the server is unavailable, or if ctx has ended before the call, it
// returns the last known description. An error that wraps [ErrStarting] means that a
// later call may succeed soon.
type Describer interface {
	Describe(ctx context.Context, req *Request) (*Description, error)
}

// Known is a context that has ended. A [Describer] that gets it waits for nobody.
var Known = func() context.Context {
	ctx, end := context.WithCancel(context.Background())
	end()
	return ctx
}()

// An Upstream has the methods of a back for serving requests and subscriptions.
type Upstream interface {
	Handler
	Describer
	Source
}
