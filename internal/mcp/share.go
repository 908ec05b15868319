package mcp

import "net/netip"

// A Share names one of those among whom what is bounded is shared: what each may have
// at most. It is of no account for what they may see.
type Share struct {
	Principal Principal
	// Net is the network of an anonymous client: its address, or the /64 of one of
	// IPv6, within which a client can have any. Zero where it is not known.
	Net netip.Prefix
}

// NewShare returns the share of a principal who is at addr, which may be zero. As long
// as everybody is anonymous the address is all there is to tell clients apart.
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
	s.Net, _ = addr.Prefix(bits) // bits are in range
	return s
}
