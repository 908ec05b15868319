package gateway

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// proxies are the networks of trusted proxies.
type proxies []netip.Prefix

// shareOf says whose share of what is bounded a request of principal takes from.
func (p proxies) shareOf(r *http.Request, principal mcp.Principal) mcp.Share {
	if principal != mcp.Anonymous {
		return mcp.Share{Principal: principal}
	}
	return mcp.NewShare(principal, p.clientAddr(r))
}

// clientAddr returns the address that a request came from: where its connection is of a
// trusted proxy, the last one it was forwarded for that is none. Zero is unknown.
func (p proxies) clientAddr(r *http.Request) netip.Addr {
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
		return addr // a client has written one of them, and nothing tells which
	}
	for _, hop := range slices.Backward(hops) {
		at, ok := hopAddr(hop)
		if !ok {
			break // obfuscated: what is behind it may be the client's own words
		}
		if addr = at; !p.isProxy(addr) {
			break
		}
	}
	return addr
}

func (p proxies) isProxy(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// forwardedFor returns whom a request was forwarded for, the nearest last, and whether
// both headers that can say so are there.
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

// hopAddr reads an address with or without port, one of IPv6 with or without brackets.
func hopAddr(hop string) (netip.Addr, bool) {
	hop = strings.TrimSpace(hop)
	if at, err := netip.ParseAddrPort(hop); err == nil {
		return at.Addr(), true
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(hop, "["), "]"))
	return addr, err == nil
}
