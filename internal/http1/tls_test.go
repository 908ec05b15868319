package http1

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A secureServer is an https server that counts its connections.
type secureServer struct {
	*httptest.Server
	conns atomic.Int32
}

func newSecureServer(t *testing.T, http2 bool, serve http.HandlerFunc) *secureServer {
	t.Helper()
	s := &secureServer{Server: httptest.NewUnstartedServer(serve)}
	s.EnableHTTP2 = http2
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnState = func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew {
			s.conns.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// transport returns a Transport that trusts the server, and offers HTTP/2 as mcpbridge
// does.
func (s *secureServer) transport(t *testing.T) *Transport {
	t.Helper()
	conf := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	conf.NextProtos = nil
	return newTransport(t, func(other *http.Transport) {
		other.TLSClientConfig, other.ForceAttemptHTTP2, other.TLSHandshakeTimeout = conf, true, 30*time.Second
	})
}

func TestTLSServerOfHTTP1IsAskedDirectly(t *testing.T) {
	s := newSecureServer(t, false, echo)
	tr := s.transport(t)
	for i, text := range []string{"a", "b", long(3 * atOnce), "c"} {
		resp, got, err := fetch(tr, newRequest(t.Context(), "POST", s.URL, []byte(text)))
		if err != nil || got != text {
			t.Fatalf("request %d: %d bytes, %v; want %d", i, len(got), err, len(text))
		}
		if resp.TLS == nil || resp.ProtoMajor != 1 {
			t.Errorf("request %d: TLS %v, %s", i, resp.TLS != nil, resp.Proto)
		}
	}
	if n := s.conns.Load(); n != 2 {
		t.Errorf("%d connections, want 2: net/http's first and one that all others use", n)
	}
	if n := len(tr.pool.idle); n != 1 {
		t.Errorf("%d servers have idle connections here, want 1", n)
	}
}

func TestTLSServerOfHTTP2StaysWithNetHTTP(t *testing.T) {
	s := newSecureServer(t, true, echo)
	tr := s.transport(t)
	for range 3 {
		resp, got, err := fetch(tr, newRequest(t.Context(), "POST", s.URL, []byte("a")))
		if err != nil || got != "a" || resp.ProtoMajor != 2 {
			t.Fatalf("%q by %s, %v; want HTTP/2.0", got, resp.Proto, err)
		}
	}
	if len(tr.pool.idle) != 0 {
		t.Error("a connection was opened here to a server of HTTP/2")
	}
}

// A server that is upgraded to HTTP/2 gets HTTP/2 again.
func TestTLSServerThatChangesItsMindIsLearnedAnew(t *testing.T) {
	tr := newTransport(t, nil)
	tr.learn("a:443", &http.Response{ProtoMajor: 1, TLS: &tls.ConnectionState{NegotiatedProtocol: "http/1.1"}})
	if !tr.speaksHTTP1("a:443") || tr.speaksHTTP1("b:443") {
		t.Fatal("HTTP/1.1 was not learned, or of another server")
	}
	tr.learn("a:443", &http.Response{ProtoMajor: 2, TLS: &tls.ConnectionState{NegotiatedProtocol: "h2"}})
	if tr.speaksHTTP1("a:443") {
		t.Error("a server that chose HTTP/2 is asked by HTTP/1.1")
	}
}

func TestTLSCertificateIsVerified(t *testing.T) {
	s := newSecureServer(t, false, echo)
	tr := s.transport(t)
	mustFetch(t, tr, newRequest(t.Context(), "POST", s.URL, []byte("a")))
	tr.CloseIdleConnections()
	tr.other.TLSClientConfig = &tls.Config{} // trusts the system's roots
	_, _, err := fetch(tr, newRequest(t.Context(), "POST", s.URL, []byte("a")))
	var unknown *tls.CertificateVerificationError
	var dial *net.OpError
	if !errors.As(err, &unknown) || !errors.As(err, &dial) || dial.Op != "dial" {
		t.Errorf("%v, want a dial that fails because of the certificate", err)
	}
}

func TestTLSHandshakeIsBounded(t *testing.T) {
	silent := newScripted(t, func(_ int, _ net.Conn, br *bufio.Reader) { awaitEnd(br) })
	tr := newTransport(t, func(other *http.Transport) { other.TLSHandshakeTimeout = 100 * time.Millisecond })
	addr := strings.TrimSuffix(strings.TrimPrefix(silent.url, "http://"), "/mcp")
	tr.http1.Store(addr, true)
	begin := time.Now()
	_, _, err := fetch(tr, newRequest(t.Context(), "POST", "https://"+addr, []byte("a")))
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 10*time.Second {
		t.Errorf("%v after %v, want the handshake's time-out", err, time.Since(begin))
	}
}

// A gathering connection buffers writes once hold is set.
type gathering struct {
	net.Conn
	hold bool
	held []byte
}

func (c *gathering) Write(p []byte) (int, error) {
	if !c.hold {
		return c.Conn.Write(p)
	}
	c.held = append(c.held, p...)
	return len(p), nil
}

// Idle connections that the server has closed are not reused, whether the socket shows
// that or data that arrived with the last response: a tools/call can't be sent again.
func TestTLSClosedConnectionIsNotUsedAgain(t *testing.T) {
	s := newSecureServer(t, false, echo)
	for _, tt := range []struct {
		name string
		bye  string // what the server sends with its response, and before its end
	}{
		{"closed with the response", ""},
		{"says something unasked with the response", "HTTP/1.1 408 Request Timeout\r\n\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := newScripted(t, func(_ int, c net.Conn, _ *bufio.Reader) {
				once := &gathering{Conn: c}
				tc := tls.Server(once, &tls.Config{Certificates: s.TLS.Certificates})
				if _, err := readRequest(bufio.NewReader(tc)); err != nil {
					return
				}
				once.hold = true
				_, _ = tc.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na" + tt.bye))
				_ = tc.CloseWrite() // the socket stays open, but for writes
				_ = c.SetWriteDeadline(time.Time{})
				_, _ = c.Write(once.held)
				awaitEnd(bufio.NewReader(c))
			})
			addr := strings.TrimSuffix(strings.TrimPrefix(server.url, "http://"), "/mcp")
			tr := s.transport(t)
			tr.other.TLSClientConfig.InsecureSkipVerify = true
			tr.http1.Store(addr, true)
			for i := range 3 {
				if _, got, err := fetch(tr, newRequest(t.Context(), "POST", "https://"+addr, []byte("x"))); err != nil || got != "a" {
					t.Fatalf("request %d = %q, %v", i, got, err)
				}
			}
			if n := server.count(); n != 3 {
				t.Errorf("%d connections for three requests, want 3", n)
			}
		})
	}
}

// A plain connection is never used for a request that wants TLS.
func TestTLSRequestNeverLeavesInTheClear(t *testing.T) {
	heard := make(chan string, 4)
	server := newScripted(t, func(_ int, c net.Conn, br *bufio.Reader) {
		for {
			line, err := br.ReadString('\n')
			if err != nil {
				return
			}
			heard <- line
			if _, err := http.ReadRequest(bufio.NewReader(io.MultiReader(strings.NewReader(line), br))); err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	addr := strings.TrimSuffix(strings.TrimPrefix(server.url, "http://"), "/mcp")
	tr := newTransport(t, func(other *http.Transport) { other.TLSHandshakeTimeout = 500 * time.Millisecond })
	mustFetch(t, tr, newRequest(t.Context(), "GET", "http://"+addr+"/plain", nil))
	tr.http1.Store(addr, true)
	if _, _, err := fetch(tr, newRequest(t.Context(), "GET", "https://"+addr+"/secret", nil)); err == nil {
		t.Error("a server without TLS answered a request that wants it")
	}
	server.stop()
	close(heard)
	for line := range heard {
		if strings.Contains(line, "secret") {
			t.Errorf("left in the clear: %s", line)
		}
	}
}
