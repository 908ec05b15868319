package fetch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/transport"
)

const (
	// MaxBody limits a response's body, in bytes.
	MaxBody = 1 << 20
	// maxHeader limits a response's header, in bytes.
	maxHeader = 64 << 10
	// DefaultTimeout limits a request with its response.
	DefaultTimeout = 15 * time.Second

	dialTimeout = 10 * time.Second
)

// Options configure a client. With the zero value it reaches only public addresses.
type Options struct {
	// Near are configured URLs on whose behalf the client fetches: of a server, or an
	// issuer. Other URLs may have addresses of the same kind as one of them.
	Near []string
	// AllowHosts are names of hosts that may have any address.
	AllowHosts []string
	// TLS is for connections to Server only: the URL of a server that has its own
	// authorities or needs a client certificate.
	TLS    *tls.Config
	Server string
	// Proxy is like that of [http.Transport]. Nil means the environment's.
	Proxy func(*http.Request) (*url.URL, error)
	// Timeout limits a request with its response. Zero means DefaultTimeout.
	Timeout time.Duration

	lookup func(ctx context.Context, host string) ([]netip.Addr, error) // nil: the system's
}

// A Client fetches allowed URLs; see the package comment. It is safe for concurrent use.
type Client struct {
	guard *guard
	http  *http.Client
}

// New returns a Client. It ignores invalid URLs in Near.
func New(o Options) *Client {
	g := newGuard(&o)
	if o.Proxy == nil {
		o.Proxy = http.ProxyFromEnvironment
	}
	t := &guardedTransport{guard: g, proxy: o.Proxy, others: newTransports(g, o.Proxy, nil)}
	if u, err := url.Parse(o.Server); err == nil && o.TLS != nil && u.Host != "" {
		t.host, t.own = strings.ToLower(u.Host), newTransports(g, o.Proxy, o.TLS.Clone())
	}
	return &Client{guard: g, http: &http.Client{
		Transport:     t,
		CheckRedirect: refuseRedirect,
		Timeout:       cmp.Or(o.Timeout, DefaultTimeout),
	}}
}

// HTTP returns the client as an http.Client, for libraries. Reading more than [MaxBody]
// bytes of a response's body is an error.
func (c *Client) HTTP() *http.Client { return c.http }

// Check returns an error if the text of a URL shows that it must not be fetched.
func (c *Client) Check(ctx context.Context, text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return errNoURL
	}
	return c.guard.checkURL(ctx, u)
}

// JSON fetches a JSON object from a URL into v.
func (c *Client) JSON(ctx context.Context, from string, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return errNoURL
	}
	req.Header.Set("Accept", "application/json")
	return c.Do(req, v)
}

// Do sends a request and reads the JSON object in the response, which must have a 2xx
// status, into v.
func (c *Client) Do(req *http.Request, v any) error {
	resp, err := c.http.Do(req)
	if err != nil {
		return Cause(err)
	}
	defer func() { _ = resp.Body.Close() }() // the rest is not needed
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return Cause(err)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return &StatusError{Code: resp.StatusCode, Body: text}
	}
	if text = bytes.TrimSpace(text); len(text) == 0 || text[0] != '{' || json.Unmarshal(text, v) != nil {
		return errors.New("its answer is not the expected JSON object")
	}
	return nil
}

var errNoURL = errors.New("it is not a URL")

// transports are those to hosts with one TLS configuration.
type transports struct{ direct, proxied http.RoundTripper }

func newTransports(g *guard, proxy func(*http.Request) (*url.URL, error), c *tls.Config) transports {
	direct := newTransport(c)
	direct.DialContext = g.dial
	proxied := newTransport(c)
	proxied.Proxy = proxy
	proxied.OnProxyConnectResponse = transport.CheckProxy
	return transports{direct, proxied}
}

// newTransport returns a transport for few requests, which closes connections after use.
func newTransport(c *tls.Config) *http.Transport {
	return &http.Transport{
		TLSClientConfig:        c,
		TLSHandshakeTimeout:    dialTimeout,
		MaxResponseHeaderBytes: maxHeader,
		DisableKeepAlives:      true,
		DisableCompression:     true, // so that the limit applies to the bytes that are read
	}
}

// A guardedTransport is a transport that sends only requests that its guard allows.
type guardedTransport struct {
	guard  *guard
	proxy  func(*http.Request) (*url.URL, error)
	others transports
	own    transports // to host; see Options.TLS
	host   string     // with its port, in lower case; empty if there is none
}

// RoundTrip implements [http.RoundTripper].
func (t *guardedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	to, err := t.route(req)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // nothing reads it
		}
		return nil, err
	}
	resp, err := to.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = &bounded{body: resp.Body, left: MaxBody}
	return resp, nil
}

func (t *guardedTransport) route(req *http.Request) (http.RoundTripper, error) {
	if err := t.guard.checkURL(req.Context(), req.URL); err != nil {
		return nil, err
	}
	proxy, err := t.proxy(req)
	to := t.others
	if t.host != "" && strings.ToLower(req.URL.Host) == t.host {
		to = t.own
	}
	switch {
	case err != nil:
		return nil, err
	case proxy != nil:
		return to.proxied, nil
	}
	return to.direct, nil
}

// CloseIdleConnections is for [http.Client.CloseIdleConnections].
func (t *guardedTransport) CloseIdleConnections() {}

// ErrTooLarge says that a response is larger than MaxBody.
var ErrTooLarge = fmt.Errorf("the response is larger than %d bytes", MaxBody)

// A bounded is a body with a limit.
type bounded struct {
	body io.ReadCloser
	left int // bytes
}

func (b *bounded) Read(p []byte) (int, error) {
	if len(p) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.body.Read(p)
	if n > b.left {
		n, err = b.left, ErrTooLarge
	}
	b.left -= n
	return n, err
}

func (b *bounded) Close() error { return b.body.Close() }

// A StatusError says that a response has an unexpected status.
type StatusError struct {
	Code int
	Body []byte // at most MaxBody
}

func (e *StatusError) Error() string { return fmt.Sprintf("it answered HTTP %d", e.Code) }

// Cause returns the error of a request without its URL, which may contain a secret.
func Cause(err error) error {
	var refused *RefusedError
	if errors.As(err, &refused) {
		return refused
	}
	return transport.Cause(err)
}
