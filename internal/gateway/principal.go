package gateway

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// An AuthError says how a request is refused that is on nobody's behalf.
type AuthError struct {
	Status    int    // of HTTP; zero means 401
	Challenge string // the WWW-Authenticate header; empty for none
	Err       error  // for the log
}

func (e *AuthError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *AuthError) Unwrap() error { return e.Err }

// authenticate says whose request r is, or answers it and reports false. Without
// Options.Authenticate it is nobody's: that is why a listener beyond loopback must be
// allowed by name in the configuration.
func (g *Gateway) authenticate(w http.ResponseWriter, r *http.Request) (mcp.Principal, bool) {
	if g.opts.Authenticate == nil {
		return mcp.Anonymous, true
	}
	principal, err := g.opts.Authenticate(r)
	if err != nil {
		g.refusePrincipal(w, r, err)
		return "", false
	}
	return cmp.Or(principal, mcp.Anonymous), true
}

// refusePrincipal answers a request that is on nobody's behalf. What its client has not
// sent of it is not read.
func (g *Gateway) refusePrincipal(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusUnauthorized
	if refusal := (*AuthError)(nil); errors.As(err, &refusal) {
		status = cmp.Or(refusal.Status, status)
		if refusal.Challenge != "" {
			w.Header().Set("WWW-Authenticate", refusal.Challenge)
		}
	}
	g.opts.Logger.Info("request refused: not authenticated", "downstream", r.RemoteAddr, "status", status, "err", err)
	w.Header().Set("Connection", "close")
	downstream.WriteError(w, status, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest, "%s", http.StatusText(status)))
}

// shareKey is the key of the context of a request by which a mux's handlers get its share.
type shareKey struct{}

func withShare(r *http.Request, share mcp.Share) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), shareKey{}, share))
}

func shareFrom(r *http.Request) mcp.Share {
	share, _ := r.Context().Value(shareKey{}).(mcp.Share)
	return share
}
