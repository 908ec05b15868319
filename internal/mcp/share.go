package mcp

import "net/netip"

// A Share identifies a client for limits per client. It has no influence on access.
type Share struct {
	Principal Principal
	// Net is the network of an anonymous client: its IPv4 address, or the /64 of its IPv6
	// address, in which a client can choose any address. Zero if unknown.
	Net netip.Prefix
	// Charged says that another replica has charged the client: nothing is charged here.
	Charged bool
}

// NewShare returns the share of a principal with an address, which may be zero. Only the
// address distinguishes anonymous clients.
func NewShare(p Principal, addr netip.Addr) Share {
	s := Share{Principal: p}
	addr = addr.Unmap().WithZone("")
	if p != Anonymous || !addr.IsValid() {
		return s
	}
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	s.Net, _ = addr.Prefix(bits) // bits is in range
	return s
}
