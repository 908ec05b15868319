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

// A RefusedError says that a URL is not fetched, and why. Its text names the host, and no
// more of the URL.
type RefusedError struct {
	Host   string
	Reason string
}

func (e *RefusedError) Error() string { return "not fetching from " + e.Host + ": " + e.Reason }

// Public returns the text for clients, which are not told the names of hosts.
func (e *RefusedError) Public() string { return "not fetching from a host that the server names" }

// A guard decides what is fetched.
type guard struct {
	near    []string // names of the configured hosts, in lower case
	allowed []string // names of hosts, in lower case
	lookup  func(ctx context.Context, host string) ([]netip.Addr, error)

	// mu guards zones: what is known of near, by index. It is held during no lookup.
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

// checkURL reports why a URL is not fetched, whatever the address of its host.
func (g *guard) checkURL(ctx context.Context, u *url.URL) error {
	host := strings.ToLower(u.Hostname())
	refuse := func(format string, args ...any) error {
		return &RefusedError{u.Hostname(), fmt.Sprintf(format, args...)}
	}
	switch {
	case host == "" || u.Opaque != "":
		return &RefusedError{"a URL without a host", "give an absolute https URL"}
	case u.User != nil:
		return refuse("its URL contains a user name or a password")
	case u.Scheme == "http" && !(named(host) == loopback && g.isHome(ctx, loopback)):
		return refuse("its URL has http://; only https:// is fetched, unless the configured server is on loopback, too")
	case u.Scheme != "http" && u.Scheme != "https":
		return refuse("its URL is not one of https://")
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return g.checkAddr(ctx, host, a)
	}
	if named(host) == loopback {
		return g.checkZone(ctx, host, loopback)
	}
	return nil
}

// named returns the zone that a host's name alone shows: of localhost, and of addresses.
func named(host string) zone {
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

// checkZone reports why nothing is fetched from a host with an address of z.
func (g *guard) checkZone(ctx context.Context, host string, z zone) error {
	switch {
	case z == public, slices.Contains(g.allowed, strings.ToLower(host)):
		return nil
	case z != special && g.isHome(ctx, z):
		return nil
	}
	return &RefusedError{host, fmt.Sprintf("it has %v address, and the configured server has none of that kind; name the host in allow_hosts if that is right", z)}
}

// isHome reports whether a configured host is in z.
func (g *guard) isHome(ctx context.Context, z zone) bool {
	for i := range g.near {
		if g.zoneOfNear(ctx, i) == z {
			return true
		}
	}
	return false
}

// zoneOfNear returns the zone of a configured host: public unless all its addresses say
// otherwise. It is looked up once, so that who has the name can't change it later; what
// can't be looked up is asked again.
func (g *guard) zoneOfNear(ctx context.Context, i int) zone {
	host := g.near[i]
	if z := named(host); z != public {
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

// dial connects to a host if the address that is used is allowed, which is known only
// then: a second lookup may return another (CWE-367).
func (g *guard) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: dialTimeout, ControlContext: func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return &RefusedError{host, "its address can't be checked"}
		}
		return g.checkAddr(ctx, host, to.Addr())
	}}
	return d.DialContext(ctx, network, addr)
}

// lookupHost is the lookup of the system.
func lookupHost(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// refuseRedirect is for [http.Client.CheckRedirect]: where a redirect leads was not
// checked by whoever configured the URL, and a POST takes its secrets along.
func refuseRedirect(req *http.Request, via []*http.Request) error {
	return &RefusedError{via[0].URL.Hostname(), "it answered with a redirect, which is not followed"}
}
