package gateway

import (
	"net/http"
	"reflect"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/settings"
)

// An identity is what a server is built from. What may be replaced while it is served is not part
// of it.
type identity struct {
	ServerOptions // without what is compared otherwise

	set                        settings.Server
	handler, roundTripper, tls any    // the same, or another
	dialled                    bool   // by a hook
	pages                      string // the public URL of the Gateway, if principals log in on a page of it
}

// identity returns the identity of a server.
func (s serverBuild) identity() identity {
	out := identity{ServerOptions: *s.ServerOptions, set: s.set, dialled: s.b.opts.hooks.Dial[s.Name] != nil}
	if s.Handler != nil {
		out.handler = s.Handler
	}
	if s.RoundTripper != nil {
		out.roundTripper = s.RoundTripper
	}
	if s.TLS != nil {
		out.tls = s.TLS
	}
	if s.UpstreamAuth.perPrincipal() {
		out.pages = s.b.opts.PublicURL
	}
	out.Handler, out.RoundTripper, out.TLS = nil, nil, nil
	out.Header = namesOf(s.Header)
	out.PublicURL = s.publicURL()
	out.Auth, out.UpstreamAuth = s.Auth.identity(), s.UpstreamAuth.identity()
	return out
}

func (i *identity) same(as identity) bool {
	return same(i.handler, as.handler) && same(i.roundTripper, as.roundTripper) && same(i.tls, as.tls) &&
		i.dialled == as.dialled && i.pages == as.pages && reflect.DeepEqual(i.ServerOptions, as.ServerOptions) && reflect.DeepEqual(i.set, as.set)
}

// A commonIdentity is what all servers of a Gateway are built with, as an identity is of one.
type commonIdentity struct {
	Options // without what is compared otherwise, and what applies at once

	authenticator, logger any
	limits                []int64  // on what one server has
	claims                []string // that tokens are read for
}

// liveLimits are the limits that apply at once.
var liveLimits = []*limits.Limit{
	limits.Memory, limits.Body, limits.Depth, limits.ID, limits.ProgressToken, limits.Method, limits.URI, limits.Filter, limits.ClientInfo,
	limits.Capabilities, limits.Requests, limits.RequestsEach, limits.Streams, limits.StreamsEach, limits.WebSockets, limits.WebSocketsEach,
	limits.CacheEntries, limits.Cache, limits.NewConnections,
}

// commonIdentity returns the identity of what all servers are built with. An option is part of it
// unless it is left out here.
func (b *build) commonIdentity() commonIdentity {
	out := commonIdentity{Options: *b.opts, logger: b.opts.Logger}
	if b.opts.Authenticator != nil {
		out.authenticator = b.opts.Authenticator
	}
	for _, l := range limits.All() {
		if !slices.Contains(liveLimits, l) {
			out.limits = append(out.limits, limits.Set(b.opts.Limits).Of(l))
		}
	}
	if b.hasJWT() {
		out.claims = b.policyClaims()
	}
	o := &out.Options
	o.Servers, o.Groups, o.Default, o.Limits, o.PublicURL, o.Auth, o.Authenticator, o.Logger = nil, nil, "", nil, "", o.Auth.identity(), nil, nil
	o.AllowedHosts, o.AllowedOrigins, o.MachineName, o.TrustedProxies = nil, nil, "", nil
	o.StateKeys, o.Replicas, o.Secrets, o.DebugErrors, o.BodyTimeout = nil, nil, nil, false, 0
	o.Logins.Keys = nil
	o.hooks, o.made = Options{}.hooks, nil
	return out
}

func (c *commonIdentity) same(as *commonIdentity) bool {
	return same(c.authenticator, as.authenticator) && same(c.logger, as.logger) && slices.Equal(c.limits, as.limits) && slices.Equal(c.claims, as.claims) &&
		reflect.DeepEqual(c.Options, as.Options)
}

// hasJWT reports whether tokens of an issuer are accepted.
func (b *build) hasJWT() bool {
	return len(b.opts.Auth.issuers()) > 0 ||
		slices.ContainsFunc(b.opts.Servers, func(s ServerOptions) bool { return len(s.Auth.issuers()) > 0 }) ||
		slices.ContainsFunc(b.opts.Groups, func(g GroupOptions) bool { return len(g.Auth.issuers()) > 0 })
}

// identity returns a without its tokens, but for whether there are some.
func (a *Auth) identity() *Auth {
	if a == nil || len(a.Tokens) == 0 {
		return a
	}
	out := *a
	out.Tokens = []StaticToken{}
	return &out
}

// identity returns a without secrets that are the gateway's own.
func (a *UpstreamAuth) identity() *UpstreamAuth {
	if a == nil {
		return nil
	}
	out := *a
	if a.Token != "" {
		out.Token = "set"
	}
	if c := a.ClientCredentials; c != nil {
		out.ClientCredentials = new(IssuerClient)
		*out.ClientCredentials = *c
		out.ClientCredentials.ClientSecret, out.ClientCredentials.PrivateKey = "", ""
	}
	return &out
}

// same reports whether two values are the same. Functions never are.
func same(a, b any) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// namesOf returns the names of headers.
func namesOf(h http.Header) http.Header {
	out := make(http.Header, len(h))
	for name := range h {
		out[http.CanonicalHeaderKey(name)] = nil
	}
	return out
}
