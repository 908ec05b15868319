package http1

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// A scripted server hands each connection to serve, with its number from 1, and
// closes it after.
type scripted struct {
	url  string
	stop func()

	// mu guards the field below.
	mu    sync.Mutex
	conns int
}

func newScripted(t *testing.T, serve func(n int, c net.Conn, br *bufio.Reader)) *scripted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{url: "http://" + l.Addr().String() + "/mcp"}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns++
			n := s.conns
			s.mu.Unlock()
			all.Go(func() {
				defer c.Close()
				serve(n, c, bufio.NewReader(c))
			})
		}
	})
	s.stop = sync.OnceFunc(func() { _ = l.Close(); all.Wait() })
	t.Cleanup(s.stop)
	return s
}

func (s *scripted) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

// answers serves every request of a connection with the same text.
func answers(text string) func(int, net.Conn, *bufio.Reader) {
	return func(_ int, c net.Conn, br *bufio.Reader) {
		for {
			if _, err := readRequest(br); err != nil {
				return
			}
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
		}
	}
}

// readRequest reads a request and its body.
func readRequest(br *bufio.Reader) (*http.Request, error) {
	r, err := http.ReadRequest(br)
	if err == nil {
		_, err = io.Copy(io.Discard, r.Body)
	}
	return r, err
}

// awaitEnd waits until the peer has closed c.
func awaitEnd(br *bufio.Reader) { _, _ = io.Copy(io.Discard, br) }

// newTransport returns a Transport whose idle connections are closed at the end of the
// test, before the servers.
func newTransport(t *testing.T, change func(*http.Transport)) *Transport {
	t.Helper()
	other := &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, DisableCompression: true}
	if change != nil {
		change(other)
	}
	tr := NewTransport(other)
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

func newRequest(ctx context.Context, method, url string, body []byte) *http.Request {
	var rd io.Reader
	if body != nil {
		rd = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, rd)
	if err != nil {
		panic(err) // the test's own mistake
	}
	return req
}

// fetch makes one request and returns the status and the part of the body that arrived.
func fetch(rt http.RoundTripper, req *http.Request) (*http.Response, string, error) {
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}

// mustFetch is fetch, and fails the test on an error.
func mustFetch(t *testing.T, rt http.RoundTripper, req *http.Request) string {
	t.Helper()
	resp, text, err := fetch(rt, req)
	if err != nil {
		t.Fatalf("%s %s: %v", req.Method, req.URL, err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s = %s", req.Method, req.URL, resp.Status)
	}
	return text
}

func long(n int) string { return strings.Repeat("0123456789abcdef", n/16) }
