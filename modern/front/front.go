package front

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
)

// Defaults of Options, but for limits that package limits declares.
const (
	DefaultWriteTimeout = 10 * time.Second
	DefaultKeepAlive    = 15 * time.Second
	DefaultMaxInFlight  = 1000

	DefaultGather    = 20 * time.Millisecond
	DefaultParkedTTL = 10 * time.Minute
)

// Options configure a Front.
type Options struct {
	// Name is the server's, for errors and logs. Required.
	Name string
	// Handler serves requests, Describer discovery, Subscriber listen streams.
	// Required.
	Handler    mcp.Handler
	Describer  mcp.Describer
	Subscriber mcp.Subscriber
	// Admit puts a checked request into its profile, or refuses it. Required.
	Admit func(*mcp.Request) error
	// Memory is taken from for what is kept. Nil means that there is no bound.
	Memory mcp.Memory

	// Revisions are all that the endpoint serves, newest first, for discovery
	// and for refusals. Empty means the modern ones.
	Revisions []spec.Revision

	// WriteTimeout is how long a write to a client may take before the client
	// counts as stale. Zero means DefaultWriteTimeout.
	WriteTimeout time.Duration
	// KeepAlive is the time between comments on a stream that has nothing else
	// to say. Zero means DefaultKeepAlive.
	KeepAlive time.Duration
	// MaxTopics bounds the filter of one listen stream. Zero means the
	// default of limits.ListenTopics.
	MaxTopics int
	// MaxInFlight bounds the requests, listen streams among them, that one Conn has
	// in flight. Zero means DefaultMaxInFlight.
	MaxInFlight int

	// NoTasks says that the tasks extension does not pass, whatever the server's era.
	NoTasks bool
	// Upstream tells the era of what is behind Handler, spec.Unknown as long as that
	// is not known. Nil means legacy.
	Upstream func() spec.Era

	// Streams makes listen streams over HTTP independent of their handlers, and of the
	// memory that these take. Its owner waits for them before it closes the Front.
	// Nil means that handlers return when their streams have ended.
	Streams *downstream.Streams

	// Gather is how long questions of a server are collected before they go out
	// together. Zero means DefaultGather.
	Gather time.Duration
	// ParkedTTL is how long a call waits for its client's answers. Zero means
	// DefaultParkedTTL.
	ParkedTTL time.Duration
	// MaxParked bounds the calls that wait for answers, MaxParkedEach those of
	// one share. Zero means the defaults of limits.Parked and limits.ParkedEach.
	MaxParked, MaxParkedEach int
	// Sealer seals requestStates. Nil means one with a random key.
	Sealer *requeststate.Sealer

	Logger  *slog.Logger // nil discards
	Metrics mcp.Metrics  // nil counts nothing
}

// A Front serves modern clients of one server.
type Front struct {
	opts    Options
	schemas *protocol.SchemaCache
	parked  *parkedCalls
}

// New returns a Front. It starts nothing.
func New(opts Options) (*Front, error) {
	if opts.Name == "" || opts.Handler == nil || opts.Describer == nil || opts.Subscriber == nil || opts.Admit == nil {
		return nil, errors.New("modern/front: New: name, handler, describer, feed and admit are required")
	}
	if len(opts.Revisions) == 0 {
		opts.Revisions = spec.Revisions(spec.Modern)
	}
	opts.WriteTimeout = cmp.Or(opts.WriteTimeout, DefaultWriteTimeout)
	opts.KeepAlive = cmp.Or(opts.KeepAlive, DefaultKeepAlive)
	opts.MaxTopics = cmp.Or(opts.MaxTopics, int(limits.ListenTopics.Default))
	opts.MaxInFlight = cmp.Or(opts.MaxInFlight, DefaultMaxInFlight)
	if opts.Upstream == nil {
		opts.Upstream = func() spec.Era { return spec.Legacy }
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Metrics == nil {
		opts.Metrics = mcp.NoMetrics{}
	}
	opts.Gather = cmp.Or(opts.Gather, DefaultGather)
	opts.ParkedTTL = cmp.Or(opts.ParkedTTL, DefaultParkedTTL)
	opts.MaxParked = cmp.Or(opts.MaxParked, int(limits.Parked.Default))
	opts.MaxParkedEach = cmp.Or(opts.MaxParkedEach, int(limits.ParkedEach.Default))
	var err error
	if opts.Sealer == nil {
		if opts.Sealer, err = requeststate.NewSealer(); err != nil {
			return nil, err
		}
	}
	schemas, err := protocol.NewSchemaCache()
	if err != nil {
		return nil, err
	}
	f := &Front{opts: opts, schemas: schemas}
	f.parked = newParkedCalls(f)
	return f, nil
}

// Close ends the calls that wait for their clients' answers, and waits for them.
// Requests and listen streams must have ended.
func (f *Front) Close() { f.parked.close(mcp.ErrShutdown) }

// ServeMessage serves one posted request or notification whose envelope or
// header is modern. sender is whoever posted it. It returns when the answer
// was written; a listen stream may go on, see [Options.Streams].
//
// Spec: 2026-07-28, basic/transports/streamable-http, Sending Messages.
func (f *Front) ServeMessage(w http.ResponseWriter, r *http.Request, m *wire.Message, sender mcp.Sender) {
	if m.Kind() == wire.Notification {
		// Nothing a client can notify over HTTP means anything here: to cancel
		// is to close the response, and ids in notifications/cancelled are
		// everybody's (all SDKs count from the same number).
		f.drop("client notification")
		w.WriteHeader(http.StatusAccepted)
		return
	}
	p := newHTTPReply(f, w, r, m.ID)
	defer p.res.Close()
	req, err := f.admit(r.Header, m, sender)
	if err == nil && !p.acceptable(req.Method) {
		p.notAcceptable()
		return
	}
	if err == nil {
		err = f.checkParams(r.Header, req)
	}
	if err == nil {
		req.ParamHeaders = f.unverified(r.Header, req)
	}
	if err == nil {
		err = f.serve(r.Context(), req, &p.reply)
	}
	if err != nil {
		p.fail(err)
	}
}

// admit checks a request against its own envelope and headers, and puts it into
// its profile. h is nil where messages have no headers.
func (f *Front) admit(h http.Header, m *wire.Message, sender mcp.Sender) (*mcp.Request, error) {
	if h != nil {
		if err := checkVersionHeader(h, m); err != nil {
			return nil, err
		}
	}
	req, err := f.readEnvelope(m)
	if err != nil {
		return nil, err
	}
	if err := checkMethod(h, m); err != nil {
		return nil, err
	}
	if !f.exists(m.Method) {
		return nil, mcp.Refuse(spec.CodeMethodNotFound,
			"method %q does not exist in revision %s", m.Method, req.Revision)
	}
	if err := checkName(h, m); err != nil {
		return nil, err
	}
	req.Principal, req.Identity, req.Share, req.Memory = sender.Principal, sender.Identity, sender.Share, f.opts.Memory
	return req, f.opts.Admit(req)
}

// exists reports whether there is a method, as far as is known here. That of tasks exist
// where the extension passes, and those whose server's era is not known may.
//
// Spec: tasks extension 2026-07-28, Supported Methods.
func (f *Front) exists(method string) bool {
	if !strings.HasPrefix(method, spec.MethodTasksPrefix) {
		return !spec.LegacyOnly(method)
	}
	return spec.OnTask(method) && !f.opts.NoTasks && f.opts.Upstream() != spec.Legacy
}

// serve has an admitted request served. An error is the response, unless there was
// one already.
func (f *Front) serve(ctx context.Context, req *mcp.Request, p *reply) error {
	switch req.Method {
	case spec.MethodListen:
		return f.listen(ctx, req, p)
	case spec.MethodDiscover:
		return f.discover(ctx, req, p)
	}
	if f.mayPark(ctx, req) {
		return f.serveParkable(ctx, req, p)
	}
	if spec.Undefined(req.Method) {
		return f.serveExtension(ctx, req, p)
	}
	p.writer.keepAlive()
	res, err := f.opts.Handler.Serve(ctx, req, p)
	p.writer.stopKeepAlive()
	if err != nil {
		return err
	}
	defer res.Release()
	return p.result(req, res)
}

// drop counts a message of a client that is not delivered.
func (f *Front) drop(reason string) { f.opts.Metrics.Dropped(f.opts.Name, reason) }

// limit counts a request refused, or a stream or a session ended, at a limit.
func (f *Front) limit(name string) { f.opts.Metrics.Limit(f.opts.Name, name) }
