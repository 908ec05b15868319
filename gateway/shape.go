package gateway

import (
	"net/http"
	"reflect"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/limits"
)

// A shape is what a server is built from. What may be replaced while it is served is not part
// of it.
type shape struct {
	ServerOptions // without what is compared otherwise

	handler, roundTripper, tls any  // the same, or another
	dialled                    bool // by a hook
}

// shaped returns the shape of a server.
func (s serverBuild) shaped() shape {
	out := shape{ServerOptions: *s.ServerOptions, dialled: s.b.opts.hooks.Dial[s.Name] != nil}
	if s.Handler != nil {
		out.handler = s.Handler
	}
	if s.RoundTripper != nil {
		out.roundTripper = s.RoundTripper
	}
	if s.TLS != nil {
		out.tls = s.TLS
	}
	out.Handler, out.RoundTripper, out.TLS = nil, nil, nil
	out.Header = namesOf(s.Header)
	out.PublicURL = s.publicURL()
	out.Auth, out.UpstreamAuth = s.Auth.shape(), s.UpstreamAuth.shape()
	return out
}

func (s *shape) same(as shape) bool {
	return same(s.handler, as.handler) && same(s.roundTripper, as.roundTripper) && same(s.tls, as.tls) &&
		s.dialled == as.dialled && reflect.DeepEqual(s.ServerOptions, as.ServerOptions)
}

// A commonShape is what all servers of a Gateway are built with, as a shape is of one.
type commonShape struct {
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

// commonShape returns the shape of what all servers are built with. An option is part of it
// unless it is left out here.
func (b *build) commonShape() commonShape {
	out := commonShape{Options: *b.opts, logger: b.opts.Logger}
	if b.opts.Authenticator != nil {
		out.authenticator = b.opts.Authenticator
	}
	for _, l := range limits.All() {
		if !slices.Contains(liveLimits, l) {
			out.limits = append(out.limits, b.limit(l))
		}
	}
	if b.hasJWT() {
		out.claims = b.policyClaims()
	}
	o := &out.Options
	o.Servers, o.Limits, o.PublicURL, o.Auth, o.Authenticator, o.Logger = nil, nil, "", o.Auth.shape(), nil, nil
	o.AllowedHosts, o.AllowedOrigins, o.MachineName, o.TrustedProxies = nil, nil, "", nil
	o.StateKeys, o.Replicas, o.Secrets, o.DebugErrors, o.BodyTimeout = nil, nil, nil, false, 0
	o.hooks, o.made = Options{}.hooks, nil
	return out
}

func (c *commonShape) same(as *commonShape) bool {
	return same(c.authenticator, as.authenticator) && same(c.logger, as.logger) && slices.Equal(c.limits, as.limits) && slices.Equal(c.claims, as.claims) &&
		reflect.DeepEqual(c.Options, as.Options)
}

// hasJWT reports whether tokens of an issuer are accepted.
func (b *build) hasJWT() bool {
	return b.opts.Auth != nil && b.opts.Auth.JWT != nil ||
		slices.ContainsFunc(b.opts.Servers, func(s ServerOptions) bool { return s.Auth != nil && s.Auth.JWT != nil })
}

// shape returns a without its tokens, but for whether there are some.
func (a *Auth) shape() *Auth {
	if a == nil || len(a.Tokens) == 0 {
		return a
	}
	out := *a
	out.Tokens = []StaticToken{}
	return &out
}

// shape returns a without secrets that are the gateway's own.
func (a *UpstreamAuth) shape() *UpstreamAuth {
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
