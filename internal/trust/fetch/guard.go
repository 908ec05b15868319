package fetch

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// A RefusedError says why a URL must not be fetched. Its text has the host, but nothing
// else of the URL.
type RefusedError struct {
	Host   string
	Reason string
}

func (e *RefusedError) Error() string { return "not fetching from " + e.Host + ": " + e.Reason }

// Public returns the text for clients, without names of hosts.
func (e *RefusedError) Public() string { return "not fetching from a host that the server names" }

// A guard decides which URLs may be fetched.
type guard struct {
	near    []string // names of the configured hosts, in lower case
	allowed []string // names of hosts, in lower case
	lookup  func(ctx context.Context, host string) ([]netip.Addr, error)

	// mu guards zones: the known zones of near, by index. It is not held during a lookup.
	mu    sync.Mutex
	zones map[int]zone
}

func newGuard(o *Options) *guard {
	g := &guard{lookup: o.lookup, zones: make(map[int]zone)}
	if g.lookup == nil {
		g.lookup = lookupHost
	}
	for _, text := range o.Near {
		if u, err := url.Parse(text); err == nil && u.Hostname() != "" {
			g.near = append(g.near, strings.ToLower(u.Hostname()))
		}
	}
	for _, host := range o.AllowHosts {
		g.allowed = append(g.allowed, strings.ToLower(host))
	}
	return g
}

// checkURL returns an error if a URL must not be fetched, whatever the address of its host
// is.
func (g *guard) checkURL(ctx context.Context, u *url.URL) error {
	host := strings.ToLower(u.Hostname())
	refuse := func(format string, args ...any) error {
		return &RefusedError{u.Hostname(), fmt.Sprintf(format, args...)}
	}
	switch {
	case host == "": // as of opaque URLs
		return &RefusedError{"a URL without a host", "give an absolute https URL"}
	case u.User != nil:
		return refuse("its URL contains a user name or a password")
	case u.Scheme == "http" && !(zoneOfName(host) == loopback && g.hasZone(ctx, loopback)):
		return refuse("its URL has http://; only https:// is fetched, unless the configured server is on loopback, too")
	case u.Scheme != "http" && u.Scheme != "https":
		return refuse("its URL is not one of https://")
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return g.checkAddr(ctx, host, a)
	}
	if zoneOfName(host) == loopback {
		return g.checkZone(ctx, host, loopback)
	}
	return nil
}

// zoneOfName returns the zone of a host as far as its name shows it: of localhost, and of
// addresses.
func zoneOfName(host string) zone {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return loopback
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return zoneOf(a)
	}
	return public
}

func (g *guard) checkAddr(ctx context.Context, host string, a netip.Addr) error {
	return g.checkZone(ctx, host, zoneOf(a))
}

// checkZone returns an error if a host must not have an address of z.
func (g *guard) checkZone(ctx context.Context, host string, z zone) error {
	switch {
	case z == public, slices.Contains(g.allowed, strings.ToLower(host)):
		return nil
	case z != special && g.hasZone(ctx, z):
		return nil
	}
	return &RefusedError{host, fmt.Sprintf("it has %v address, and the configured server has none of that kind; name the host in allow_hosts if that is right", z)}
}

// hasZone reports whether a configured host is in z.
func (g *guard) hasZone(ctx context.Context, z zone) bool {
	for i := range g.near {
		if g.zoneOfNear(ctx, i) == z {
			return true
		}
	}
	return false
}

// zoneOfNear returns the zone of a configured host: public unless all its addresses are in
// one other zone. It is looked up only once, so that the owner of the name can't change it
// later; a failed lookup is repeated.
func (g *guard) zoneOfNear(ctx context.Context, i int) zone {
	host := g.near[i]
	if z := zoneOfName(host); z != public {
		return z
	}
	g.mu.Lock()
	z, known := g.zones[i]
	g.mu.Unlock()
	if known {
		return z
	}
	addrs, err := g.lookup(ctx, host)
	if err != nil || len(addrs) == 0 {
		return public
	}
	z = zoneOf(addrs[0])
	for _, a := range addrs[1:] {
		if zoneOf(a) != z {
			z = public
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if first, known := g.zones[i]; known {
		return first
	}
	g.zones[i] = z
	return z
}

// dial connects to a host if the address that is used is allowed. That must be checked
// here, because a second lookup may return another address (CWE-367).
func (g *guard) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: dialTimeout, ControlContext: func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		to, _ := netip.ParseAddrPort(address) // one that can't be read is special
		return g.checkAddr(ctx, host, to.Addr())
	}}
	return d.DialContext(ctx, network, addr)
}

// lookupHost is the system's lookup.
func lookupHost(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// refuseRedirect is for [http.Client.CheckRedirect]: the target of a redirect is not
// configured, and a POST would send its secrets there.
func refuseRedirect(req *http.Request, via []*http.Request) error {
	return &RefusedError{via[0].URL.Hostname(), "it answered with a redirect, which is not followed"}
}
