package admission

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Guard says who may send requests to an endpoint, and who sent one.
type Guard struct {
	Auth     auth.Authenticator
	Endpoint *auth.Endpoint // nil if its public URL is not known
	proxies  func() Proxies
	refused  *refusedLog
}

// GuardOptions configure a Guard. Proxies, Metrics and Logger are required.
type GuardOptions struct {
	Server    string             // empty for paths that are no server's
	Auth      auth.Authenticator // nil lets everybody in
	PublicURL string             // of the endpoint; empty if it is not known
	Proxies   func() Proxies     // that are trusted at this moment
	Secrets   *redact.Redactor   // are removed from the audit log; nil for none
	Audit     *audit.Log         // gets the credentials that are refused; nil for none
	Metrics   mcp.Metrics
	Logger    *slog.Logger
}

// NewGuard returns the Guard of a server, or that of all paths that are no server's.
func NewGuard(o GuardOptions) (g *Guard, err error) {
	if o.Auth == nil {
		o.Auth = auth.None
	}
	g = &Guard{Auth: o.Auth, proxies: o.Proxies, refused: newRefusedLog(o)}
	if o.PublicURL == "" {
		return g, nil
	}
	if g.Endpoint, err = auth.NewEndpoint(o.PublicURL); err != nil {
		return nil, err
	}
	if _, hasMetadata := o.Auth.(auth.Resource); !hasMetadata {
		g.Endpoint.MetadataURL, g.Endpoint.MetadataPath = "", ""
	}
	g.Endpoint.Share = func(r *http.Request) mcp.Share { return o.Proxies().ShareOf(r, mcp.Anonymous) }
	return g, nil
}

// Authenticate returns the sender of r. It reports false if it has written an error.
func (g *Guard) Authenticate(w http.ResponseWriter, r *http.Request) (mcp.Sender, bool) {
	id, err := g.Auth.Authenticate(r, g.Endpoint)
	if err != nil {
		g.Refuse(w, r, err)
		return mcp.Sender{}, false
	}
	principal := mcp.Anonymous
	if id != nil {
		principal = id.Principal
	}
	return mcp.Sender{Share: g.proxies().ShareOf(r, principal), Identity: id}, true
}

// Scopes returns all scopes that a request needs: those of every request, and further ones.
// A client asks for what a challenge names, and no more.
func (g *Guard) Scopes(further []string) []string {
	resource, ok := g.Auth.(auth.Resource)
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

// Refuse answers a request whose sender is unknown, or may not send it, before its body is read.
func (g *Guard) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	g.refused.report(r, err)
	w.Header().Set("Connection", "close")
	refusal := (*auth.Refusal)(nil)
	if !errors.As(err, &refusal) {
		downstream.WriteBusy(w, wire.ID{}, wire.Errorf(spec.CodeInternal, "the credential can't be verified at the moment; try again"))
		return
	}
	status := refusal.StatusCode()
	if challenge := refusal.Header(g.Endpoint); challenge != "" {
		w.Header().Set("WWW-Authenticate", challenge)
	}
	downstream.WriteError(w, status, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest, "%s", http.StatusText(status)))
}

// ReportPeer counts and logs a request to the peer listener that is refused because of its envelope.
func (g *Guard) ReportPeer(r *http.Request, err error) { g.refused.reportPeer(r, err) }
