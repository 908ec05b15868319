package back

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/http1"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/status"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
	"github.com/mcpbridge/mcpbridge/modern/watch"
)

// maxScopes bounds the number of cached descriptions.
const maxScopes = 1024

// A Back serves requests of all clients from one modern server. It is an [mcp.Upstream].
// Its methods are safe for concurrent use.
type Back struct {
	// Set by New, read-only after.
	opts Options
	log  *slog.Logger
	link link
	// hide has the names of what is hidden from the server and clients; hideTasks also the
	// tasks extension.
	hide         []string
	hideTasks    []string
	tools        *protocol.SchemaCache
	taskTools    taskTools
	held         *heldTasks
	availability *upstream.Availability
	discovery    *discovery
	watches      *watch.Watches

	lastID     atomic.Int64 // of requests upstream: ids are unique over all connections
	negotiated atomic.Value // a spec.Revision; empty until the server has refused the default
	rawNames   atomic.Bool  // the server compares names outside ASCII without decoding them
}

// New checks opts and sets defaults. It starts nothing; see [Back.Start]. The caller must
// call Close.
func New(opts Options) (*Back, error) {
	if err := opts.Check(opts.fault()); err != nil {
		return nil, fmt.Errorf("modern/back: New: %w", err)
	}
	opts.Fill(spec.Modern)
	b := &Back{opts: opts, log: opts.Logger, availability: upstream.NewAvailability(opts.Logger)}
	b.hide = opts.Settings.Hidden()
	b.hideTasks = append(slices.Clone(b.hide), spec.ExtensionTasks)
	b.lastID.Store(opts.IDs)
	var err error
	if b.discovery, err = newDiscovery(b); err != nil {
		return nil, fmt.Errorf("modern/back: New: server %q: %w", opts.Name, err)
	}
	if b.tools, err = protocol.NewSchemaCache(); err != nil {
		return nil, fmt.Errorf("modern/back: New: server %q: %w", opts.Name, err)
	}
	if b.taskTools, err = newTaskTools(); err != nil {
		return nil, fmt.Errorf("modern/back: New: server %q: %w", opts.Name, err)
	}
	if b.held, err = newHeldTasks(b); err != nil {
		return nil, fmt.Errorf("modern/back: New: server %q: %w", opts.Name, err)
	}
	b.link = b.newLink()
	b.watches = watch.New(&b.opts.Options, b.openListen, b.isStarting, b.opts.Peer != nil)
	return b, nil
}

// newLink returns the link for the server's transport.
func (b *Back) newLink() link {
	if !b.overHTTP() {
		return newConnLink(&b.opts, b.unclaimed, b.availability.Report, func(scope string) { b.watches.Respond(scope) })
	}
	return newHTTPLink(&b.opts, b.unclaimed)
}

var _ mcp.Upstream = (*Back)(nil)

// Era returns spec.Modern.
func (b *Back) Era() spec.Era { return spec.Modern }

// overHTTP reports whether requests have headers and streams of their own.
func (b *Back) overHTTP() bool { return b.opts.URL != "" }

// Err returns nil if the last attempt to reach the server succeeded, or else the error:
// [mcp.ErrStarting] before the first attempt has ended.
func (b *Back) Err() error { return b.availability.Err() }

// Tell implements [status.Teller]. There are no sessions.
func (b *Back) Tell(u *status.Upstream) {
	u.Era, u.Transport, u.Holding = spec.Modern.String(), "connection", b.held.Tasks
	if b.overHTTP() {
		u.Transport = "http"
	}
	b.availability.Tell(u)
	if now, _ := b.availability.State(); now == upstream.Up {
		u.Revision = string(b.revision())
	}
}

// Start tries to reach the server in the background: at once, and whenever it is down,
// until Close. Start must be called at most once.
func (b *Back) Start() {
	b.availability.Start(func(ctx context.Context) { b.availability.Supervise(ctx, b.reach) })
}

// reach sends server/discover.
func (b *Back) reach(ctx context.Context) error { return b.discovery.discover(ctx, b.probeProfile()) }

// probeProfile returns a profile that no client has.
func (b *Back) probeProfile() mcp.Profile {
	return mcp.Profile{Scope: b.opts.Name + "/probe", Capabilities: []byte("{}")}
}

// Watch implements [mcp.Source].
func (b *Back) Watch(ctx context.Context, p mcp.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
	return b.watches.Watch(ctx, p, want)
}

// Describe implements [mcp.Describer] with the server's response to server/discover, which
// it caches for as long as the server allows. If there is a probe's description, it does
// not wait.
//
// Spec: 2026-07-28, server/discover; server/utilities/caching.
func (b *Back) Describe(ctx context.Context, req *mcp.Request) (*mcp.Description, error) {
	d, err := b.discovery.describe(ctx, req)
	if err != nil {
		return nil, err
	}
	d.Capabilities = b.visibleTo(d.Capabilities, req)
	return d, nil
}

// Close ends all connections and waits for everything that the Back started. Requests in
// flight fail. ctx bounds the wait for a graceful end.
func (b *Back) Close(ctx context.Context) error {
	b.discovery.stop()
	b.held.Close()
	b.availability.Close()
	b.watches.Close()
	err := b.link.close(ctx)
	b.discovery.close()
	return err
}

// unclaimed handles a notification on a request's stream that is not for its caller.
func (b *Back) unclaimed(c *upstreamCall, m *wire.Message) {
	if m.Method == spec.NotifyToolsListChanged {
		b.toolsChanged(c.scope)
	}
	if c.listens() {
		return // its client hears of it
	}
	b.opts.Metrics.Dropped(b.opts.Name, droppedAs(m.Method))
}

// toolsChanged forgets what is known of the tools of a profile; over a connection, whose only listen
// stream is of several, of all.
func (b *Back) toolsChanged(scope string) {
	b.tools.Forget(scope)
	b.taskTools.forget(scope, !b.overHTTP())
}

// droppedAs returns the name of a dropped notification in the metrics.
func droppedAs(method string) string {
	switch method {
	case spec.NotifyProgress:
		return "progress"
	case spec.NotifyMessage:
		return "log message"
	}
	return "unknown notification"
}

// revision returns the revision of requests.
func (b *Back) revision() spec.Revision {
	if r, ok := b.negotiated.Load().(spec.Revision); ok {
		return r
	}
	return spec.LatestModern
}

// renegotiated reports whether a server that refused a request's revision supports another
// one; further requests use that. It may be the one that was refused, because some servers
// refuse the first request whatever it is.
//
// Spec: 2026-07-28, basic/versioning, Protocol Version Negotiation.
func (b *Back) renegotiated(e *wire.Error) bool {
	if e.Code != spec.CodeUnsupportedVersion {
		return false
	}
	supported := wire.Get(e.Data, "supported")
	r := mutual(supported)
	if r == "" {
		b.opts.Doubt("it " + newUnsupportedRevision(supported).Error())
		return false
	}
	b.negotiated.Store(r)
	return true
}

// mutual returns the newest modern revision of a list that mcpbridge supports, or "".
func mutual(list []byte) spec.Revision {
	var best spec.Revision
	for v := range wire.Elements(list) {
		if r := spec.Revision(wire.Unquote(v)); r > best && slices.Contains(spec.Revisions(spec.Modern), r) {
			best = r
		}
	}
	return best
}

// ownCall returns a request of the gateway itself, on behalf of a profile. The caller calls
// EndOwn.
func (b *Back) ownCall(method string, params []byte, p mcp.Profile) *upstreamCall {
	of := upstream.Call{ID: b.lastID.Add(1), Method: method}
	b.opts.ObserveOwn(&of, spec.Modern, b.revision())
	req := &mcp.Request{Method: method, Params: params, Profile: p}
	e := b.envelopeOf(req, "", of.ID)
	e.trace = of.Exchange
	return b.call(of.ID, req, e, nil)
}

// call returns the upstreamCall with an id for a request, with an envelope and more edits of its params.
func (b *Back) call(id int64, req *mcp.Request, e envelope, more []wire.Edit) *upstreamCall {
	space := transport.GetBuffer(len(req.Params) + 512)
	defer transport.PutBuffer(space) // the frame is a copy
	params := upstreamParams(space, req, e, more)
	frame := make([]byte, 0, len(params)+len(req.Method)+len(req.Extra)+64)
	c := &upstreamCall{scope: req.Profile.Scope}
	c.ID, c.Method, c.Behalf, c.Exchange = id, req.Method, upstream.BehalfOf(req), e.trace
	c.frame = wire.AppendRequest(frame, wire.NumberID(id), req.Method, params, req.Extra)
	if b.overHTTP() {
		c.Fields = b.fields(req, c.scope, params)
	}
	return c
}

// fields returns those of the header of a request with params for the server that others don't have.
func (b *Back) fields(req *mcp.Request, scope string, params []byte) []http1.Field {
	mirrors := b.mirrors(req.Method, scope, params)
	own := protocol.AppendFields(make([]http1.Field, 0, 3+len(mirrors)+len(req.ParamHeaders)), b.revision(), req.Method, params, mirrors, b.rawNames.Load())
	n := len(own)
	for name, values := range req.ParamHeaders {
		if !slices.ContainsFunc(own[:n], func(f http1.Field) bool { return f.Name == name }) {
			for _, v := range values {
				own = append(own, http1.Field{Name: name, Value: v})
			}
		}
	}
	return own
}

// request sends a request of the gateway itself, and sends it again if the server wants
// another revision. The caller owns the result; the server's error is a *wire.Error.
func (b *Back) request(ctx context.Context, method string, params []byte, p mcp.Profile) (json.RawMessage, error) {
	for again := false; ; again = true {
		c := b.ownCall(method, params, p)
		a, err := b.link.exchange(ctx, c)
		c.EndOwn(&a, err)
		if err != nil {
			return nil, err
		}
		if a.Err == nil {
			defer a.Free()
			return bytes.Clone(a.Result), nil
		}
		if e := a.TakeError(); again || !b.renegotiated(e) {
			return nil, e
		}
	}
}
