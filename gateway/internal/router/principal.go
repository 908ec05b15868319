package router

import (
	"errors"
	"net/http"
	"slices"

	"github.com/mcpbridge/mcpbridge/gateway/internal/admission"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// authOf says who may send requests to a server.
func authOf(so ServerOptions, opts *Options) auth.Authenticator {
	if so.Auth != nil {
		return so.Auth
	}
	return opts.Auth
}

// authElsewhere says who may know which servers there are: everybody if all servers are
// anybody's.
func (opts *Options) authElsewhere() auth.Authenticator {
	if opts.Auth != nil {
		return opts.Auth
	}
	if slices.ContainsFunc(opts.Servers, func(so ServerOptions) bool { return so.Auth != nil && so.Auth != auth.None }) {
		return auth.Nobody
	}
	return auth.None
}

// newGuard returns the guard of a server, or that of all paths that are no server's, whose name is
// empty.
func newGuard(g *Gateway, server string, by auth.Authenticator, publicURL string, log *audit.Log) (*admission.Guard, error) {
	return admission.NewGuard(admission.GuardOptions{
		Server: server, Auth: by, PublicURL: publicURL, Proxies: func() admission.Proxies { return g.now().proxies },
		Secrets: g.opts.Secrets, Audit: log, Metrics: g.opts.Metrics, Logger: g.opts.Logger,
	})
}

// ForClient implements [hub.Server]: it returns what clients of the server are told of err; see
// [downstream.ErrorFilter.ForClient].
func (s *server) ForClient(err error) error {
	err = s.g.now().errors.ForClient(s.replaced(err))
	r := (*mcp.Refusal)(nil)
	code := auth.CodeInsufficientScope
	switch {
	case err == nil || !errors.As(err, &r) || r.Status != http.StatusUnauthorized && len(r.Scopes) == 0:
		return err
	case r.Status == http.StatusUnauthorized: // by a server that gets the client's own token, or since that has ended
		code = auth.CodeInvalidToken
	}
	refusal := *r
	refusal.Err = mcp.WireError(err)
	refusal.Challenge = auth.Challenge(code, s.guard.Endpoint, s.guard.Scopes(r.Scopes))
	return &refusal
}

// replaced returns the error for a request that was cut off since the server is not served any
// more; err itself if that is not why.
func (s *server) replaced(err error) error {
	if why := s.life.Reason(); why != nil && errors.Is(err, mcp.ErrShutdown) {
		return wire.Errorf(spec.CodeInternal, "%v; the request may have taken effect: check before sending it again", why)
	}
	return err
}
