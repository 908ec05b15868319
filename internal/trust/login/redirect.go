package login

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Hosts of redirect URIs. The address is what RFC 8252, 8.3 wants; some authorization servers
// compare the whole URI, and know the name alone.
const (
	hostAddress = "127.0.0.1"
	hostName    = "localhost"
)

const (
	// fixedPorts is how many ports a server has for the browser's return, since one of them
	// may be taken, as by another mcpbridge.
	fixedPorts = 3
	// The ports are below those that systems give to programs that ask for any.
	firstPort, ports = 10240, 20000
)

// A redirect says to which ports of this machine the browser may return.
type redirect struct {
	host  string
	tried []int // in this order
	told  []int // those to register
	any   bool  // another port will do, because the client is registered on the way
}

// portsOf returns the ports that belong to a server, always the same.
func portsOf(server string) (out []int) {
	sum := sha256.Sum256([]byte(name(server)))
	for i := 0; i < len(sum) && len(out) < fixedPorts; i += 2 {
		if p := firstPort + int(binary.BigEndian.Uint16(sum[i:]))%ports; !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// redirect returns to which ports the browser may return. The last login's is the first that
// is tried.
func (f *Flow) redirect(before *Login) redirect {
	r := redirect{host: f.Host, tried: []int{f.Port}, told: []int{f.Port}}
	last := Client{}
	if before != nil {
		last = before.Client
	}
	if r.host == "" {
		r.host = last.host()
	}
	if f.Port != 0 {
		return r
	}
	r.told = portsOf(f.URL)
	r.tried = slices.Clone(r.told)
	r.any = f.ClientID == "" && !last.ByHand
	if p := last.port(); p != 0 {
		r.tried = append([]int{p}, slices.DeleteFunc(r.tried, func(other int) bool { return other == p })...)
	}
	return r
}

// uris returns the redirect URIs to register.
func (r *redirect) uris() []string {
	out := make([]string, len(r.told))
	for i, p := range r.told {
		out[i] = "http://" + net.JoinHostPort(r.host, strconv.Itoa(p)) + callbackPath
	}
	return out
}

// toRegister says which redirect URIs a client needs.
func toRegister(uris []string) string {
	if len(uris) == 1 {
		return "the redirect URI " + uris[0]
	}
	return fmt.Sprintf("the redirect URIs %s (all of them: a port may be taken)", strings.Join(uris, ", "))
}

// host returns the host of the client's redirect URI.
func (c *Client) host() string {
	if u, err := url.Parse(c.RedirectURI); err == nil && u.Hostname() == hostName {
		return hostName
	}
	return hostAddress
}

// port returns the port of the client's redirect URI; zero if there is none.
func (c *Client) port() int {
	u, err := url.Parse(c.RedirectURI)
	if err != nil {
		return 0
	}
	port, _ := strconv.Atoi(u.Port())
	return port
}

// listen opens the listener for the browser's return.
func listen(r redirect) (*callback, error) {
	tried := r.tried
	if r.any {
		tried = append(slices.Clone(tried), 0)
	}
	var first error
	for _, port := range tried {
		c, err := listenAt(r.host, port)
		if err == nil {
			c.uris = r.uris()
			return c, nil
		}
		if first == nil {
			first = err
		}
	}
	if op := (*net.OpError)(nil); errors.As(first, &op) {
		first = op.Err
	}
	if len(tried) == 1 {
		return nil, fmt.Errorf("the browser can't return to port %d of this machine: %w; end what has the port, or name another by --port or callback_port", tried[0], first)
	}
	return nil, fmt.Errorf("the browser can't return to any of the ports %s of this machine: %w; end what has one of them, or name another by --port or callback_port",
		strings.Trim(fmt.Sprint(r.tried), "[]"), first)
}

// listenAt opens the listener at one port; zero means any. The name localhost is also the
// address of IPv6, where another program must not get what is meant for this one.
func listenAt(host string, port int) (*callback, error) {
	l, err := net.Listen("tcp4", net.JoinHostPort(hostAddress, strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	at := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	c := &callback{listeners: []net.Listener{l}, at: net.JoinHostPort(host, at), answers: make(chan answer, 1)}
	if host != hostName {
		return c, nil
	}
	six, err := net.Listen("tcp6", net.JoinHostPort("::1", at))
	if err == nil {
		c.listeners = append(c.listeners, six)
		return c, nil
	}
	if other, none := net.Listen("tcp6", "[::1]:0"); none == nil { // there is IPv6, and the port is taken there
		_, _ = other.Close(), l.Close()
		return nil, err
	}
	return c, nil
}
