package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/mcpbridge/mcpbridge/gateway/internal/router"
	"github.com/mcpbridge/mcpbridge/gateway/internal/visit"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas/node"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
	"github.com/mcpbridge/mcpbridge/internal/trust/login"
	"github.com/mcpbridge/mcpbridge/internal/trust/userlogin"
)

// placeOf returns where logins of principals are: at the engine that all replicas share, or in a
// folder.
func placeOf(o *Options, n *node.Node) userlogin.Place {
	if n != nil && o.Replicas.Engine != nil {
		return userlogin.AtEngine(n.Engine())
	}
	return userlogin.InDir(o.Logins.UserDir)
}

// addUserLogins makes the credentials of a server at which each principal has a login.
func (s serverBuild) addUserLogins(p *serverParts) error {
	logins, err := s.b.userLogins()
	if err != nil {
		return err
	}
	switch a := s.b.authOf(s.ServerOptions); {
	case s.b.opts.Authenticator == nil && (a == nil || count(a.JWT != nil, len(a.Tokens) > 0, a.MTLS != nil) == 0):
		return errors.New("PerPrincipal wants clients that prove who they are: set Auth")
	case s.b.opts.Authenticator != nil && s.publicURL() == "":
		return errors.New("PerPrincipal wants a PublicURL")
	}
	l := s.UpstreamAuth.Login
	s.b.secrets.Learn(l.ClientSecret)
	flow := login.WebFlow{HTTP: s.fetchingFor(l.Issuer), URL: s.URL, Issuer: l.Issuer, ClientID: l.ClientID, ClientSecret: l.ClientSecret, Scopes: l.Scopes,
		Tell: func(text string) { s.b.opts.Logger.Warn(text, "upstream", s.Name) }}
	if l.AssumePKCE {
		flow.AssumePKCE = l.Issuer
	}
	var full transport.WarnLimiter
	p.users = logins.Open(userlogin.ServerOptions{Name: s.Name, Flow: flow, Full: func() {
		s.b.metrics.Limit(s.Name, "user_logins")
		full.Warn(s.b.opts.Logger, "more users than have their logins in memory: one has made room, whose login is read again with the next request", "upstream", s.Name)
	}})
	p.credentials = p.users
	p.ends = append(p.ends, p.users.Close)
	return nil
}

// authOf returns how the clients of a server prove who they are; nil for not at all, or by an
// Authenticator.
func (b *build) authOf(s *ServerOptions) *Auth {
	if s.Auth != nil {
		return s.Auth
	}
	return b.opts.Auth
}

// userLogins returns the logins of principals, which are made when a server first wants them, and
// anew for another public URL.
func (b *build) userLogins() (*userlogin.Logins, error) {
	if b.logins != nil {
		return b.logins, nil
	}
	if b.opts.PublicURL == "" {
		return nil, errors.New("PerPrincipal wants a PublicURL, by which browsers reach the page for logins")
	}
	if b.place == nil { // it is not known yet whether there are replicas
		b.place = userlogin.InDir(b.opts.Logins.UserDir)
	}
	var err error
	b.logins, err = userlogin.New(userlogin.Options{
		Place: b.place, Keys: b.loginKeys(), Public: strings.TrimSuffix(b.opts.PublicURL, "/"), Logger: b.opts.Logger, Secrets: b.secrets,
		Fetch: func(server string) *fetch.Client { return b.fetching(server) },
		Noted: func(e userlogin.Event) {
			b.common.audit.Write(audit.Login(e.What, e.Server, string(e.Principal), string(e.By), e.Address, e.Why))
		},
	})
	return b.logins, err
}

// loginKeys returns the secrets that logins of principals are sealed with.
func (b *build) loginKeys() []string {
	if len(b.opts.Logins.Keys) > 0 {
		return b.opts.Logins.Keys
	}
	if err := b.opts.deriveStateKeys(); err != nil {
		return nil // New says so
	}
	return b.opts.StateKeys
}

// checkLoginKeys reports what is wrong with keys that are to replace others.
func (b *build) checkLoginKeys() error {
	if b.logins == nil {
		return nil
	}
	return userlogin.CheckKeys(b.loginKeys())
}

// replaceLoginKeys has keys count that were checked.
func (b *build) replaceLoginKeys() {
	if b.logins != nil {
		_ = b.logins.Replace(b.loginKeys())
	}
}

// userLoginsOf returns the logins of a server's principals; nil if it has none.
func userLoginsOf(p *serverParts) visit.Logins {
	if p.users == nil {
		return nil
	}
	return p.users
}

// addPages adds the pages on which principals log in to servers.
func (b *build) addPages(o *router.Options) {
	doors := make(map[string]*userlogin.Door)
	for i, p := range b.parts {
		if p.users != nil {
			doors[p.identity.Name] = b.of(&b.opts.Servers[i]).door(p)
		}
	}
	if len(doors) > 0 {
		b.logins.Use(b.place)
		pages := userlogin.NewPages(b.logins, doors)
		o.Pages, o.PagePaths = pages, pages.Paths()
	}
}

// door returns a server as the pages see it.
func (s serverBuild) door(p *serverParts) *userlogin.Door {
	by, options := p.auth, s.b.authOf(s.ServerOptions)
	if by == nil {
		by = s.b.common.auth
	}
	endpoint, err := auth.NewEndpoint(s.publicURL())
	if err != nil {
		endpoint = &auth.Endpoint{} // the router says so
	}
	d := &userlogin.Door{
		Server: p.users, Issuers: make(map[string]login.WebFlow),
		Authenticate: func(r *http.Request) (mcp.Principal, error) {
			id, err := by.Authenticate(r, endpoint)
			if err != nil || id == nil {
				return mcp.Anonymous, err
			}
			return id.Principal, nil
		},
		ByCertificate: func(r *http.Request) bool { return auth.ByCertificate(by, r) },
		Tokens:        options == nil || len(options.Tokens) > 0 || options.JWT != nil,
	}
	for _, j := range options.issuers() {
		flow := login.WebFlow{HTTP: s.b.fetching(j.Issuer), Issuer: j.Issuer, Resource: endpoint.Resource, Scopes: j.Scopes}
		if c := j.LoginClient; c != nil {
			s.b.secrets.Learn(c.ClientSecret)
			flow.ClientID, flow.ClientSecret = c.ClientID, c.ClientSecret
		}
		d.Issuers[j.Issuer] = flow
	}
	return d
}

var errNoLogins = errors.New("no server has logins of its users")

// Logins implements [cmdhook.Inner].
func (g inner) Logins(ctx context.Context) (any, error) {
	told := struct {
		Logins []userlogin.Entry `json:"logins"`
		Unread int               `json:"unread,omitempty"` // were sealed with other keys
	}{Logins: []userlogin.Entry{}}
	l := g.outer.logins()
	if l == nil {
		return &told, nil
	}
	all, unread, err := l.List(ctx)
	told.Logins, told.Unread = append(told.Logins, all...), unread
	return &told, err
}

// EndLogins implements [cmdhook.Inner].
func (g inner) EndLogins(ctx context.Context, server, principal string) (any, error) {
	l := g.outer.logins()
	if l == nil {
		return nil, errNoLogins
	}
	ended, err := l.End(ctx, server, mcp.Principal(principal))
	for _, p := range g.outer.parts() {
		if p.users != nil {
			p.users.Forget(mcp.Principal(principal))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("ending logins: %w", err)
	}
	return append([]userlogin.Ended{}, ended...), nil
}

func (g *Gateway) logins() *userlogin.Logins {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	return g.current.logins
}

func (g *Gateway) parts() []*serverParts {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	return g.current.parts
}
