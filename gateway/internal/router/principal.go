package router

import (
	"errors"
	"net/http"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A guard says who may send requests to an endpoint, and who sent one.
type guard struct {
	auth     auth.Authenticator
	endpoint *auth.Endpoint // nil if its public URL is not known
	refused  *refusedLog
}

// newGuard returns the guard of a server, or that of all paths that are no server's.
func newGuard(a auth.Authenticator, publicURL string, refused *refusedLog) (g guard, err error) {
	g.refused = refused
	if g.auth = a; a == nil {
		g.auth = auth.None
	}
	if publicURL == "" {
		return g, nil
	}
	if g.endpoint, err = auth.NewEndpoint(publicURL); err != nil {
		return g, err
	}
	if _, hasMetadata := a.(auth.Resource); !hasMetadata {
		g.endpoint.MetadataURL, g.endpoint.MetadataPath = "", ""
	}
	return g, nil
}

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

// authenticate returns the sender of r. It reports false if it has written an error.
func (g *Gateway) authenticate(w http.ResponseWriter, r *http.Request, at *guard) (mcp.Sender, bool) {
	id, err := at.auth.Authenticate(r, at.endpoint)
	if err != nil {
		at.refuse(w, r, err)
		return mcp.Sender{}, false
	}
	principal := mcp.Anonymous
	if id != nil {
		principal = id.Principal
	}
	return mcp.Sender{Share: g.now().proxies.ShareOf(r, principal), Identity: id}, true
}

// ForClient implements [hub.Server]: it returns what clients of the server are told of err; see
// [errorFilter.forClient].
func (s *server) ForClient(err error) error {
	err = s.g.now().errors.forClient(s.replaced(err))
	r := (*mcp.Refusal)(nil)
	code := auth.CodeInsufficientScope
	switch {
	case err == nil || !errors.As(err, &r) || r.Status != http.StatusUnauthorized && len(r.Scopes) == 0:
		return err
	case r.Status == http.StatusUnauthorized: // by a server that gets the client's own token
		code = auth.CodeInvalidToken
	}
	refusal := *r
	refusal.Err = mcp.WireError(err)
	refusal.Challenge = auth.Challenge(code, s.guard.endpoint, s.guard.scopes(r.Scopes))
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

// scopes returns all scopes that a request needs: those of every request, and further ones.
// A client asks for what a challenge names, and no more.
func (g *guard) scopes(further []string) []string {
	resource, ok := g.auth.(auth.Resource)
	if !ok {
		return further
	}
	all := slices.Clone(resource.Scopes())
	for _, scope := range further {
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all
}

// refuse answers a request whose sender is unknown, or may not send it. It does not read the
// rest of the body.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, err error) {
	g.refused.report(r, err)
	refusal := (*auth.Refusal)(nil)
	if !errors.As(err, &refusal) {
		refuseBusy(w, wire.Errorf(spec.CodeInternal, "the credential can't be verified at the moment; try again"))
		return
	}
	status := refusal.StatusCode()
	if challenge := refusal.Header(g.endpoint); challenge != "" {
		w.Header().Set("WWW-Authenticate", challenge)
	}
	w.Header().Set("Connection", "close")
	downstream.WriteError(w, status, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest, "%s", http.StatusText(status)))
}

// refuseEnvelope answers a request of another replica whose envelope was refused: what it says
// of a client's credential is for the client.
func (g *guard) refuseEnvelope(w http.ResponseWriter, r *http.Request, err error) {
	if refusal := (*peer.RefusedError)(nil); errors.As(err, &refusal) && refusal.Expired {
		g.refuse(w, r, &auth.Refusal{Code: auth.CodeInvalidToken, Reason: refusal.Reason})
		return
	}
	g.refused.reportPeer(r, err)
	peer.Refuse(w, err)
}
