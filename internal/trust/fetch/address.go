package fetch

import "net/netip"

// A zone is a kind of network addresses.
type zone uint8

const (
	public   zone = iota
	private       // of an organization's network
	loopback      // of this machine
	special       // for no server: unspecified, multicast, link-local and the like
)

// specials are networks in which no server can be that a document may name. They include
// those that embed an IPv4 address, which could be one of an inside network, and link-local
// addresses, at which clouds offer credentials.
//
// Spec: RFC 6890; RFC 6052; RFC 3056; RFC 4380.
var specials = prefixes("0.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"224.0.0.0/4", "240.0.0.0/4", "::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/32", "2001:db8::/32", "2002::/16", "fe80::/10", "fec0::/10", "ff00::/8")

// privates are networks of organizations, including providers.
//
// Spec: RFC 1918; RFC 4193; RFC 6598.
var privates = prefixes("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

// zoneOf returns the zone of an address.
func zoneOf(a netip.Addr) zone {
	a = a.Unmap().WithZone("")
	switch {
	case !a.IsValid():
		return special
	case a.IsLoopback():
		return loopback
	case within(privates, a):
		return private
	case within(specials, a):
		return special
	}
	return public
}

func within(networks []netip.Prefix, a netip.Addr) bool {
	for _, n := range networks {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

func (z zone) String() string {
	return [...]string{"a public", "a private", "a loopback", "a special-purpose"}[z]
}
