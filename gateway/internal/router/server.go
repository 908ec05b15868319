package router

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/access"
	"github.com/mcpbridge/mcpbridge/gateway/internal/admission"
	"github.com/mcpbridge/mcpbridge/gateway/internal/cache"
	"github.com/mcpbridge/mcpbridge/gateway/internal/hub"
	"github.com/mcpbridge/mcpbridge/gateway/internal/owner"
	"github.com/mcpbridge/mcpbridge/gateway/internal/profile"
	"github.com/mcpbridge/mcpbridge/gateway/internal/visit"
	"github.com/mcpbridge/mcpbridge/internal/detect"
	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
	modernfront "github.com/mcpbridge/mcpbridge/modern/front"
)

// A server is one server of the gateway: its fronts, its back, and the handlers between
// them.
type server struct {
	g       *Gateway
	opts    *Options // those that it was built with
	name    string
	life    *admission.Lifetime
	streams downstream.Streams // listen streams over HTTP
	ended   func()             // called once it is closed; may be nil
	back    mcp.Back
	group   *grouping    // back, if it is one; else nil
	handler mcp.Handler  // the back, behind what keeps its results, and what is a principal's own
	owners  *owner.Guard // nil where there are no principals
	fronts
	eras
	together   together
	shared     bool // all clients have one session upstream
	log        *requestLog
	guard      *admission.Guard
	onlyFor    mcp.Principal   // empty for everybody
	userLogins visit.Logins    // of its principals; nil for none
	access     *access.Control // nil if nothing is controlled
	memory     mcp.Memory      // what clients' messages are paid from
	limits     *downstream.LimitLog
	profiles   *profile.Profiles
}

// fronts serve the clients of both eras.
type fronts struct {
	modern *modernfront.Front
	legacy *legacyfront.Front
}

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

func newServer(g *Gateway, opts *Options, so ServerOptions) (*server, error) {
	if !validName.MatchString(so.Name) {
		return nil, errors.New("a name is letters, digits, '.', '_' and '-', and begins with a letter or digit")
	}
	if err := checkKept(so.Settings.Kept()); err != nil {
		return nil, err
	}
	guard, err := newGuard(g, so.Name, authOf(so, opts), so.PublicURL, opts.Audit)
	if err != nil {
		return nil, err
	}
	refused := downstream.NewLimitLog(so.Name, g.opts.Metrics, g.opts.Logger.With("upstream", so.Name))
	s := &server{g: g, limits: refused, opts: opts, life: admission.NewLifetime(), ended: so.Ended, guard: guard, onlyFor: so.OnlyFor, name: so.Name, shared: so.oneSession(), together: newTogether(so), eras: eras{so.Quirks}, memory: &clientMemory{g, refused},
		log: &requestLog{made: time.Now(), server: so.Name, quiet: opts.QuietRequests, tools: opts.NameTools, names: so.Access.Names, metrics: g.opts.Metrics, lines: g.opts.Logger.With("upstream", so.Name).Handler()}}
	if s.profiles, err = newProfiles(s, &so); err != nil {
		return nil, err
	}
	if err = openBack(s, &so); err != nil {
		s.together.close(context.Background())
		return nil, err
	}
	if d, ok := s.back.(*detect.Detector); ok {
		d.WhenReplaced(func(reason error) { g.hub.EndServer(s, reason) })
	}
	if err := assemble(s, &so); err != nil {
		s.together.close(context.Background())
		return nil, errors.Join(err, s.back.Close(context.Background()))
	}
	return s, nil
}

// profileOwner owns the account for cached profiles.
type profileOwner struct{}

func newProfiles(s *server, so *ServerOptions) (*profile.Profiles, error) {
	scope := so.Name
	if n := s.g.made.Add(1); s.g.now() != nil { // what a former one of the name has under way must not reach clients of this one
		scope += mcp.ScopeMark + strconv.FormatInt(n, 36)
	}
	return profile.New(profile.Options{
		Scope: scope, Settings: so.Settings, Shared: s.shared, Group: so.Group != nil, Era: func() spec.Era { return s.back.Era() },
		Saw: so.Saw, Account: s.g.budget.Account(profileOwner{}),
	})
}

// checkKept refuses to keep results that can't be.
func checkKept(methods []string) error {
	for _, method := range methods {
		if !cache.Keeps(method) {
			return fmt.Errorf("results of %s can't be cached", method)
		}
	}
	return nil
}

// admit sets the profile of a request, and refuses one of a principal that the server is
// not for, and a subscription that its sender may not have.
func (s *server) admit(req *mcp.Request) error {
	s.observe(req)
	if err := s.profiles.Assign(req); err != nil {
		return err
	}
	if s.group != nil {
		req.Passage = &mcp.Passage{Group: s.name}
	}
	return s.allow(req)
}

// allow refuses a request whose profile is set, as admit does.
func (s *server) allow(req *mcp.Request) error {
	if !s.access.Admits(req) && s.onlyFor == "" {
		return nil
	}
	begin := s.log.now()
	err := s.ownerOnly(req)
	if err == nil {
		err = s.access.Admit(req)
	}
	if err != nil {
		s.log.report(context.Background(), req, begin, err)
	}
	return s.ForClient(err)
}

// ownerOnly refuses a request to a server that is for one other principal: what the server
// has said to the gateway, with that principal's login, must not be told either. The status
// is that of other denials.
func (s *server) ownerOnly(req *mcp.Request) error {
	if s.onlyFor == "" || req.Principal == s.onlyFor {
		return nil
	}
	return &mcp.Refusal{Status: http.StatusOK, Err: wire.Errorf(spec.CodeInvalidRequest,
		"server %q is logged in to on behalf of another principal; ask who runs mcpbridge for access", s.name)}
}

// close ends the calls of the fronts, and then the back.
func (s *server) close(ctx context.Context) error {
	s.modern.Close()
	s.together.close(ctx)
	defer s.owners.Close()
	err := errors.Join(s.legacy.Close(ctx), s.back.Close(ctx))
	s.profiles.Close()
	if s.ended != nil {
		s.ended()
	}
	return err
}

// Serve passes a request to the back, and writes one line to the log. For a result it writes
// the line after the response, so that the client does not wait for the log.
func (s *server) Serve(ctx context.Context, req *mcp.Request, x mcp.Caller) (*mcp.Result, error) {
	begin := s.log.now()
	res, err := s.handler.Serve(ctx, req, x)
	if err != nil {
		s.log.report(ctx, req, begin, err)
		return nil, s.ForClient(err)
	}
	var failed error
	if res.Failed(req.Method) {
		failed = mcp.ErrToolFailed
	}
	if res.StateLost != "" {
		tellLost(res)
	}
	took, result := s.log.countRequest(ctx, req, begin, failed)
	if !s.log.isTold(req, failed) {
		res.OnRelease(func() { s.log.write(ctx, req, took, result, failed) })
	}
	return res, nil
}

// tellLost adds to a result that the server may have lost what it had of the client, and why.
func tellLost(res *mcp.Result) {
	if !wire.IsObject(res.Body) {
		return
	}
	res.Body, res.Outline = wire.EditedIn(res.Body, "_meta", wire.Edit{Name: spec.MetaStateLost, Value: wire.Quote(res.StateLost)}), nil
}

// Describe passes discovery to the back, and writes one line to the log.
func (s *server) Describe(ctx context.Context, req *mcp.Request) (*mcp.Description, error) {
	if req.Method != spec.MethodDiscover && req.Method != spec.MethodInitialize {
		d, err := s.back.Describe(ctx, req)
		return d, s.ForClient(err)
	}
	begin := s.log.now()
	err := s.access.Open(req)
	var d *mcp.Description
	if err == nil {
		d, err = s.back.Describe(ctx, req)
	}
	if s.wantsLogin(err) {
		d, err = visit.Undescribed(), nil
	}
	s.log.report(ctx, req, begin, err)
	return s.access.Description(d), s.ForClient(err)
}

// Subscribe implements [mcp.Subscriber]. A listen stream has two lines in the log: how long
// opening it took, and how long it was open. A request of an extension that became a stream
// has one line when it ends.
func (s *server) Subscribe(req *mcp.Request, mail *fanout.Mailbox, o mcp.SubscribeOptions) (mcp.Subscription, error) {
	begin := s.log.now()
	sub, err := s.g.hub.Subscribe(s, req, mail, o)
	switch {
	case err != nil && o.Stream && req.Method == spec.MethodListen:
		s.log.report(context.Background(), req, begin, err)
		return nil, s.ForClient(err)
	case err != nil:
		return nil, s.ForClient(err) // and no typed nil in the interface
	case o.Stream:
		return s.group.follow(req, mail, s.access.Subscription(req, mail, o, &loggedStream{Subscription: sub, s: s, req: req, begin: begin})), nil
	}
	return s.group.follow(req, mail, s.access.Subscription(req, mail, o, sub)), nil
}

// Name implements [hub.Server].
func (s *server) Name() string { return s.name }

// Scope implements [hub.Server].
func (s *server) Scope() string { return s.profiles.Scope() }

// Reason implements [hub.Server].
func (s *server) Reason() error { return s.life.Reason() }

// Watch implements [mcp.Source]: together with other replicas, if there are any.
func (s *server) Watch(ctx context.Context, p mcp.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
	if s.userLogins != nil && s.userLogins.Missing(ctx, p.Principal) { // there is nothing to wait for yet
		return nil, nil, &mcp.LoginError{Err: wire.Errorf(spec.CodeInternal, "server %q wants a login of its user, who gets a link with the next call", s.name)}
	}
	if shared := s.together.source; shared != nil {
		return shared.Watch(ctx, p, want)
	}
	return s.back.Watch(ctx, p, want)
}

// RootsChanged implements [mcp.ClientFollower].
func (s *server) RootsChanged(req *mcp.Request) {
	if f, ok := s.back.(mcp.ClientFollower); ok {
		f.RootsChanged(req)
	}
}

// LevelChanged implements [mcp.ClientFollower].
func (s *server) LevelChanged(req *mcp.Request) {
	if f, ok := s.back.(mcp.ClientFollower); ok {
		f.LevelChanged(req)
	}
}

// ClientLeft implements [mcp.ClientFollower].
func (s *server) ClientLeft(req *mcp.Request) {
	if f, ok := s.back.(mcp.ClientFollower); ok {
		f.ClientLeft(req)
	}
}

// sessionEnded records the end of a session of a legacy client.
func (s *server) sessionEnded(e *legacyfront.Ended) {
	s.access.Ended(&access.Ended{
		Kind: "session", Session: e.Name, Share: e.Opener.Share, Era: spec.Legacy, Client: mcp.ClientName(e.Info), Address: e.Address,
		Opened: e.Opened, Reason: e.Reason,
	})
}

// A loggedStream is the subscription of a listen stream.
type loggedStream struct {
	*hub.Subscription
	s     *server
	req   *mcp.Request  // nil once the stream is open
	begin time.Duration // of the log
	left  func() error  // returns an error once the client has left; nil until the stream is open
}

// Add implements [mcp.Subscription].
func (l *loggedStream) Add(ctx context.Context, want mcp.Filter) (mcp.Filter, error) {
	honored, err := l.Subscription.Add(ctx, want)
	if l.req != nil && l.req.Method == spec.MethodListen {
		l.s.log.report(ctx, l.req, l.begin, err)
	}
	if err != nil {
		return honored, l.s.ForClient(err)
	}
	l.left, l.req = ctx.Err, nil // the request, and its text, need not stay
	return honored, nil
}

// Close implements [mcp.Subscription].
func (l *loggedStream) Close() {
	l.Subscription.Close()
	if l.left == nil {
		return
	}
	l.s.g.opts.Logger.Info("listen stream closed", "upstream", l.s.name, "open", (l.s.log.now() - l.begin).Round(time.Millisecond), "reason", l.EndReason(), l.Profile().Share.Principal.Attr())
}

// EndReason returns why the stream was closed; empty if it was never open.
func (l *loggedStream) EndReason() string {
	if l.left == nil {
		return ""
	}
	reason, _ := l.Ended()
	return endReason(l.left(), reason)
}

// endReason returns why a stream was closed. left is not nil if the client has left, and
// reason is not nil if the gateway or the server ended the stream.
func endReason(left, reason error) string {
	switch {
	case reason != nil:
		return reason.Error()
	case left != nil:
		return "client left"
	}
	return "client does not read"
}
