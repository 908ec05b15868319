package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/detect"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
	modernfront "github.com/mcpbridge/mcpbridge/modern/front"
)

// A server is one entry of the table: its front, its back, and what stands
// between them.
type server struct {
	g        *Gateway
	name     string
	back     mcp.Back
	handler  mcp.Handler        // the back, behind what keeps its results and its tasks
	owners   *taskOwners        // nil where tasks have none
	front    *modernfront.Front // of modern clients
	former   *legacyfront.Front // of legacy clients
	shared   bool               // all clients have one session upstream
	lines    slog.Handler       // takes a line for each request; it knows the server's name
	kinds    sync.Map           // lineKind -> slog.Handler, of lines
	profiles *profiler
}

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

func newServer(g *Gateway, so ServerOptions) (*server, error) {
	if !validName.MatchString(so.Name) {
		return nil, errors.New("a name is letters, digits, '.', '_' and '-', and begins with a letter or digit")
	}
	profiles, err := newProfiler(so)
	if err != nil {
		return nil, err
	}
	profiles.account = g.budget.Account(profileOwner{})
	s := &server{g: g, name: so.Name, profiles: profiles, shared: so.oneSession(), lines: g.opts.Logger.With("upstream", so.Name).Handler()}
	if s.back, err = so.Open(g.hub); err != nil {
		return nil, err
	}
	s.profiles.era = s.back.Era
	if d, ok := s.back.(*detect.Detector); ok {
		d.WhenReplaced(func(reason error) { g.hub.endServer(s.name, reason) })
	}
	if s.handler, err = s.guardTasks(so, g.hub.cache.Handler(so.Name, so.Keep, s.back)); err != nil {
		return nil, err
	}
	if err := s.openFronts(so); err != nil {
		return nil, err
	}
	return s, nil
}

// openFronts builds both fronts: one endpoint serves both eras.
func (s *server) openFronts(so ServerOptions) (err error) {
	if s.former, err = s.openLegacyFront(so); err != nil {
		return err
	}
	s.front, err = s.openModernFront(so)
	return err
}

func (s *server) openLegacyFront(so ServerOptions) (*legacyfront.Front, error) {
	g := s.g
	return legacyfront.New(legacyfront.Options{
		Name:            so.Name,
		Handler:         s,
		Describer:       s,
		Roster:          s,
		Linker:          s,
		Command:         so.Command,
		Admit:           s.profiles.admit,
		Memory:          s,
		Instance:        g.instance,
		Share:           g.shareOf,
		MaxSessions:     g.opts.MaxSessions,
		MaxSessionsEach: g.opts.MaxSessionsEach,
		Idle:            g.opts.SessionIdle,
		MaxStored:       g.opts.MaxStored,
		MaxTopics:       g.opts.MaxTopics,
		Check:           s.check,
		WriteTimeout:    g.opts.WriteTimeout,
		KeepAlive:       g.opts.KeepAlive,
		Drain:           g.opts.Drain,
		StartTimeout:    so.Patience,
		LogLevel:        so.LogLevel,
		Logger:          g.opts.Logger,
		Metrics:         serverMetrics{g.opts.Metrics, so.Name},
	})
}

func (s *server) openModernFront(so ServerOptions) (*modernfront.Front, error) {
	g := s.g
	return modernfront.New(modernfront.Options{
		Name:          so.Name,
		Revisions:     spec.AllRevisions(),
		Handler:       s,
		Describer:     s,
		Feed:          s,
		Admit:         s.profiles.admit,
		Memory:        s,
		NoTasks:       slices.Contains(so.HideExtensions, spec.ExtensionTasks),
		Upstream:      s.back.Era,
		WriteTimeout:  g.opts.WriteTimeout,
		KeepAlive:     g.opts.KeepAlive,
		Streams:       &g.streams,
		MaxParked:     g.opts.MaxParked,
		MaxParkedEach: g.opts.MaxParkedEach,
		MaxTopics:     g.opts.MaxTopics,
		Gather:        so.Gather,
		ParkedTTL:     so.ParkedTTL,
		Sealer:        g.sealer,
		Logger:        g.opts.Logger,
		Metrics:       serverMetrics{g.opts.Metrics, so.Name},
	})
}

// close ends the fronts' calls and then the back.
func (s *server) close(ctx context.Context) error {
	s.front.Close()
	if s.owners != nil {
		defer s.owners.close()
	}
	return errors.Join(s.former.Close(ctx), s.back.Close(ctx))
}

// Serve has a request served, and tells of it in one line: of a result when it has
// been written, since the client need not wait for a log.
func (s *server) Serve(ctx context.Context, req *mcp.Request, x mcp.Caller) (*mcp.Result, error) {
	begin := time.Now()
	res, err := s.handler.Serve(ctx, req, x)
	if err != nil {
		s.report(ctx, req, begin, err)
		return nil, s.g.told(err)
	}
	var failed error
	if mcp.ToolFailed(req.Method, res.Body, res.Outline) {
		failed = mcp.ErrToolFailed
	}
	took, result := s.count(ctx, req.Method, req.Era, begin, failed)
	res.OnRelease(func() { s.logRequest(ctx, req, took, result, failed) })
	return res, nil
}

// Describe passes discovery to the back, and tells of it in one line.
func (s *server) Describe(ctx context.Context, req *mcp.Request) (*mcp.Description, error) {
	if req.Method != spec.MethodDiscover && req.Method != spec.MethodInitialize {
		d, err := s.back.Describe(ctx, req)
		return d, s.g.told(err)
	}
	begin := time.Now()
	d, err := s.back.Describe(ctx, req)
	s.report(ctx, req, begin, err)
	return d, s.g.told(err)
}

// Listen opens a stream on the hub. The line it logs tells how long opening took;
// closing tells how long the stream was open. A request that has become a stream has
// its line when it ends.
func (s *server) Listen(ctx context.Context, req *mcp.Request, want mcp.Filter, mail *fanout.Mailbox) (mcp.Filter, func(), error) {
	begin := time.Now()
	honored, leave, err := s.g.hub.listen(ctx, s, req.Profile, want, mail)
	if req.Method == spec.MethodListen {
		s.report(ctx, req, begin, err)
	}
	if err != nil {
		return honored, nil, s.g.told(err)
	}
	return honored, func() {
		leave()
		reason, _ := mail.Ended()
		s.g.opts.Logger.Info("listen stream closed", "upstream", s.name, "open", time.Since(begin).Round(time.Millisecond), "reason", endReason(ctx, reason))
	}, nil
}

// Join opens a session's place on the hub.
func (s *server) Join(req *mcp.Request, mail *fanout.Mailbox) (mcp.Membership, error) {
	m, err := s.g.hub.join(s, req.Profile, mail)
	if err != nil {
		return nil, err // and no typed nil in the interface
	}
	return m, nil
}

func endReason(ctx context.Context, reason error) string {
	switch {
	case reason != nil:
		return reason.Error()
	case ctx.Err() != nil:
		return "client left"
	}
	return "client does not read"
}

// serverMetrics puts a server's name to what its front counts.
type serverMetrics struct {
	m    mcp.Metrics
	name string
}

func (s serverMetrics) Dropped(reason string) { s.m.Dropped(s.name, reason) }
func (s serverMetrics) Limit(name string)     { s.m.Limit(s.name, name) }
func (s serverMetrics) Delivered(n int)       { s.m.Delivered(s.name, n) }
func (s serverMetrics) Sessions(delta int)    { s.m.Sessions(s.name, delta) }
func (s serverMetrics) Parked(delta int)      { s.m.Parked(s.name, delta) }

// unknownServer names what there is: a person who mistyped sees it at once.
func (g *Gateway) unknownServer(name string) *wire.Error {
	return wire.Errorf(spec.CodeInvalidRequest, "no server is called %q here; there are: %s", name, cmp.Or(fmt.Sprint(g.order), "none"))
}
