package transport

import (
	"context"
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

// How much is read and written at once. A buffer to write is held while a message is
// written; that of a server's side is small, since a long message goes out as it is.
const (
	readSize   = 4 << 10
	dialedSize = 64 << 10
	servedSize = 4 << 10
)

var dialedBuffers, servedBuffers sync.Pool

// A HandshakeError says why there is no WebSocket.
type HandshakeError struct {
	Status int    // of the HTTP response that is or was due
	Reason string // for people
	Said   string // how the body of the response began; empty if it is not told
}

func (e *HandshakeError) Error() string {
	if e.Said == "" {
		return e.Reason
	}
	return e.Reason + "; it said: " + e.Said
}

// Public returns what clients are told: not what the response says, which may be a page
// about the inside of whatever stands before the server.
func (e *HandshakeError) Public() string { return e.Reason }

// DialOptions say where a WebSocket is opened, and how it is treated. URL is required;
// the zero value of the rest is useful.
type DialOptions struct {
	WebSocketOptions
	URL    string      // ws:// or wss://
	Header http.Header // goes with the handshake, credentials among it
	// Dial opens the network connection; nil means net's. Where it is set, proxies of
	// the environment are not used.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// DialWebSocket opens a connection that offers the subprotocol mcp. A server that
// chooses none is taken to speak it all the same. ctx bounds the opening, not the
// connection. A server's answer that opens none is a [*HandshakeError].
//
// A message beyond the limit is skipped.
func DialWebSocket(ctx context.Context, o DialOptions) (*WebSocket, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	if u, err := url.Parse(o.URL); err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		return nil, errors.New("transport: DialWebSocket: URL is no absolute ws or wss URL")
	}
	ws, err := o.dial(ctx)
	if err != nil {
		return nil, err
	}
	if chosen := ws.Subprotocol(); chosen != "" && chosen != Subprotocol {
		_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(CloseProtocol, "the subprotocol was not offered"), time.Now().Add(closeTime))
		_ = ws.Close() // it was of no use
		return nil, &HandshakeError{Status: http.StatusSwitchingProtocols, Reason: fmt.Sprintf("the server chose the WebSocket subprotocol %q, which was not offered; want %q", chosen, Subprotocol)}
	}
	return newWebSocket(ws, o.WebSocketOptions, true), nil
}

// dial does the handshake. It ends with ctx, however ctx ends.
func (o *DialOptions) dial(ctx context.Context) (*websocket.Conn, error) {
	guard := &dialGuard{ctx: ctx, dial: o.Dial}
	d := websocket.Dialer{
		NetDialContext:  guard.open,
		Subprotocols:    []string{Subprotocol},
		ReadBufferSize:  readSize,
		WriteBufferSize: dialedSize,
		WriteBufferPool: &dialedBuffers,
	}
	if o.Dial == nil {
		guard.dial = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
		d.Proxy = guard.proxyOf
	}
	ws, resp, err := d.DialContext(ctx, o.URL, o.Header)
	free := guard.release()
	switch {
	case err == nil && free:
		return ws, nil
	case err == nil:
		_ = ws.Close() // it was cut off
		fallthrough
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case resp != nil:
		return nil, refusedHandshake(resp)
	}
	return nil, fmt.Errorf("opening a WebSocket: %w", guard.withProxy(err))
}

// A dialGuard ends a network connection with a context, until it is released: the
// handshake waits for its deadline alone.
type dialGuard struct {
	ctx  context.Context
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	stop func() bool // nil before there is a connection

	proxy string // host:port of the one that is used; empty for none
}

func (l *dialGuard) open(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := l.dial(ctx, network, addr)
	if err == nil {
		l.stop = context.AfterFunc(l.ctx, func() { _ = c.Close() })
	}
	return c, err
}

// proxyOf takes note of the proxy.
func (l *dialGuard) proxyOf(r *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(r)
	if u != nil {
		l.proxy = u.Host
	}
	return u, err
}

// withProxy names the proxy that was used: of the status that one answered with there is
// only the bare text.
func (l *dialGuard) withProxy(err error) error {
	if err = Cause(err); l.proxy == "" {
		return err
	}
	return &ProxyError{l.proxy, err}
}

// release reports whether the connection is free; else it was ended.
func (l *dialGuard) release() bool { return l.stop == nil || l.stop() }

// refusedHandshake says what a server answered to a handshake.
func refusedHandshake(resp *http.Response) error {
	reason := fmt.Sprintf("the server answered the WebSocket handshake with HTTP %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	if resp.StatusCode == http.StatusSwitchingProtocols {
		reason += ", but not as RFC 6455 wants it"
	}
	switch code := resp.StatusCode; {
	case code >= 300 && code <= 399: // its body repeats that URL, which may hold a key
		reason += "; redirects are not followed: configure the URL it leads to"
		return &HandshakeError{Status: code, Reason: reason}
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		reason += "; check the credentials in the server's headers"
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 200)) // as much as there is
	line := strings.Join(strings.Fields(strings.ToValidUTF8(string(text), "")), " ")
	return &HandshakeError{resp.StatusCode, reason, redact.Looks(line)}
}

// AcceptOptions say how a WebSocket of a client is treated.
type AcceptOptions struct {
	WebSocketOptions
	// CheckOrigin reports whether a request may come from the page it names. Nil means
	// that none may but those of the request's own host.
	CheckOrigin func(*http.Request) bool
}

// IsUpgrade reports whether a request asks for a WebSocket.
func IsUpgrade(r *http.Request) bool { return websocket.IsWebSocketUpgrade(r) }

// AcceptWebSocket takes a client's connection over from net/http, which forgets it: its
// end is the caller's business. A client that offers subprotocols and not mcp is
// refused, one that offers none is served.
//
// Where it returns a [*HandshakeError] the response is still to be written. After other
// errors the connection is gone.
//
// A message beyond the limit ends the connection; see [WebSocket.Read].
func AcceptWebSocket(w http.ResponseWriter, r *http.Request, o AcceptOptions) (*WebSocket, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	chosen := make(http.Header)
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

// subprotocols returns what a client offers, on however many lines.
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
