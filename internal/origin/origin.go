package origin

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Policy decides from which web pages, and with which Host, requests are served.
type Policy struct {
	Hosts   Hosts
	Allowed []string // origins besides those of loopback
}

// Refuse answers 403 to requests that a web page of another origin, or a page whose name was
// rebound to this machine, may have sent. It comes before every other check, so that such
// pages learn nothing, not even which servers there are.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Security & Endpoint.
func (p *Policy) Refuse(w http.ResponseWriter, r *http.Request) (refused bool) {
	reason := ""
	switch {
	case !p.Hosts.Allow(r):
		reason = HostRefusal(r)
	case !p.Allow(r):
		reason = "Origin " + strings.Join(r.Header["Origin"], " and ") + " is not allowed; add it to allowed_origins if it should be"
	default:
		return false
	}
	downstream.WriteError(w, http.StatusForbidden, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest, "%s", reason))
	return true
}

// Hosts are the names that a listener is served under. A request with another Host may come
// from a web page whose name was rebound to the listener's address, so that the page could
// read what is served there (CWE-350).
type Hosts struct {
	Machine string   // the machine's name; empty if it has none
	Allowed []string // further names
}

// Allow reports whether the Host of a request is allowed. A loopback listener allows
// loopback names alone; others also allow every IP address, localhost (for forwarded ports)
// and the machine's name.
func (h Hosts) Allow(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return true
	}
	host := hostname(r.Host)
	if loopbackName(host) || slices.ContainsFunc(h.Allowed, func(name string) bool { return strings.EqualFold(name, host) }) {
		return true
	}
	return !loopbackAddr(local) && (host == "" || isIP(host) || h.isMachine(host)) // health checks over HTTP/1.0 have no Host
}

// isMachine reports whether host is the machine's name: with or without its domain, or as in
// multicast DNS.
func (h Hosts) isMachine(host string) bool {
	short, _, _ := strings.Cut(h.Machine, ".")
	return short != "" && (strings.EqualFold(host, h.Machine) || strings.EqualFold(host, short) || strings.EqualFold(host, short+".local"))
}

// Guard returns a handler that has h answer requests whose Host is allowed, and refuses others: no web
// page whose name was rebound to this machine reaches it.
func (h Hosts) Guard(guarded http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.Allow(r) {
			http.Error(w, HostRefusal(r), http.StatusForbidden)
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

// HostRefusal returns the error for a request whose Host is not allowed.
func HostRefusal(r *http.Request) string {
	return "Host " + r.Host + " is not served here; add it to allowed_hosts if it should be"
}

// Allow reports whether the Origin of a request is allowed.
func (p *Policy) Allow(r *http.Request) bool {
	if len(r.Header["Origin"]) > 1 { // RFC 6454, 7.3: a proxy may have checked another one
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(p.Allowed, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Scheme+"://"+u.Host == origin && loopbackName(u.Hostname())
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

func isIP(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}
