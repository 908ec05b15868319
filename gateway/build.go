package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/router"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/replicas/node"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/server"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/trust/userlogin"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// commandConnect is Timeouts.Connect of a command: it may have to fetch its package.
const commandConnect = 60 * time.Second

// A build makes the parts of a Gateway.
type build struct {
	opts    *Options
	secrets *redact.Redactor
	metrics mcp.Metrics
	losses  *upstream.Losses     // those of the Gateway
	sealer  *requeststate.Sealer // likewise
	lists   *listDefinitions     // likewise

	node        *node.Node        // nil for one replica
	place       userlogin.Place   // of the Gateway, for logins of principals; nil until it is known
	logins      *userlogin.Logins // see [build.userLogins]
	hurry       chan struct{}     // of the Gateway; see [transport.CommandOptions]
	common      *common
	keepsCommon bool                  // it is that of a Gateway
	anew        string                // the server that is replaced even if it is as before
	parts       []*serverParts        // in the order of the servers
	groups      []*groupParts         // in the order of the groups
	kept        map[*serverParts]bool // those of a Gateway
}

// all returns the parts of all servers and groups.
func (b *build) all() []*serverParts { return allParts(b.parts, b.groups) }

func allParts(servers []*serverParts, groups []*groupParts) []*serverParts {
	all := slices.Clone(servers)
	for _, g := range groups {
		all = append(all, g.serverParts)
	}
	return all
}

// discard is the Logger of Options that have none: always the same.
var discard = slog.New(slog.DiscardHandler)

func newBuild(o *Options, m mcp.Metrics) *build {
	b := &build{opts: o, secrets: o.hooks.Secrets, metrics: m, common: &common{}, kept: make(map[*serverParts]bool), lists: &listDefinitions{}}
	if b.secrets == nil {
		b.secrets = redact.New()
	}
	b.secrets.Learn(o.Secrets...)
	o.Logger = cmp.Or(o.Logger, discard)
	return b
}

// close ends what was begun, but for what is kept of an earlier build.
func (b *build) close() error {
	for _, p := range b.all() {
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
	b.common.audit, err = audit.Open(audit.Options{Path: b.opts.Audit, Required: b.opts.AuditRequired, Logger: b.opts.Logger, Metrics: b.metrics})
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

// number returns what a limit is set to, or its default.
func (b *build) number(l *limits.Limit) int { return limits.Set(b.opts.Limits).Int(l) }

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

// options are those of the gateway, with its servers and groups. former has those of before; nil
// if there are none.
func (b *build) options(former *current) router.Options {
	o := b.gatewayOptions()
	for i, p := range b.parts {
		s := b.of(&b.opts.Servers[i])
		open := p.server.Open
		if back := b.opts.hooks.Backs[s.Name]; back != nil {
			open = back
		}
		o.Servers = append(o.Servers, s.entry(p, open))
	}
	for i, p := range b.groups {
		o.Servers = append(o.Servers, b.ofGroup(&b.opts.Groups[i]).entry(p, former))
	}
	b.addPages(&o)
	return o
}

// gatewayOptions are what the servers have in common.
func (b *build) gatewayOptions() router.Options {
	o := b.opts
	return router.Options{
		Default:        o.Default,
		Peers:          b.group(),
		Limits:         maps.Clone(o.Limits),
		SessionIdle:    o.SessionIdle,
		StateKeys:      o.StateKeys,
		BodyTimeout:    o.BodyTimeout,
		WriteTimeout:   o.WriteTimeout,
		KeepAlive:      o.KeepAlive,
		Drain:          o.Drain,
		MachineName:    o.MachineName,
		AllowedHosts:   b.allowedHosts(),
		AllowedOrigins: o.AllowedOrigins,
		TrustedProxies: o.TrustedProxies,
		Auth:           b.common.auth,
		Audit:          b.common.audit,
		Anew:           b.anew,
		Secrets:        b.secrets,
		DebugErrors:    o.DebugErrors,
		Logger:         o.Logger,
		Metrics:        b.metrics,
		Losses:         b.losses,
		Sealer:         b.sealer,
		Observers:      o.hooks.Observers,
		QuietRequests:  o.hooks.QuietRequests,
		NameTools:      b.number(limits.MetricTools) > 0,
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
	if token := b.opts.hooks.Caller; token != "" {
		b.secrets.Learn(token)
		b.common.auth = auth.Caller(token)
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
		b.parts, b.common, b.logins = made.parts, made.common, made.logins
		return nil
	}
	if err := b.checkLimits(); err != nil {
		return err
	}
	for i := range b.opts.Servers {
		s := &b.opts.Servers[i]
		p, err := b.of(s).newParts()
		if err != nil {
			return fmt.Errorf("mcpbridge: server %q: %w", s.Name, err)
		}
		b.parts = append(b.parts, p)
	}
	return nil
}

// allowedHosts are the names of the options, and those of the public URLs.
func (b *build) allowedHosts() []string {
	hosts := slices.Clone(b.opts.AllowedHosts)
	for i := range b.opts.Servers {
		if u, err := url.Parse(b.of(&b.opts.Servers[i]).publicURL()); err == nil && u.Host != "" {
			hosts = append(hosts, u.Hostname())
		}
	}
	for i := range b.opts.Groups {
		if u, err := url.Parse(b.ofGroup(&b.opts.Groups[i]).front.publicURL()); err == nil && u.Host != "" {
			hosts = append(hosts, u.Hostname())
		}
	}
	return hosts
}
