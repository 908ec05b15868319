package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
)

// Each error of connecting to a server has its own advice.
func TestAdvice(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for _, tt := range []struct{ name, url, want string }{
		{"a certificate of nobody's", secure.URL, "SSL_CERT_FILE"},
		{"no TLS", "https" + strings.TrimPrefix(plain.URL, "http"), "is it http://"},
		{"nobody", "http://127.0.0.1:1", "nothing listens there"},
		{"no such host", "http://no.such.host.invalid", "is the host's name right?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr := NewHTTP(patience, nil)
			tr.Proxy = nil
			tr.DialContext = resolveNothing(tr.DialContext)
			defer tr.CloseIdleConnections()
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, tt.url, nil)
			_, err := tr.RoundTrip(req)
			if got := Advice(err); !strings.Contains(got, tt.want) || !Unsent(err) {
				t.Errorf("Advice(%v) = %q, unsent %v, want %q and true", err, got, Unsent(err), tt.want)
			}
			ws := DialOptions{URL: "ws" + strings.TrimPrefix(tt.url, "http"), Dial: tr.DialContext}
			_, err = DialWebSocket(t.Context(), ws)
			if got := Advice(err); !strings.Contains(got, tt.want) {
				t.Errorf("over a WebSocket Advice(%v) = %q, want %q", err, got, tt.want)
			}
		})
	}
	if got := Advice(errors.New("something else")); got != "" {
		t.Errorf("Advice(something else) = %q, want none", got)
	}
}

// resolveNothing keeps tests off the network.
func resolveNothing(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if strings.Contains(addr, ".invalid:") {
			return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: addr, IsNotFound: true}}
		}
		return dial(ctx, network, addr)
	}
}

// The error names a proxy that refuses, and its response; nothing was sent.
func TestProxyThatRefuses(t *testing.T) {
	proxy := httptest.NewServer(http.NotFoundHandler())
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	tr := NewHTTP(patience, nil)
	tr.Proxy = http.ProxyURL(at)
	defer tr.CloseIdleConnections()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://docs.example.com/mcp", nil)
	_, err = tr.RoundTrip(req)
	want := "through proxy " + at.Host + ": it answered CONNECT with HTTP 404 Not Found"
	if err == nil || Cause(err).Error() != want || !Unsent(err) || !strings.Contains(Advice(err), "NO_PROXY") {
		t.Errorf("RoundTrip() = %v (advice %q, unsent %v), want %s", err, Advice(err), Unsent(err), want)
	}
}

// The same failure has the same text each time, although the local port differs.
func TestCauseIsSteady(t *testing.T) {
	at := func(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port} }
	err := &net.OpError{Op: "read", Net: "tcp", Source: at(40664), Addr: at(9115), Err: syscall.ECONNRESET}
	got := Cause(fmt.Errorf("asking: %w", err))
	if text := got.Error(); strings.Contains(text, "40664") || !strings.Contains(text, "127.0.0.1:9115") || !errors.Is(got, syscall.ECONNRESET) || err.Source == nil {
		t.Errorf("Cause(%v) = %v, want it without this side's port, and err as it was", err, got)
	}
}

// A missing slash is recognized among other redirects.
func TestWantsSlash(t *testing.T) {
	from, _ := url.Parse("http://127.0.0.1:8000/mcp?k=secret")
	for _, tt := range []struct {
		status   int
		location string
		want     bool
	}{
		{307, "/mcp/", true},
		{308, "http://127.0.0.1:8000/mcp/?k=secret", true},
		{301, "mcp/", true},
		{307, "http://elsewhere.example/mcp/", false},
		{307, "/mcp", false},
		{302, "/login", false},
		{304, "", false},
		{307, "http://[", false},
		{200, "/mcp/", false},
	} {
		resp := &http.Response{StatusCode: tt.status, Header: http.Header{"Location": {tt.location}}}
		if got := WantsSlash(from, resp); got != tt.want {
			t.Errorf("WantsSlash(%d, %q) = %v, want %v", tt.status, tt.location, got, tt.want)
		}
	}
}
