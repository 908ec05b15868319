package mcpbridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/audit"
	"github.com/mcpbridge/mcpbridge/internal/auth"
	"github.com/mcpbridge/mcpbridge/internal/cmdhook"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/gateway"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/login"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/memhttp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/release"
	"github.com/mcpbridge/mcpbridge/internal/replicas/node"
	"github.com/mcpbridge/mcpbridge/internal/server"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// commandConnect is Timeouts.Connect of a command: it may have to fetch its package.
const commandConnect = 60 * time.Second

func init() {
	cmdhook.Set = func(o any, h cmdhook.Hooks) { o.(*Options).hooks = h }
	cmdhook.Gateway = func(g any) *gateway.Gateway { return g.(*Gateway).inner }
	cmdhook.Metrics = func(g any) mcp.Metrics { return g.(*Gateway).metrics }
	cmdhook.Audit = func(g any) *audit.Log { return g.(*Gateway).audit() }
	cmdhook.Servers = func(o any) ([]*server.Server, error) {
		b := newBuild(o.(*Options), mcp.NoMetrics{})
		if err := b.addAll(); err != nil {
			return nil, errors.Join(err, b.close())
		}
		b.opts.made = b
		return b.servers(), nil
	}
	cmdhook.Ready = func(ctx context.Context, g any) error {
		var errs []error
		for _, p := range g.(*Gateway).standing.parts {
			if p.login != nil {
				errs = append(errs, p.login.Ready(ctx))
			}
		}
		return errors.Join(errs...)
	}
	cmdhook.Flow = func(o any, server string) *login.Flow {
		b := newBuild(o.(*Options), mcp.NoMetrics{})
		for i := range b.opts.Servers {
			if s := &b.opts.Servers[i]; s.Name == server {
				return b.loginFlow(s)
			}
		}
		return nil
	}
}

// A build makes the parts of a Gateway.
type build struct {
	opts    *Options
	secrets *redact.Redactor
	metrics mcp.Metrics

	node        *node.Node // nil for one replica
	common      *common
	keepsCommon bool           // it is that of a Gateway
	parts       []*part        // in the order of the servers
	kept        map[*part]bool // those of a Gateway
}

// discard is the Logger of Options that have none: always the same.
var discard = slog.New(slog.DiscardHandler)

func newBuild(o *Options, m mcp.Metrics) *build {
	b := &build{opts: o, secrets: o.hooks.Secrets, metrics: m, common: &common{}, kept: make(map[*part]bool)}
	if b.secrets == nil {
		b.secrets = redact.New()
	}
	b.secrets.Learn(o.Secrets...)
	if o.Logger == nil {
		o.Logger = discard
	}
	return b
}

// close ends what was begun, but for what is kept of an earlier build.
func (b *build) close() error {
	for _, p := range b.parts {
		if !b.kept[p] {
			p.close()
		}
	}
	if b.keepsCommon {
		return nil
	}
	return b.common.close()
}

// openAudit opens the audit log, if there is to be one.
func (b *build) openAudit() (err error) {
	if b.opts.Audit == "" {
		return nil
	}
	b.common.audit, err = audit.Open(audit.Options{Path: b.opts.Audit, Logger: b.opts.Logger, Metrics: b.metrics})
	if err != nil {
		return fmt.Errorf("mcpbridge: %w", err)
	}
	return nil
}

// servers returns the servers that were built.
func (b *build) servers() []*server.Server {
	var out []*server.Server
	for _, p := range b.parts {
		out = append(out, p.server)
	}
	return out
}

// limit returns what a limit is set to, or its default.
func (b *build) limit(l *limits.Limit) int64 { return cmp.Or(b.opts.Limits[l.Key], l.Default) }

func (b *build) number(l *limits.Limit) int { return int(b.limit(l)) }

// checkLimits refuses limits that do not exist, or are out of range.
func (b *build) checkLimits() error {
	known := make(map[string]*limits.Limit)
	for _, l := range limits.All() {
		known[l.Key] = l
	}
	for _, name := range slices.Sorted(maps.Keys(b.opts.Limits)) {
		n, l := b.opts.Limits[name], known[name]
		switch {
		case l == nil:
			return fmt.Errorf("mcpbridge: there is no limit %q; there are: %s", name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		case n != 0 && (n < l.Min || n > l.Max):
			return fmt.Errorf("mcpbridge: limit %s is %d, want %d to %d", name, n, l.Min, l.Max)
		}
	}
	return nil
}

// options are those of the gateway, with its servers.
func (b *build) options() gateway.Options {
	o := b.gatewayOptions()
	for i, p := range b.parts {
		o.Servers = append(o.Servers, b.entry(&b.opts.Servers[i], p, p.server.Open))
	}
	return o
}

// gatewayOptions are what the servers have in common.
func (b *build) gatewayOptions() gateway.Options {
	o := b.opts
	return gateway.Options{
		Peers:    b.group(),
		Memory:   b.limit(limits.Memory),
		MaxBody:  b.limit(limits.Body),
		MaxDepth: int(b.limit(limits.Depth)),
		Lengths: mcp.Lengths{
			ID: b.number(limits.ID), ProgressToken: b.number(limits.ProgressToken), Method: b.number(limits.Method), URI: b.number(limits.URI),
			Filter: b.number(limits.Filter), ClientInfo: b.number(limits.ClientInfo), Capabilities: b.number(limits.Capabilities),
		},
		MaxRequests:     b.number(limits.Requests),
		MaxRequestsEach: b.number(limits.RequestsEach),
		MaxStreams:      b.number(limits.Streams),
		MaxStreamsEach:  b.number(limits.StreamsEach),
		MaxTopics:       b.number(limits.ListenTopics),
		MaxParked:       b.number(limits.Parked),
		MaxParkedEach:   b.number(limits.ParkedEach),
		MaxSessions:     b.number(limits.ClientSessions),
		MaxSessionsEach: b.number(limits.ClientSessionsEach),
		MaxSockets:      b.number(limits.WebSockets),
		MaxSocketsEach:  b.number(limits.WebSocketsEach),
		MaxStored:       b.number(limits.ClientEvents),
		CacheEntries:    b.number(limits.CacheEntries),
		CacheBytes:      b.number(limits.Cache),
		SessionIdle:     o.SessionIdle,
		StateKeys:       o.StateKeys,
		BodyTimeout:     o.BodyTimeout,
		WriteTimeout:    o.WriteTimeout,
		KeepAlive:       o.KeepAlive,
		Drain:           o.Drain,
		MachineName:     o.MachineName,
		AllowedHosts:    b.allowedHosts(),
		AllowedOrigins:  o.AllowedOrigins,
		TrustedProxies:  o.TrustedProxies,
		Auth:            b.common.auth,
		Secrets:         b.secrets,
		DebugErrors:     o.DebugErrors,
		Logger:          o.Logger,
		Metrics:         b.metrics,
		Observers:       o.hooks.Observers,
		QuietRequests:   o.hooks.QuietRequests,
		NameTools:       b.limit(limits.MetricTools) > 0,
	}
}

// group returns nil for one replica.
func (b *build) group() *peer.Group {
	if b.node == nil {
		return nil
	}
	return b.node.Group()
}

// addCommon makes what the servers are made with.
func (b *build) addCommon() error { return errors.Join(b.addAuth(), b.openAudit()) }

// addAuth makes the authenticator of the servers that have none of their own.
func (b *build) addAuth() (err error) {
	if b.opts.Authenticator != nil && b.opts.Auth != nil {
		return errTwoAuthenticators
	}
	if b.opts.Authenticator != nil {
		b.common.auth = ownAuthenticator(b.opts.Authenticator)
		return nil
	}
	if b.common.auth, err = b.authenticator(b.opts.Auth); err != nil {
		return fmt.Errorf("mcpbridge: Auth: %w", err)
	}
	return nil
}

// ownAuthenticator adapts an Authenticator to the gateway.
func ownAuthenticator(own Authenticator) auth.Authenticator {
	return auth.Func(func(r *http.Request) (mcp.Principal, error) {
		name, err := own.Authenticate(r)
		refusal := (*AuthError)(nil)
		switch {
		case errors.As(err, &refusal):
			err = &auth.Refusal{Status: refusal.Status, Challenge: refusal.Challenge, Verbatim: true, Reason: err.Error()}
		case err != nil:
			err = &auth.Refusal{Verbatim: true, Reason: err.Error()}
		}
		return mcp.Principal(name), err
	})
}

// addAll makes all servers, unless that was done.
func (b *build) addAll() error {
	if made := b.opts.made; made != nil {
		b.parts, b.common = made.parts, made.common
		return nil
	}
	if err := b.checkLimits(); err != nil {
		return err
	}
	for i := range b.opts.Servers {
		s := &b.opts.Servers[i]
		p, err := b.newPart(s)
		if err != nil {
			return fmt.Errorf("mcpbridge: server %q: %w", s.Name, err)
		}
		b.parts = append(b.parts, p)
	}
	return nil
}

// check reports the first fault of a server that nothing below would find.
func (b *build) check(s *ServerOptions) error {
	ways := 0
	for _, set := range []bool{s.URL != "", len(s.Command) > 0, s.Handler != nil, b.opts.hooks.Dial[s.Name] != nil} {
		if set {
			ways++
		}
	}
	switch {
	case ways != 1:
		return errors.New("want exactly one of URL, Command and Handler")
	case !slices.Contains([]Era{"", Legacy, Modern}, s.Era):
		return fmt.Errorf("unknown Era %q", s.Era)
	case !slices.Contains([]Placement{"", PlaceAny, PlaceOne}, s.Replicas):
		return fmt.Errorf("unknown Replicas %q", s.Replicas)
	case !slices.Contains([]Isolation{"", IsolatePrincipal, IsolateRequest, IsolateNothing}, s.Isolation):
		return fmt.Errorf("unknown Isolation %q", s.Isolation)
	case s.LogLevel != "" && !spec.LogLevel(s.LogLevel).Valid():
		return fmt.Errorf("unknown LogLevel %q", s.LogLevel)
	}
	return nil
}

// entry is what the gateway is told of a server.
func (b *build) entry(s *ServerOptions, p *part, open func(mcp.Changes) (mcp.Back, error)) gateway.ServerOptions {
	return gateway.ServerOptions{
		Name:              s.Name,
		Open:              open,
		OpenPeer:          openPeer(s, p),
		Command:           len(s.Command) > 0,
		HoldFor:           holdFor(s),
		Definition:        s.digest(),
		StartTimeout:      connectTimeout(s),
		Isolation:         gateway.Isolation(s.Isolation),
		Gather:            s.Gather,
		ParkedTTL:         s.ParkedTTL,
		Keep:              kept(s.Cache),
		LogLevel:          spec.LogLevel(s.LogLevel),
		Experimental:      s.Experimental,
		HideExtensions:    s.HideExtensions,
		ForwardClientInfo: s.ForwardClientInfo,
		Access:            p.access,
		Auth:              p.auth,
		Saw:               sawCaller(p.credentials),
		PublicURL:         b.publicURL(s),
		OnlyFor:           loginOf(s),
		Kept:              b.kept[p],
		Ended:             p.end,
	}
}

// openPeer returns what watches a server at another replica; nil if each replica has processes
// of its own, which may have other changes.
func openPeer(s *ServerOptions, p *part) func(upstream.Peer) (mcp.Back, error) {
	if len(s.Command) > 0 && s.Replicas == PlaceAny {
		return nil
	}
	return p.server.OpenPeer
}

// holdFor returns for how long after its last call a replica holds a profile, if one serves
// all its calls: until the session with the server has ended.
func holdFor(s *ServerOptions) time.Duration {
	if s.Replicas != PlaceOne {
		return 0
	}
	return cmp.Or(s.Idle, 5*time.Minute) + time.Minute
}

// loginOf returns the principal whose login a server is used with; empty if it is not one
// principal's.
func loginOf(s *ServerOptions) mcp.Principal {
	if s.UpstreamAuth == nil || s.UpstreamAuth.Login == nil {
		return ""
	}
	return mcp.Principal(s.UpstreamAuth.Login.Principal)
}

// allowedHosts are the names of the options, and those of the public URLs.
func (b *build) allowedHosts() []string {
	hosts := slices.Clone(b.opts.AllowedHosts)
	for i := range b.opts.Servers {
		if u, err := url.Parse(b.publicURL(&b.opts.Servers[i])); err == nil && u.Host != "" {
			hosts = append(hosts, u.Hostname())
		}
	}
	return hosts
}

// publicURL returns the URL by which clients know a server; empty if it is not known.
func (b *build) publicURL(s *ServerOptions) string {
	if s.PublicURL != "" || b.opts.PublicURL == "" {
		return s.PublicURL
	}
	return strings.TrimSuffix(b.opts.PublicURL, "/") + "/mcp/" + s.Name
}

// connectTimeout is how long the server may take to be reached; zero is the default of
// the backs.
func connectTimeout(s *ServerOptions) time.Duration {
	if len(s.Command) > 0 {
		return cmp.Or(s.Timeouts.Connect, commandConnect)
	}
	return s.Timeouts.Connect
}

// kept returns the methods whose results the gateway keeps.
func kept(hints map[string]CacheHint) []string {
	var out []string
	for _, method := range slices.Sorted(maps.Keys(hints)) {
		if h := hints[method]; h.Keep && h.Public && h.TTL > 0 {
			out = append(out, method)
		}
	}
	return out
}

// serverOptions are those of the package that reaches the server.
func (b *build) serverOptions(s *ServerOptions, p *part) server.Options {
	o := server.Options{
		Options: upstream.Options{
			Name:           s.Name,
			URL:            s.URL,
			Headers:        s.Header,
			Renewed:        &p.renewed,
			Credentials:    p.credentials,
			RoundTripper:   s.RoundTripper,
			TLS:            s.TLS,
			ClientInfo:     implementation(),
			HideExtensions: s.HideExtensions,
			Timeouts:       upstream.Timeouts(s.Timeouts),
			Linger:         s.Linger,
			Subscribes:     b.number(limits.SubscribesEach),
			MaxMessage:     b.number(limits.UpstreamMessage),
			Subresources:   fanout.Subresources(s.Subresources),
			Logger:         b.opts.Logger,
			Metrics:        b.metrics,
			Observers:      b.opts.hooks.Observers,
		},
		Transport:   legacyback.Transport(s.Transport),
		Dial:        b.opts.hooks.Dial[s.Name],
		Dialed:      b.opts.hooks.Dialed,
		OneClient:   b.opts.OneClient,
		Era:         era(s.Era),
		Roots:       s.Roots,
		Lanes:       s.Lanes,
		KeepLane:    s.Isolation == IsolateNothing,
		Synthesize:  legacyback.Synthesize(s.Synthesize),
		Cache:       cacheHints(s.Cache),
		Idle:        s.Idle,
		KeepAlive:   b.opts.KeepAlive,
		MaxSessions: b.number(limits.Sessions),
	}
	o.Timeouts.Connect = connectTimeout(s)
	switch {
	case s.Handler != nil:
		o.URL, o.RoundTripper = "http://"+s.Name+".invalid/", p.serveHandler(s.Handler)
	case len(s.Command) > 0:
		b.command(&o, s)
	}
	return o
}

// serveHandler returns what reaches a handler.
func (p *part) serveHandler(h http.Handler) http.RoundTripper {
	m := memhttp.Serve(h)
	p.ends = append(p.ends, func() { m.Close() })
	return m
}

// command adds what concerns commands alone.
func (b *build) command(o *server.Options, s *ServerOptions) {
	o.MaxSessions = min(b.number(limits.CommandSessions), o.MaxSessions)
	o.MaxSessionsEach = b.number(limits.CommandSessionsEach)
	o.Start = b.opts.hooks.Start
	if s.Remember {
		o.StateDir = b.opts.StateDir
	}
	environ := b.opts.Environ
	if environ == nil {
		environ = os.Environ()
	}
	o.Command = transport.CommandOptions{
		Argv:       s.Command,
		Dir:        s.Dir,
		Environ:    environ,
		Env:        s.Env,
		Name:       s.Name,
		Logger:     b.opts.Logger,
		MaxMessage: b.number(limits.UpstreamMessage),
		CloseGrace: b.opts.CloseGrace,
		Guard:      b.opts.hooks.Guard,
		Secrets:    b.secrets,
	}
}

func era(e Era) spec.Era {
	switch e {
	case Legacy:
		return spec.Legacy
	case Modern:
		return spec.Modern
	}
	return spec.Unknown
}

func cacheHints(from map[string]CacheHint) map[string]mcp.CacheHint {
	hints := make(map[string]mcp.CacheHint, len(from))
	for method, h := range from {
		hints[method] = mcp.CacheHint{TTL: h.TTL.Milliseconds(), Public: h.Public}
	}
	return hints
}

// implementation is what servers are told of their client.
//
// Spec: 2026-07-28, schema, Implementation.
func implementation() []byte {
	return wire.AppendEdited(nil, nil,
		wire.Edit{Name: "name", Value: wire.Quote("mcpbridge")},
		wire.Edit{Name: "version", Value: wire.Quote(release.Version())})
}
