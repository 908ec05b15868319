package value

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// IsPort reports whether text is the number of a port.
func IsPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

// OnLoopback returns the loopback address with a port, or with a port as an example if it is
// invalid.
func OnLoopback(port string) string {
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		port = "2526"
	}
	return net.JoinHostPort("127.0.0.1", port)
}

// Loopback reports whether only this machine reaches a host.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Network parses a network such as 10.0.0.0/8, or an address as a network of one address.
func Network(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}

// IsHost reports whether text can be the name or the address of a host, without a port.
func IsHost(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil || text != "" && !strings.ContainsAny(text, "/:@* ")
}

// IsServerName reports whether a certificate can be for a name.
func IsServerName(text string) bool { return len(text) <= 253 && serverName.MatchString(text) }

var serverName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

// Private reports whether others can't read on their way what is sent to a URL.
func Private(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && Loopback(u.Hostname())
}

// IsPrintable reports whether text is of visible ASCII characters, without spaces.
func IsPrintable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

var principalForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@+-]*$`)

// IsPrincipal reports whether a token can stand for a principal of that name.
func IsPrincipal(name string) bool {
	return len(name) <= 128 && principalForm.MatchString(name) && name != "anonymous"
}
