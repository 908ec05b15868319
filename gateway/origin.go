package gateway

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern"
)

// checkOrigin answers 403 to requests that a web page of another origin, or a
// name rebound to this machine, may have sent. It comes before everything else: what
// is served is nobody's business of theirs either.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Security & Endpoint.
func (g *Gateway) checkOrigin(w http.ResponseWriter, r *http.Request) (refused bool) {
	reason := ""
	switch {
	case !g.hostAllowed(r):
		reason = "Host " + r.Host + " is not served on a loopback address; add it to allowed_hosts if it should be"
	case !g.originAllowed(r):
		reason = "Origin " + r.Header.Get("Origin") + " is not allowed; add it to allowed_origins if it should be"
	default:
		return false
	}
	modern.WriteError(w, http.StatusForbidden, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest, "%s", reason))
	return true
}

func (g *Gateway) hostAllowed(r *http.Request) bool { return HostAllowed(r, g.opts.AllowedHosts) }

// HostAllowed reports whether a request may have come by its Host: on a loopback
// listener a name that is neither this machine's nor allowed has been rebound to it,
// by a web page that wants to read what is served. Elsewhere the name says nothing.
func HostAllowed(r *http.Request, allowed []string) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || !loopbackAddr(local) {
		return true
	}
	host := hostname(r.Host)
	return loopbackName(host) || slices.Contains(allowed, host)
}

func (g *Gateway) originAllowed(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(g.opts.AllowedOrigins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && loopbackName(u.Hostname())
}

func loopbackAddr(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

func hostname(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

func loopbackName(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
