package mcp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Request is one client request, neutral of eras.
type Request struct {
	// What is asked.
	Method string
	Params json.RawMessage // an object as it came, or nil
	Extra  []byte          // unknown members of the envelope, as in wire.Message
	// ParamHeaders are headers that may mirror parameters of the tool that is called,
	// whose schema is not known here, or of a method that is not: only the server can
	// judge them. Read-only.
	ParamHeaders map[string][]string

	// Who asks, by its own account.
	Era          spec.Era
	Revision     spec.Revision
	Capabilities json.RawMessage // an object; nil reads as {}
	ClientInfo   json.RawMessage // nil if not given

	// Who asks, as far as was verified; and for which pool of upstream state.
	Principal Principal
	Profile   Profile // set by the gateway
	// Share is whose the request is where each may have so much of something, Memory
	// the memory that it takes from.
	Share  Share
	Memory Memory

	// Session names the legacy session that the request came in, by a name that
	// grants nothing; empty for a modern client. Legacy upstreams get a session
	// for each.
	Session string

	// What the caller wants to hear meanwhile.
	LogLevel      spec.LogLevel   // empty: no log messages
	ProgressToken json.RawMessage // nil: no progress
}

// A Principal names the authenticated party. It is part of every pool key, cache
// key and stream; [Anonymous] is one too.
type Principal string

// Anonymous is the principal of a client that showed no credentials.
const Anonymous Principal = "anonymous"

// A Profile names a pool of upstream state that requests may share: server,
// isolation key, and the client's capabilities in canonical form.
type Profile struct {
	// Scope is the server's name and a digest of the rest: a string that means
	// the same in every replica.
	Scope string
	// Share names the clients whose use of the upstream counts together, where limits
	// are for each. It says nothing of what may be shared.
	Share Share
	// Principal is who the state is held for; empty where it is for all.
	Principal Principal
	// Capabilities is what the upstream is told that its client can do.
	Capabilities json.RawMessage
	// ClientInfo is what the upstream is told of its client; nil for the
	// gateway's own.
	ClientInfo json.RawMessage
	// Revision is what a session upstream is opened with; empty for the newest.
	Revision spec.Revision
	// Single asks for upstream state of the request's own, ended with it.
	Single bool
}

// A Result is the success of a request. Whoever gets one calls Release once,
// after the last use of Body.
type Result struct {
	Body  json.RawMessage // an object
	Extra []byte          // unknown members of the envelope, as in wire.Message
	// Outline spares whoever looks into Body a walk; it may be nil.
	Outline *wire.Outline

	// Era is the upstream's: it says which members the body can be trusted to
	// have on purpose.
	Era spec.Era
	// ServerInfo is the upstream's account of itself; nil if unknown.
	ServerInfo json.RawMessage
	// Cache is how long and by whom the result may be kept, where its era has no
	// way to say so.
	Cache CacheHint

	release func()
}

// NewResult returns a Result over body. release, which may be nil, gives body
// back.
func NewResult(body json.RawMessage, release func()) *Result {
	return &Result{Body: body, release: release}
}

// OnRelease has f called when the Result is released, before its bytes are given
// back: for what need not keep the client waiting.
func (r *Result) OnRelease(f func()) {
	before := r.release
	r.release = func() {
		f()
		if before != nil {
			before()
		}
	}
}

// Release gives the bytes back. The Result must not be used any more.
func (r *Result) Release() {
	if r != nil && r.release != nil {
		r.release()
		r.release, r.Body = nil, nil
	}
}

// A CacheHint says how long a result stays fresh, in milliseconds, and whether
// for everybody.
//
// Spec: 2026-07-28, server/utilities/caching.
type CacheHint struct {
	TTL    int64
	Public bool
}

// A Notification is a progress or log message that belongs to one request.
type Notification struct {
	Method string
	Params json.RawMessage // an object; progress carries the caller's own token
}

// An InputRequest is a server's request to the client: elicitation, sampling, roots.
type InputRequest struct {
	Method string
	Params json.RawMessage // nil if none
}

// An InputResponse is what the client said to one InputRequest: a result or an error.
type InputResponse struct {
	Result json.RawMessage
	Err    *wire.Error
}

// ErrCannotAsk says that the caller has no way to be asked.
var ErrCannotAsk = errors.New("the client can't be asked")

// A Caller is the way back to the caller of a request while it is served.
// It is safe for concurrent use until the Handler returns, and not after.
type Caller interface {
	// Notify passes a message on to the caller, in order. It returns an error
	// once the caller can't be reached, which ctx of Serve tells too.
	Notify(ctx context.Context, n Notification) error
	// RequestInput puts input requests to the caller, all at once, and waits for the answers,
	// in the same order. It returns [ErrCannotAsk] if the caller has no way to
	// be asked.
	RequestInput(ctx context.Context, reqs []InputRequest) ([]InputResponse, error)
}

// A Handler serves requests. The error is a [*wire.Error] where the upstream
// said no, a [*Refusal] where it was not asked, and anything else where serving
// failed; see [WireError].
//
// Serve returns when ctx ends; a cancelled request is cancelled upstream. It
// must not use c after returning.
type Handler interface {
	Serve(ctx context.Context, req *Request, c Caller) (*Result, error)
}

// A Description is an upstream's account of itself.
type Description struct {
	Capabilities json.RawMessage // an object
	ServerInfo   json.RawMessage // nil if the upstream gave none
	Instructions json.RawMessage // a string; nil if the upstream gave none
	// Cache is how long and by whom the description may be kept, where the
	// upstream's era has no way to say so.
	Cache CacheHint
}

// A Describer tells what an upstream is and can do, connecting to it if it has
// to. When the upstream is away the last known answer stands, and so it does
// when ctx has ended already: then nothing is connected. An error that wraps
// [ErrStarting] says that asking again will soon be worth it.
type Describer interface {
	Describe(ctx context.Context, req *Request) (*Description, error)
}

// An Upstream is all that a back offers.
type Upstream interface {
	Handler
	Describer
	Source
}
