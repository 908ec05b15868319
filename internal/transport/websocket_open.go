package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// Sizes of the read and write buffers. A write buffer is used only during a write. That
// of the server side is small, because long messages are written without it.
const (
	readSize   = 4 << 10
	dialedSize = 64 << 10
	servedSize = 4 << 10
)

var dialedBuffers, servedBuffers sync.Pool

// A HandshakeError reports why the WebSocket handshake failed.
type HandshakeError struct {
	Status int    // of the HTTP response
	Reason string // for people
	Said   string // the beginning of the response's body; may be empty
}

func (e *HandshakeError) Error() string {
	if e.Said == "" {
		return e.Reason
	}
	return e.Reason + "; it said: " + e.Said
}

// Public returns the text for clients, without the response's body, which may be a page
// of a proxy with internal details.
func (e *HandshakeError) Public() string { return e.Reason }

// DialOptions configure DialWebSocket. URL is required; the zero values of the other
// fields are useful.
type DialOptions struct {
	WebSocketOptions
	URL    string      // ws:// or wss://
	Header http.Header // for the handshake, including credentials
	// TLS is for wss://; nil means the authorities that the system trusts.
	TLS *tls.Config
	// Dial opens the network connection; nil means that of package net. If it is set,
	// proxies of the environment are not used.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// DialWebSocket opens a connection and offers the subprotocol mcp. It accepts a server
// that chooses no subprotocol. ctx bounds the handshake, not the connection. If the
// server refuses the handshake, the error is a [*HandshakeError].
//
// The connection skips messages beyond the limit.
func DialWebSocket(ctx context.Context, o DialOptions) (*WebSocket, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	if u, err := url.Parse(o.URL); err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		return nil, errors.New("transport: DialWebSocket: URL is not an absolute ws or wss URL")
	}
	ws, err := o.dial(ctx)
	if err != nil {
		return nil, err
	}
	if chosen := ws.Subprotocol(); chosen != "" && chosen != Subprotocol {
		_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(CloseProtocol, "the subprotocol was not offered"), time.Now().Add(closeTime))
		_ = ws.Close() // the caller gets the error
		return nil, &HandshakeError{Status: http.StatusSwitchingProtocols, Reason: fmt.Sprintf("the server chose the WebSocket subprotocol %q, which was not offered; want %q", chosen, Subprotocol)}
	}
	return newWebSocket(ws, o.WebSocketOptions, true), nil
}

// dial performs the handshake. It returns when ctx ends.
func (o *DialOptions) dial(ctx context.Context) (*websocket.Conn, error) {
	guard := &dialGuard{ctx: ctx, dial: o.Dial}
	d := websocket.Dialer{
		NetDialContext:  guard.open,
		Subprotocols:    []string{Subprotocol},
		ReadBufferSize:  readSize,
		WriteBufferSize: dialedSize,
		WriteBufferPool: &dialedBuffers,
		TLSClientConfig: o.TLS.Clone(), // nil stays nil
	}
	if o.Dial == nil {
		// Not Dialer: a server that is busy reads later, and one that has vanished answers no pings.
		guard.dial = (&net.Dialer{KeepAliveConfig: KeepAlive}).DialContext
		d.Proxy = guard.proxyOf
	}
	ws, resp, err := d.DialContext(ctx, o.URL, o.Header)
	free := guard.release()
	switch {
	case err == nil && free:
		return ws, nil
	case err == nil:
		_ = ws.Close() // the context has closed the network connection
		fallthrough
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case resp != nil:
		return nil, refusedHandshake(resp)
	}
	return nil, fmt.Errorf("opening a WebSocket: %w", guard.withProxy(err))
}

// A dialGuard closes a network connection when a context ends, until it is released. The
// handshake itself only observes the deadline of the context.
type dialGuard struct {
	ctx  context.Context
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	stop func() bool // nil before there is a connection

	proxy string // host:port of the used proxy; empty if none
}

func (l *dialGuard) open(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := l.dial(ctx, network, addr)
	if err == nil {
		l.stop = context.AfterFunc(l.ctx, func() { _ = c.Close() })
	}
	return c, err
}

// proxyOf records the proxy.
func (l *dialGuard) proxyOf(r *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(r)
	if u != nil {
		l.proxy = u.Host
	}
	return u, err
}

// withProxy adds the proxy to an error, which has only the text of the proxy's status.
func (l *dialGuard) withProxy(err error) error {
	if err = Cause(err); l.proxy == "" {
		return err
	}
	return &ProxyError{l.proxy, err}
}

// release stops the guard. It reports false if the guard has closed the connection.
func (l *dialGuard) release() bool { return l.stop == nil || l.stop() }

// refusedHandshake returns the error for a server's response that refuses a handshake.
func refusedHandshake(resp *http.Response) error {
	reason := fmt.Sprintf("the server answered the WebSocket handshake with HTTP %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	if resp.StatusCode == http.StatusSwitchingProtocols {
		reason += ", but not as RFC 6455 requires"
	}
	switch code := resp.StatusCode; {
	case code >= 300 && code <= 399: // its body repeats that URL, which may hold a key
		reason += "; redirects are not followed: configure the URL it leads to"
		return &HandshakeError{Status: code, Reason: reason}
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		reason += "; check the credentials in the server's headers"
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 200)) // the part before an error, if any
	line := strings.Join(strings.Fields(strings.ToValidUTF8(string(text), "")), " ")
	return &HandshakeError{resp.StatusCode, reason, redact.Looks(line)}
}

// AcceptOptions configure AcceptWebSocket.
type AcceptOptions struct {
	WebSocketOptions
	// Header is sent with the response.
	Header http.Header
	// CheckOrigin reports whether to accept the Origin of a request. Nil means only
	// origins of the request's own host.
	CheckOrigin func(*http.Request) bool
}

// IsUpgrade reports whether a request is a WebSocket handshake.
func IsUpgrade(r *http.Request) bool { return websocket.IsWebSocketUpgrade(r) }

// AcceptWebSocket takes a client's connection over from net/http; the caller must close
// it. It refuses a client that offers other subprotocols, but not mcp. It accepts a
// client that offers none.
//
// If the error is a [*HandshakeError], the caller must write the response. After other
// errors the connection is closed.
//
// A message beyond the limit closes the connection; see [WebSocket.Read].
func AcceptWebSocket(w http.ResponseWriter, r *http.Request, o AcceptOptions) (*WebSocket, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	o.WriteTimeout = cmp.Or(o.WriteTimeout, DefaultWriteTimeout)
	chosen := o.Header.Clone()
	if chosen == nil {
		chosen = make(http.Header)
	}
	switch offered := subprotocols(r.Header); {
	case slices.Contains(offered, Subprotocol):
		chosen.Set("Sec-Websocket-Protocol", Subprotocol)
	case len(offered) > 0:
		return nil, &HandshakeError{Status: http.StatusBadRequest, Reason: fmt.Sprintf("the WebSocket subprotocols %q are not served; offer %q, or none", offered, Subprotocol)}
	}
	var refused error
	u := websocket.Upgrader{
		HandshakeTimeout: o.WriteTimeout,
		WriteBufferSize:  servedSize,
		WriteBufferPool:  &servedBuffers,
		CheckOrigin:      o.CheckOrigin,
		Error: func(_ http.ResponseWriter, _ *http.Request, status int, why error) {
			refused = &HandshakeError{Status: status, Reason: why.Error()}
		},
	}
	ws, err := u.Upgrade(w, r, chosen)
	switch {
	case refused != nil:
		return nil, refused
	case err != nil:
		return nil, fmt.Errorf("accepting a WebSocket: %w", err)
	}
	return newWebSocket(ws, o.WebSocketOptions, false), nil
}

// subprotocols returns the offered subprotocols of all header lines.
func subprotocols(h http.Header) []string {
	var out []string
	for _, line := range h.Values("Sec-Websocket-Protocol") {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name != "" {
				out = append(out, name)
			}
		}
	}
	return out
}
