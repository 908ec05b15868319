package admission

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// Proxies are the networks of trusted proxies.
type Proxies []netip.Prefix

// ShareOf returns the share that a request of principal is counted against.
func (p Proxies) ShareOf(r *http.Request, principal mcp.Principal) mcp.Share {
	if principal != mcp.Anonymous {
		return mcp.Share{Principal: principal}
	}
	return mcp.NewShare(principal, p.clientAddr(r))
}

// Address returns the address of the client: that of the connection, with its port, or the
// one without a port that a trusted proxy has named.
func (p Proxies) Address(r *http.Request) string {
	if len(p) == 0 {
		return r.RemoteAddr
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !p.isProxy(peer.Addr()) {
		return r.RemoteAddr
	}
	return p.clientAddr(r).String()
}

// clientAddr returns the address of the client. If a trusted proxy sent the request, that is
// the last forwarded address that is not a trusted proxy. Zero means unknown.
func (p Proxies) clientAddr(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr := peer.Addr()
	if !p.isProxy(addr) {
		return addr
	}
	hops, both := forwardedFor(r.Header)
	if both {
		return addr // the client wrote one of the two headers, and it is unknown which
	}
	for _, hop := range slices.Backward(hops) {
		at, ok := hopAddr(hop)
		if !ok {
			break // obfuscated: earlier addresses may be the client's inventions
		}
		if addr = at; !p.isProxy(addr) {
			break
		}
	}
	return addr
}

func (p Proxies) isProxy(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// forwardedFor returns the addresses that a request was forwarded for, the nearest last, and
// whether both headers that can contain them are present.
//
// Spec: RFC 7239, 4 and 5.2.
func forwardedFor(h http.Header) (hops []string, both bool) {
	older, newer := h["X-Forwarded-For"], h["Forwarded"]
	for _, line := range older {
		hops = append(hops, strings.Split(line, ",")...)
	}
	if len(older) > 0 {
		return hops, len(newer) > 0
	}
	for _, line := range newer {
		for element := range strings.SplitSeq(line, ",") {
			hops = append(hops, forParameter(element))
		}
	}
	return hops, false
}

func forParameter(element string) string {
	for pair := range strings.SplitSeq(element, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if strings.EqualFold(name, "for") {
			return strings.Trim(value, `"`)
		}
	}
	return ""
}

// hopAddr parses an address with or without a port; IPv6 with or without brackets.
func hopAddr(hop string) (netip.Addr, bool) {
	hop = strings.TrimSpace(hop)
	if at, err := netip.ParseAddrPort(hop); err == nil {
		return at.Addr(), true
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(hop, "["), "]"))
	return addr, err == nil
}
