package back

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/status"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/legacy/link"
	"github.com/mcpbridge/mcpbridge/legacy/pool"
	"github.com/mcpbridge/mcpbridge/legacy/relay"
	"github.com/mcpbridge/mcpbridge/legacy/tasks"
	"github.com/mcpbridge/mcpbridge/legacy/watch"
)

// A Back serves requests of all clients from one legacy server. It is an [mcp.Upstream].
// Its methods are safe for concurrent use.
type Back struct {
	// Set by New, read-only after.
	opts         Options
	log          *slog.Logger
	endpoint     *link.Endpoint // nil unless the server is reached over HTTP
	usesSSE      atomic.Bool    // the server was found to use HTTP+SSE
	namesLegacy  atomic.Bool    // the server has refused the revision that it answered initialize with
	revision     atomic.Value   // a spec.Revision: that of the last session; nil before the first
	pool         *pool.Pool
	watches      *watch.Watches
	relayed      *relay.Options // options of relays
	availability *upstream.Availability
	lanes        *pool.Lanes
	holding      *tasks.Holding

	relays *upstream.Recent[mcp.Principal, *relay.Session] // the last one of each principal
	known  *upstream.Recent[string, *mcp.Description]      // the last description, by scope
	roots  *upstream.Recent[string, json.RawMessage]       // the last response to roots/list, by scope
	tools  *upstream.Recent[string, *tasks.Tools]          // by scope
	levels *upstream.Recent[string, spec.LogLevel]         // that clients with sessions of their own have set, by scope
}

var (
	_ mcp.Upstream       = (*Back)(nil)
	_ mcp.ClientFollower = (*Back)(nil)
)

// New checks opts and sets defaults. It starts nothing; see [Back.Start]. The caller must
// call Close.
func New(opts Options) (*Back, error) {
	if err := opts.Check(opts.fault()); err != nil {
		return nil, fmt.Errorf("legacy/back: New: %w", err)
	}
	opts.fill()
	b := &Back{opts: opts, log: opts.Logger, availability: upstream.NewAvailability(opts.Logger)}
	b.relayed = &relay.Options{
		Options: &b.opts.Options, Roots: opts.roots(), Explain: b.clientError,
	}
	if opts.URL != "" {
		b.endpoint = link.NewEndpoint(&b.opts.Options)
	}
	if err := b.newCaches(opts.MaxSessions); err != nil {
		return nil, err
	}
	var err error
	if b.lanes, err = pool.NewLanes(opts.lanes(), opts.MaxSessions); err != nil {
		return nil, err
	}
	b.lanes.Always.Store(opts.URL == "" || opts.Transport == TransportSSE)
	if b.pool, err = b.newPool(); err != nil {
		return nil, err
	}
	b.watches = watch.New(&b.opts.Options, b.watchSession)
	table, err := b.opts.Tasks()
	b.holding = &tasks.Holding{Tasks: table, Server: opts.Name, Log: b.log, Quirks: opts.Quirks, Describe: b.Describe, Error: link.ModernError, Explain: b.clientError}
	return b, err
}

// newCaches creates the caches, each for as many scopes.
func (b *Back) newCaches(most int) (err error) {
	if b.relays, err = upstream.NewRecent[mcp.Principal, *relay.Session](most); err != nil {
		return err
	}
	if b.known, err = upstream.NewRecent[string, *mcp.Description](most); err != nil {
		return err
	}
	if b.roots, err = upstream.NewRecent[string, json.RawMessage](most); err != nil {
		return err
	}
	if b.tools, err = upstream.NewRecent[string, *tasks.Tools](most); err != nil {
		return err
	}
	b.levels, err = upstream.NewRecent[string, spec.LogLevel](most)
	return err
}

// Era returns spec.Legacy.
func (b *Back) Era() spec.Era { return spec.Legacy }

// Serve implements [mcp.Handler].
//
// It sends a request a second time only if the first one can't have had an effect: nothing
// was sent, the server refused it because it has lost the session, or the method only
// reads.
func (b *Back) Serve(ctx context.Context, req *mcp.Request, caller mcp.Caller) (*mcp.Result, error) {
	if req.Era == spec.Modern && (spec.OnTask(req.Method) || req.Method == spec.MethodListen) {
		return b.holding.Serve(ctx, req, caller)
	}
	var v urlAttempts
	defer v.release()
	for repeated := false; ; repeated = true {
		res, err := b.serveEliciting(ctx, req, caller, &v)
		if err == nil {
			return res, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		f := upstream.AsFailure(err)
		if f == nil || repeated || !f.Repeatable(req.Method) {
			return nil, b.clientError(req.Method, err)
		}
		b.log.Info("repeating request", "method", req.Method, "cause", f)
		if f.Lost {
			req.Trace.Event(trace.SessionLost, "")
		}
		req.Trace.Event(trace.Repeated, f.Error())
	}
}

// serveEliciting sends the request, and sends it again after each URL elicitation that the
// server requires. In between, other calls may use the lane: nothing waits upstream.
func (b *Back) serveEliciting(ctx context.Context, req *mcp.Request, caller mcp.Caller, v *urlAttempts) (*mcp.Result, error) {
	for {
		res, err := b.serveInLane(ctx, req, caller, v)
		demand, ok := err.(*elicitationRequired)
		if !ok {
			return res, err
		}
		if err := v.elicit(ctx, req, caller, demand.err); err != nil {
			return nil, err
		}
	}
}

// serveInLane sends the request, after it has got a lane if it needs one. If the server
// requires URL elicitations, v keeps the session.
func (b *Back) serveInLane(ctx context.Context, req *mcp.Request, caller mcp.Caller, v *urlAttempts) (*mcp.Result, error) {
	lane, leave, err := b.lanes.Enter(ctx, req, v.lane)
	if err != nil {
		return nil, err
	}
	s, release, err := b.sessionFor(ctx, req, lane, v)
	if err != nil {
		leave()
		return nil, err
	}
	if req.Trace != nil && s.fresh.CompareAndSwap(true, false) {
		req.Trace.Event(trace.SessionOpened, "")
	}
	kept := false
	keep := func() func() { kept = true; return release }
	defer func() {
		if !kept {
			release()
		}
	}()
	res, err := s.serve(ctx, req, caller, leave, keep)
	if _, demands := err.(*elicitationRequired); demands {
		v.keepSession(s, lane, keep())
		return nil, err
	}
	if err != nil {
		b.availability.Note(ctx, err)
		return nil, err
	}
	res.StateLost = s.held.Owed(req)
	return res, nil
}

// sessionFor returns the session for a request, and a function that releases it. A request
// with a session of its own (isolation: request) keeps it for all attempts.
func (b *Back) sessionFor(ctx context.Context, req *mcp.Request, lane int, v *urlAttempts) (*session, func(), error) {
	if s := v.session(); s != nil && req.Profile.Single {
		return s, func() {}, nil
	}
	return b.session(ctx, pool.OnLane(req.Profile, lane), req.Profile.Single)
}

// noteConnect reports to the availability how opening a session went, and returns the
// error for the pool. If a server refuses a client's own handshake, it is available.
func (b *Back) noteConnect(ctx context.Context, err error) error {
	if pool.Stopped(ctx) {
		return err
	}
	var no *relay.Refusal
	var alone *oneProcessError
	there := errors.As(err, &no) || errors.As(err, &alone) || errors.Is(err, mcp.ErrOtherEra)
	if there {
		b.availability.Report(nil)
	} else {
		b.availability.Report(err)
	}
	if err == nil {
		return nil
	}
	if b.mayBeOtherEra(err) && alone == nil {
		b.opts.Doubt(transport.Cause(err).Error())
	}
	return &upstream.Failure{Cause: err, Fate: upstream.NotSent, Spoke: there || isRefusal(err)}
}

// mayBeOtherEra reports whether a server of the other era may have failed a handshake like
// this: it refused, did not respond, or is a command that exited.
func (b *Back) mayBeOtherEra(err error) bool {
	var never *dialError
	ended := b.endpoint == nil && !errors.As(err, &never) && !errors.Is(err, context.Canceled)
	return ended || isRefusal(err) || errors.Is(err, errSlowHandshake)
}

// Err returns nil if the last attempt to reach the server succeeded, or else the error:
// [mcp.ErrStarting] before the first attempt has ended.
func (b *Back) Err() error { return b.availability.Err() }

// Tell implements [status.Teller].
func (b *Back) Tell(u *status.Upstream) {
	u.Era, u.Transport, u.Sessions, u.Holding = spec.Legacy.String(), "connection", b.pool.Len(), b.holding.Tasks
	if r, ok := b.revision.Load().(spec.Revision); ok {
		u.Revision = string(r)
	}
	switch {
	case b.usesSSE.Load():
		u.Transport = "sse"
	case b.endpoint != nil:
		u.Transport = "http"
	}
	b.availability.Tell(u)
}

// Start tries to reach the server in the background: at once, and whenever it is down,
// until Close. A command is only started; the first session that needs a process sends
// initialize. Start must be called at most once.
func (b *Back) Start() {
	b.availability.Start(func(ctx context.Context) {
		if b.opts.Launcher == nil {
			b.availability.Supervise(ctx, b.reach)
			return
		}
		err := b.opts.Launcher.Prestart(b.availability.Report)
		if err != nil {
			err = &dialError{err}
		}
		b.availability.Report(err)
	})
}

// reach opens and closes a session.
func (b *Back) reach(ctx context.Context) error {
	p := b.probeProfile()
	s, release, err := b.session(ctx, p, true)
	if err != nil {
		return err
	}
	b.remember(p.Scope, s)
	release()
	return nil
}

// Watch implements [mcp.Source].
func (b *Back) Watch(ctx context.Context, p mcp.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
	return b.watches.Watch(ctx, p, want)
}

// watchSession returns the session for a watch: the one that the profile's requests share.
// With isolation: request the watch has a session of its own, which ends with it.
func (b *Back) watchSession(ctx context.Context, p mcp.Profile) (watch.Session, func(), error) {
	s, release, err := b.session(ctx, p, false)
	if err != nil {
		return nil, nil, err
	}
	return watched{s}, release, nil
}

// Close ends all sessions and waits for everything that the Back started. Requests in
// flight fail. ctx bounds the wait; what is left then ends within seconds.
func (b *Back) Close(ctx context.Context) error {
	b.availability.Close()
	b.watches.Close()
	b.holding.Close()
	err := b.pool.Close(ctx)
	if b.endpoint != nil {
		b.endpoint.Close()
	}
	return err
}
