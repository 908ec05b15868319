package http1

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// echo answers with the request's body.
func echo(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	_, _ = w.Write(text)
}

func newServer(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// The requests are equal to those of net/http, line by line.
func TestRequestText(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(url string) *http.Request
	}{
		{"POST", func(u string) *http.Request {
			r := newRequest(t.Context(), "POST", u+"/a%20b?c=d", []byte("{}"))
			r.Header = http.Header{"Accept": {"application/json, text/event-stream"}, "X-B": {"1", " 2 "}, "X-Empty": {""}, "Content-Length": {"9"}, "Host": {"x"}}
			return r
		}},
		{"POST without a body", func(u string) *http.Request { return newRequest(t.Context(), "POST", u, nil) }},
		{"GET", func(u string) *http.Request { return newRequest(t.Context(), "GET", u+"?", nil) }},
		{"DELETE", func(u string) *http.Request { return newRequest(t.Context(), "DELETE", u, nil) }},
		{"own User-Agent and Host", func(u string) *http.Request {
			r := newRequest(t.Context(), "GET", u, nil)
			r.Host = "example.com"
			r.Header.Set("User-Agent", "mcpbridge/1")
			return r
		}},
		{"no User-Agent", func(u string) *http.Request {
			r := newRequest(t.Context(), "GET", u, nil)
			r.Header["User-Agent"] = []string{""}
			return r
		}},
		{"the last", func(u string) *http.Request {
			r := newRequest(t.Context(), "GET", u, nil)
			r.Close = true
			return r
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			texts := make(chan string, 2)
			s := newScripted(t, func(_ int, c net.Conn, br *bufio.Reader) {
				var text bytes.Buffer
				r, err := http.ReadRequest(bufio.NewReader(io.TeeReader(br, &text)))
				if err != nil || r.Header.Get("Connection") == "" && r.Close {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				texts <- text.String()
				_, _ = io.WriteString(c, ok+"Content-Length: 0\r\nConnection: close\r\n\r\n")
			})
			theirs := &http.Transport{DisableCompression: true}
			mustFetch(t, theirs, tt.make(s.url))
			want := lines(<-texts)
			mustFetch(t, newTransport(t, nil), tt.make(s.url))
			if got := lines(<-texts); !slices.Equal(got, want) {
				t.Errorf("request = %q\nnet/http: %q", got, want)
			}
		})
	}
}

// lines sorts the lines of a header, because their order does not matter.
func lines(text string) []string {
	head, body, _ := strings.Cut(text, "\r\n\r\n")
	all := strings.Split(head, "\r\n")
	slices.Sort(all[1:])
	return append(all, "", body)
}

// A line break in a part of the request would begin another line, or another request
// (CWE-113).
func TestRequestCannotBeSplit(t *testing.T) {
	s := newServer(t, echo)
	for _, change := range []func(*http.Request){
		func(r *http.Request) { r.Header["X-A"] = []string{"b\r\nX-C: d"} },
		func(r *http.Request) { r.Header["X-A"] = []string{"b\nX-C: d"} },
		func(r *http.Request) { r.Header["X-A\r\nX-C"] = []string{"d"} },
		func(r *http.Request) { r.Header["X A"] = []string{"d"} },
		func(r *http.Request) { r.Host = "a\r\nX-C: d" },
		func(r *http.Request) { r.URL.Opaque = "/a HTTP/1.1\r\nX-C: d" },
		func(r *http.Request) { r.Method = "GET / HTTP/1.1\r\nX-C: d\r\n\r\nGET" },
	} {
		req := newRequest(t.Context(), "POST", s.URL, []byte("secret"))
		change(req)
		_, _, err := fetch(newTransport(t, nil), req)
		if err == nil {
			t.Errorf("RoundTrip(%q %q %v) = nil, want an error", req.Method, req.Host, req.Header)
		}
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	var conns sync.Map
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		conns.Store(r.RemoteAddr, true)
		echo(w, r)
	})
	tr := newTransport(t, nil)
	for _, n := range []int{0, 1, 5000, 100_000, 3} {
		want := strings.Repeat("x", n)
		if got := mustFetch(t, tr, newRequest(t.Context(), "POST", s.URL, []byte(want))); got != want {
			t.Errorf("echo of %d bytes = %d bytes", n, len(got))
		}
	}
	n := 0
	conns.Range(func(_, _ any) bool { n++; return true })
	if n != 1 {
		t.Errorf("five requests took %d connections, want 1", n)
	}
}

// A connection whose body was not read to its end is closed: the rest would become the
// response to another request.
func TestUnreadBodyEndsConnection(t *testing.T) {
	s := newScripted(t, answers(ok+"Content-Length: 10\r\n\r\n0123456789"))
	tr := newTransport(t, nil)
	resp, err := tr.RoundTrip(newRequest(t.Context(), "GET", s.url, nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 9)); err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if n, err := resp.Body.Read(make([]byte, 1)); n > 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("Read after Close = %d, %v", n, err)
	}
	if got := mustFetch(t, tr, newRequest(t.Context(), "GET", s.url, nil)); got != "0123456789" || s.count() != 2 {
		t.Errorf("next answer = %q on connection %d, want the whole on the second", got, s.count())
	}
}

// A server may close an idle connection at any time. A request that must not run twice is
// sent on another one, and only once.
func TestIdleConnectionThatEnded(t *testing.T) {
	for _, size := range []int{2, 100_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			var mu sync.Mutex
			served := 0
			ended := make(chan struct{}, 2)
			s := newScripted(t, func(_ int, c net.Conn, br *bufio.Reader) {
				_, _ = readRequest(br)
				mu.Lock()
				served++
				mu.Unlock()
				_, _ = io.WriteString(c, ok+"Content-Length: 2\r\n\r\nhi")
				_ = c.Close()
				ended <- struct{}{}
			})
			tr := newTransport(t, nil)
			for range 2 {
				mustFetch(t, tr, newRequest(t.Context(), "POST", s.url, bytes.Repeat([]byte("x"), size)))
				<-ended
			}
			if served != 2 || s.count() != 2 {
				t.Errorf("server saw %d requests on %d connections, want 2 on 2", served, s.count())
			}
		})
	}
}

// If a connection ends during a request, it is unknown what the server did with it: only
// a safe request is sent again.
//
// Spec: RFC 9110, 9.2.2.
func TestConnectionEndsUnderRequest(t *testing.T) {
	for _, tt := range []struct {
		method string
		text   string // sent before the end
		want   int    // requests that the server sees
	}{
		{"POST", "", 2},
		{"DELETE", "", 2},
		{"GET", "", 3},
		{"GET", "HTTP/1.1 2", 2},
		{"GET", ok + "Content-Length: 9\r\n\r\n", 2},
	} {
		t.Run(tt.method+" "+tt.text, func(t *testing.T) {
			var mu sync.Mutex
			seen := 0
			s := newScripted(t, func(n int, c net.Conn, br *bufio.Reader) {
				for {
					if _, err := readRequest(br); err != nil {
						return
					}
					mu.Lock()
					seen++
					second := seen == 2
					mu.Unlock()
					if second {
						_, _ = io.WriteString(c, tt.text)
						return
					}
					_, _ = io.WriteString(c, ok+"Content-Length: 2\r\n\r\nhi")
				}
			})
			tr := newTransport(t, nil)
			mustFetch(t, tr, newRequest(t.Context(), "POST", s.url, []byte("{}")))
			_, _, err := fetch(tr, newRequest(t.Context(), tt.method, s.url, nil))
			tr.CloseIdleConnections()
			s.stop()
			if seen != tt.want || (err == nil) != (tt.want == 3) {
				t.Errorf("server saw %d requests, error %v; want %d", seen, err, tt.want)
			}
			if errors.Is(err, ErrNotSent) {
				t.Errorf("error = %v, which says that nothing was sent", err)
			}
		})
	}
}

func TestDialErrorIsTheDialers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	_, _, err = fetch(newTransport(t, nil), newRequest(t.Context(), "POST", "http://"+l.Addr().String(), []byte("{}")))
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" {
		t.Errorf("RoundTrip = %v, want a dial error", err)
	}
}

var errStop = errors.New("stop")

// The end of the context ends the exchange at any point, with its cause.
func TestCancel(t *testing.T) {
	for _, tt := range []struct {
		name, text string // what the server sends before it stops
		size       int    // of the request
	}{
		{"before the response", "", 2},
		{"under a large request", "", 50 << 20},
		{"in the header", "HTTP/1.1 200 OK\r\nX-", 2},
		{"in the body", ok + "Content-Length: 9\r\n\r\nabc", 2},
		{"in a stream", ok + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", 2},
		{"in a body without length", ok + "\r\nabc", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			said, ended := make(chan struct{}), make(chan struct{})
			s := newScripted(t, func(_ int, c net.Conn, br *bufio.Reader) {
				_, _ = http.ReadRequest(br)
				_, _ = io.WriteString(c, tt.text)
				close(said)
				awaitEnd(br)
				close(ended)
			})
			ctx, cancel := context.WithCancelCause(t.Context())
			var all sync.WaitGroup
			defer all.Wait()
			all.Go(func() { <-said; cancel(errStop) })
			_, text, err := fetch(newTransport(t, nil), newRequest(ctx, "POST", s.url, make([]byte, tt.size)))
			if !errors.Is(err, errStop) || errors.Is(err, ErrNotSent) {
				t.Errorf("RoundTrip = %q, %v; want the cause of its context alone", text, err)
			}
			<-ended
		})
	}
}

func TestCancelBeforeAndWhileDialling(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	tr := newTransport(t, func(o *http.Transport) {
		o.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			cancel(errStop)
			<-ctx.Done()
			return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
		}
	})
	for range 2 { // while dialling, then before
		if _, _, err := fetch(tr, newRequest(ctx, "POST", "http://127.0.0.1", []byte("{}"))); !errors.Is(err, errStop) || !errors.Is(err, ErrNotSent) {
			t.Errorf("RoundTrip = %v, want the cause of its context, and that nothing was sent", err)
		}
	}
}

// Close ends a Read that waits in another goroutine.
func TestCloseUnblocksRead(t *testing.T) {
	s := newScripted(t, func(_ int, c net.Conn, br *bufio.Reader) {
		_, _ = readRequest(br)
		_, _ = io.WriteString(c, ok+"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
		awaitEnd(br)
	})
	resp, err := newTransport(t, nil).RoundTrip(newRequest(t.Context(), "GET", s.url, nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	read := make(chan error)
	go func() { _, err := resp.Body.Read(make([]byte, 1)); read <- err }()
	_ = resp.Body.Close()
	if err := <-read; err == nil || err == io.EOF {
		t.Errorf("Read = %v, want an error", err)
	}
}

// An event arrives when it is sent, even if the stream stays open.
func TestStreamComesAsItIsSent(t *testing.T) {
	step := make(chan struct{})
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			<-step
		}
	})
	resp, err := newTransport(t, nil).RoundTrip(newRequest(t.Context(), "GET", s.URL, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	buf := make([]byte, 4096)
	for i := range 3 {
		n, err := resp.Body.Read(buf)
		if want := fmt.Sprintf("data: %d\n\n", i); string(buf[:n]) != want || err != nil {
			t.Errorf("event = %q, %v, want %q", buf[:n], err, want)
		}
		step <- struct{}{}
	}
	if _, err := resp.Body.Read(buf); err != io.EOF {
		t.Errorf("end of the stream = %v, want EOF", err)
	}
}

// A server may respond before it has read the request, and then not read it.
func TestEarlyAnswerToLargeRequest(t *testing.T) {
	for _, tt := range []struct {
		name  string
		reads bool
	}{{"which is read then", true}, {"which is never read", false}} {
		t.Run(tt.name, func(t *testing.T) {
			text := long(8 << 20) // more than any kernel keeps, either way
			got := make(chan struct{})
			s := newScripted(t, func(_ int, c net.Conn, br *bufio.Reader) {
				r, err := http.ReadRequest(br)
				if err == nil {
					_, _ = fmt.Fprintf(c, ok+"Content-Length: %d\r\n\r\n%s", len(text), text)
				}
				if err == nil && tt.reads {
					_, _ = io.Copy(io.Discard, r.Body)
				}
				<-got
			})
			defer close(got)
			tr := newTransport(t, nil)
			if got := mustFetch(t, tr, newRequest(t.Context(), "POST", s.url, []byte(text))); got != text {
				t.Errorf("answer of %d bytes, want %d", len(got), len(text))
			}
		})
	}
}

// A request whose body ends early is not completed.
func TestRequestBodyThatFails(t *testing.T) {
	for _, size := range []int{10, 100_000} {
		for _, failure := range []error{nil, errStop} {
			s := newServer(t, echo)
			req := newRequest(t.Context(), "POST", s.URL, []byte{})
			req.ContentLength = int64(size)
			body := &closer{Reader: io.MultiReader(strings.NewReader("abc"), &failing{failure})}
			req.Body = body
			if _, _, err := fetch(newTransport(t, nil), req); err == nil || failure != nil && !errors.Is(err, failure) {
				t.Errorf("RoundTrip with %d bytes of which 3 come = %v, want an error with %v", size, err, failure)
			}
			if !body.closed {
				t.Error("the body was not closed")
			}
		}
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}

type closer struct {
	io.Reader
	closed bool
}

func (c *closer) Close() error { c.closed = true; return nil }

func TestIdleTimeout(t *testing.T) {
	ended := make(chan struct{}, 2)
	s := newScripted(t, func(n int, c net.Conn, br *bufio.Reader) {
		answers(ok+"Content-Length: 2\r\n\r\nhi")(n, c, br)
		ended <- struct{}{}
	})
	tr := newTransport(t, func(o *http.Transport) { o.IdleConnTimeout = 20 * time.Millisecond })
	for range 2 { // the timer is set anew
		mustFetch(t, tr, newRequest(t.Context(), "GET", s.url, nil))
		<-ended
	}
}

func TestPool(t *testing.T) {
	now := time.Now()
	p := pool{most: 2, timeout: time.Minute}
	a, b := net.Pipe()
	defer b.Close()
	conns := []*conn{{addr: "x", nc: a, idle: now}, {addr: "x", nc: a, idle: now.Add(time.Second)}, {addr: "x", nc: a}}
	if !p.add(conns[0]) || !p.add(conns[1]) || p.add(conns[2]) {
		t.Error("a pool for two did not take two and refuse the third")
	}
	if old := p.takeOld(now.Add(time.Minute)); len(old) != 1 || old[0] != conns[0] {
		t.Errorf("after a minute %d are too old, want the first", len(old))
	}
	if got := p.pop("x"); got != conns[1] {
		t.Error("the one used last does not come first")
	}
	if got := p.pop("x"); got != nil {
		t.Error("an empty pool gave a connection")
	}
	p.closeAll()
}

func TestMaxIdle(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*http.Transport)
		want   int // idle connections after three requests at a time
	}{
		{"two", func(o *http.Transport) { o.MaxIdleConnsPerHost = 2 }, 2},
		{"default", func(o *http.Transport) { o.MaxIdleConnsPerHost = 0 }, 2},
		{"none", func(o *http.Transport) { o.DisableKeepAlives = true }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var here sync.WaitGroup
			here.Add(3)
			s := newServer(t, func(w http.ResponseWriter, r *http.Request) { here.Done(); here.Wait(); echo(w, r) })
			tr := newTransport(t, tt.change)
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() { _, _, _ = fetch(tr, newRequest(t.Context(), "POST", s.URL, []byte("{}"))) })
			}
			all.Wait()
			n := 0
			for _, list := range tr.pool.idle {
				n += len(list)
			}
			if n != tt.want {
				t.Errorf("%d idle connections, want %d", n, tt.want)
			}
		})
	}
}

// net/http sends requests that need TLS, a proxy, or another feature that Transport
// lacks.
func TestOthers(t *testing.T) {
	plain := newServer(t, echo)
	tls := httptest.NewTLSServer(http.HandlerFunc(echo))
	defer tls.Close()
	proxy := newServer(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "to %s", r.URL) })
	to, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	tr := newTransport(t, func(o *http.Transport) {
		o.TLSClientConfig = tls.Client().Transport.(*http.Transport).TLSClientConfig
		o.Proxy = func(r *http.Request) (*url.URL, error) {
			if r.URL.Hostname() == "example.com" {
				return to, nil
			}
			return nil, nil
		}
	})
	unknown := newRequest(t.Context(), "POST", plain.URL, []byte("hi"))
	unknown.ContentLength = -1
	for _, tt := range []struct {
		req  *http.Request
		want string
	}{
		{newRequest(t.Context(), "POST", tls.URL, []byte("hi")), "hi"},
		{newRequest(t.Context(), "GET", "http://example.com/a", nil), "to http://example.com/a"},
		{newRequest(t.Context(), "HEAD", plain.URL, nil), ""},
		{unknown, "hi"},
	} {
		if got := mustFetch(t, tr, tt.req); got != tt.want {
			t.Errorf("%s %s = %q, want %q", tt.req.Method, tt.req.URL, got, tt.want)
		}
	}
}

// Each request gets its own response, even if others are cancelled.
func TestNobodyGetsAnothersAnswer(t *testing.T) {
	s := newServer(t, echo)
	tr := newTransport(t, nil)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(g)))
			for i := range 60 {
				ctx, cancel := context.WithCancel(t.Context())
				want := strings.Repeat(fmt.Sprintf("%d/%d ", g, i), 1+rng.IntN(2000))
				if rng.IntN(3) == 0 {
					stop := time.AfterFunc(time.Duration(rng.IntN(300))*time.Microsecond, cancel)
					defer stop.Stop()
				}
				_, got, err := fetch(tr, newRequest(ctx, "POST", s.URL, []byte(want)))
				if err == nil && got != want || err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("answer to %.20q = %.20q, %v", want, got, err)
				}
				cancel()
			}
		})
	}
	all.Wait()
}
