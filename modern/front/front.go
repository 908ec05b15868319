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
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/settings"
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
	// Name is the server's name, for errors and logs. Required.
	Name string
	// Handler serves requests, Describer answers server/discover, Subscriber serves listen
	// streams. Required.
	Handler    mcp.Handler
	Describer  mcp.Describer
	Subscriber mcp.Subscriber
	// Admit sets the profile of a checked request, or refuses the request. Required.
	Admit func(*mcp.Request) error
	// Memory bounds the memory for clients. Nil means no bound.
	Memory mcp.Memory

	// Revisions are all revisions of the endpoint, newest first, for discovery and errors.
	// Empty means the modern ones.
	Revisions []spec.Revision

	// Replicas says that there are others, and that requests which continue their calls don't
	// come here.
	Replicas bool
	// WriteTimeout bounds a write to a client; after that, the stream ends. Zero means
	// DefaultWriteTimeout.
	WriteTimeout time.Duration
	// KeepAlive is the interval of comments on an idle stream. Zero means
	// DefaultKeepAlive.
	KeepAlive time.Duration
	// Limits bound the resources in the filter of one listen stream, and the parked calls.
	Limits limits.Set
	// Numbers says that clients are other replicas: those that ask get numbers of changes, see
	// spec.MetaNumbers.
	Numbers bool
	// MaxInFlight bounds the requests in flight of one Conn, including listen streams.
	// Zero means DefaultMaxInFlight.
	MaxInFlight int

	// Settings are what is to be heeded on the way to the server. A Gather of zero means
	// DefaultGather, a ParkedTTL of zero DefaultParkedTTL.
	Settings settings.Server
	// Upstream returns the era of the server behind Handler, spec.Unknown while it is
	// unknown. Nil means legacy.
	Upstream func() spec.Era
	// Group says that several servers are behind Handler, which may be of both eras. MemberEra
	// returns the era of the one that a request is for, spec.Unknown if that is not certain; nil
	// means that it never is.
	Group     bool
	MemberEra func(*mcp.Request) spec.Era

	// Streams serves listen streams over HTTP independently of their handlers, which saves
	// memory. Its owner waits for them before it closes the Front. Nil means that handlers
	// return when their streams have ended.
	Streams *downstream.Streams

	// Sealer encrypts requestStates. Nil means one with a random key.
	Sealer *requeststate.Sealer

	Logger  *slog.Logger // nil discards
	Metrics mcp.Metrics  // nil counts nothing
	// Quirks say what clients may do against the protocol, and are told that they did; nil
	// tolerates it untold.
	Quirks *quirks.Recorder
}

// A Front serves the modern clients of one server.
type Front struct {
	opts    Options
	schemas *protocol.SchemaCache
	clean   *cleanLists
	parked  *parkedCalls
	limits  *downstream.LimitLog // of what clients are refused
}

// New returns a Front. It starts nothing.
func New(opts Options) (*Front, error) {
	if opts.Name == "" || opts.Handler == nil || opts.Describer == nil || opts.Subscriber == nil || opts.Admit == nil {
		return nil, errors.New("modern/front: New: Name, Handler, Describer, Subscriber and Admit are required")
	}
	if len(opts.Revisions) == 0 {
		opts.Revisions = spec.Revisions(spec.Modern)
	}
	opts.WriteTimeout = cmp.Or(opts.WriteTimeout, DefaultWriteTimeout)
	opts.KeepAlive = cmp.Or(opts.KeepAlive, DefaultKeepAlive)
	opts.MaxInFlight = cmp.Or(opts.MaxInFlight, DefaultMaxInFlight)
	if opts.Upstream == nil {
		opts.Upstream = func() spec.Era { return spec.Legacy }
	}
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	opts.Metrics = cmp.Or[mcp.Metrics](opts.Metrics, mcp.NoMetrics{})
	opts.Settings.Gather = cmp.Or(opts.Settings.Gather, DefaultGather)
	opts.Settings.ParkedTTL = cmp.Or(opts.Settings.ParkedTTL, DefaultParkedTTL)
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
	clean, err := newCleanLists()
	if err != nil {
		return nil, err
	}
	f := &Front{opts: opts, schemas: schemas, clean: clean, limits: downstream.NewLimitLog(opts.Name, opts.Metrics, opts.Logger.With("upstream", opts.Name))}
	f.parked = newParkedCalls(f)
	return f, nil
}

// Close ends the parked calls, and waits for them. Call it after requests and listen
// streams have ended.
func (f *Front) Close() { f.parked.close(mcp.ErrShutdown) }

// ServeMessage serves one posted request or notification with a modern envelope or header.
// sender has posted it. It returns when the response was written; a listen stream may
// continue, see [Options.Streams].
//
// Spec: 2026-07-28, basic/transports/streamable-http, Sending Messages.
func (f *Front) ServeMessage(w http.ResponseWriter, r *http.Request, m *wire.Message, sender mcp.Sender) {
	if m.Kind() == wire.Notification {
		// No notification over HTTP has a meaning: clients cancel by closing the
		// response, and an id in notifications/cancelled may be another client's
		// (all SDKs count from the same number).
		f.drop("client notification")
		w.WriteHeader(http.StatusAccepted)
		return
	}
	p := newHTTPReply(f, w, r, m.ID)
	defer p.res.Close()
	req, err := f.newRequest(r.Header, m, sender)
	p.observe(req, m)
	if err == nil {
		err = f.serveHTTP(r, req, p)
	}
	if err != nil {
		p.fail(err)
	}
	p.trace.End(err)
}

// serveHTTP serves an admitted request over HTTP.
func (f *Front) serveHTTP(r *http.Request, req *mcp.Request, p *httpReply) error {
	if !p.acceptable(req.Method) {
		p.notAcceptable()
		return nil
	}
	if p.forms.json != p.forms.stream {
		f.opts.Quirks.Met(quirks.ModernAccept, mcp.ClientName(req.ClientInfo))
	}
	if err := f.checkParams(r.Header, req); err != nil {
		return err
	}
	req.ParamHeaders = f.unverified(r.Header, req)
	return f.serve(r.Context(), req, &p.reply)
}

// newRequest returns the request of a message, with its profile, once the message was checked
// against its envelope and headers. h is nil if messages have no headers.
func (f *Front) newRequest(h http.Header, m *wire.Message, sender mcp.Sender) (*mcp.Request, error) {
	outdone := false // the header, by the envelope
	if h != nil {
		var err error
		if outdone, err = f.checkVersionHeader(h, m); err != nil {
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
	if err := f.checkName(h, m); err != nil {
		return nil, err
	}
	if outdone {
		f.opts.Quirks.Met(quirks.EnvelopeUnderLegacyHeader, mcp.ClientName(req.ClientInfo))
	}
	req.Principal, req.Identity, req.Share, req.Memory = sender.Principal, sender.Identity, sender.Share, f.opts.Memory
	req.ID, req.Arrival = m.ID, sender.Arrival
	return req, f.opts.Admit(req)
}

// exists reports whether a method exists, as far as is known here. Of those of tasks only the
// Handler knows where the extension is enabled.
//
// Spec: tasks extension 2026-07-28, Supported Methods.
func (f *Front) exists(method string) bool {
	if !strings.HasPrefix(method, spec.MethodTasksPrefix) {
		return !spec.LegacyOnly(method)
	}
	return spec.OnTask(method) && f.opts.Settings.HoldsTasks()
}

// serve serves a request. The caller sends an error as the response, unless
// there was a response already.
func (f *Front) serve(ctx context.Context, req *mcp.Request, p *reply) error {
	switch {
	case req.Method == spec.MethodListen:
		return f.listen(ctx, req, p)
	case req.Method == spec.MethodDiscover:
		return f.discover(ctx, req, p)
	case f.mayPark(ctx, req):
		return f.serveParkable(ctx, req, p)
	case spec.Undefined(req.Method):
		return f.serveExtension(ctx, req, p)
	}
	p.writer.keepAlive()
	res, err := f.opts.Handler.Serve(ctx, req, p)
	p.writer.stopKeepAlive()
	if err != nil {
		return err
	}
	defer res.Release()
	if err = p.result(req, res); err != nil {
		res.Lost()
	}
	return err
}

// drop counts a client's message that is not delivered.
func (f *Front) drop(reason string) { f.opts.Metrics.Dropped(f.opts.Name, reason) }

// limit counts a stream that ended because of a limit.
func (f *Front) limit(name string) { f.opts.Metrics.Limit(f.opts.Name, name) }
