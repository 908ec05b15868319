package router

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A listen stream is the same over everything that carries HTTP, whether or not its
// connection can be taken over from net/http.
func TestM2L30ListenOverEveryHTTP(t *testing.T) {
	t.Parallel()
	const origin = "http://localhost:6274"
	for name, start := range map[string]func(*httptest.Server){
		"HTTP/1.1":     (*httptest.Server).Start,
		"HTTP/1.1 TLS": (*httptest.Server).StartTLS,
		"HTTP/2.0":     func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() },
	} {
		t.Run("M2L-30 "+name, func(t *testing.T) {
			r := newRig(t, nil)
			s := httptest.NewUnstartedServer(r.g)
			start(s)
			defer s.Close()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/mcp/peer",
				strings.NewReader(modernBody("7", "subscriptions/listen", `"notifications":{"resourceSubscriptions":["note://todo"]}`)))
			if err != nil {
				t.Fatal(err)
			}
			req.Header = modernHeaders("subscriptions/listen", "")
			req.Header.Set("Origin", origin)
			res, err := s.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			if !strings.HasPrefix(name, res.Proto) || res.Header.Get("Access-Control-Allow-Origin") != origin || res.Header.Get("Content-Type") != "text/event-stream" {
				t.Errorf("%s %v", res.Proto, res.Header)
			}
			f := &frames{t, res, bufio.NewReader(res.Body)}
			if got := f.next(); got != ackedTodo {
				t.Errorf("first frame = %s", got)
			}
			r.peer.push(updated("note://todo"))
			if got := f.next(); !strings.Contains(got, `"uri":"note://todo","_meta":{"io.modelcontextprotocol/subscriptionId":7}`) {
				t.Errorf("frame = %s", got)
			}
			r.g.EndStreams()
			if got := f.next(); !strings.Contains(got, `"id":7,"result":`) {
				t.Errorf("last frame = %s", got)
			}
			if rest, err := io.ReadAll(f.r); string(rest) != "\n" || err != nil {
				t.Errorf("after the result: %q, %v", rest, err)
			}
		})
	}
}

// Streams have limits of their own: they are no requests in flight, whatever carries them.
// Over HTTP/2 a few addresses would fill limits.requests with them, for all (CWE-770).
func TestHardeningStreamsAreNoRequestsInFlight(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*httptest.Server){
		"HTTP/1.1": (*httptest.Server).Start,
		"HTTP/2.0": func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() },
	} {
		t.Run(name, func(t *testing.T) {
			const most = 10 // a request is in flight for a moment after its response was read
			r := newRig(t, func(o *Options) { o.bound("requests", most); o.bound("requests_each", most) })
			r.peer.answer("tools/list", `{"tools":[]}`)
			s := httptest.NewUnstartedServer(r.g)
			start(s)
			t.Cleanup(s.Close) // after the bodies are closed
			send := func(method, body string, header http.Header) *http.Response {
				req, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/mcp/peer", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header = header
				res, err := s.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = res.Body.Close() })
				if !strings.HasPrefix(name, res.Proto) {
					t.Fatalf("it is %s", res.Proto)
				}
				return res
			}
			opened := func(what string, res *http.Response) {
				if res.StatusCode != http.StatusOK {
					text, _ := io.ReadAll(res.Body)
					t.Fatalf("%s = %d %s, want a stream", what, res.StatusCode, text)
				}
				if _, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
			}
			for i := range 2 * most {
				r.eventually(t, "few requests are in flight", func() bool { return r.g.inflight.Len() < most/2 })
				opened("a listen stream", send(http.MethodPost, modernBody(fmt.Sprint(i), "subscriptions/listen", `"notifications":{"toolsListChanged":true}`), modernHeaders("subscriptions/listen", "")))
				entered := send(http.MethodPost, hello, legacyHeaders(""))
				_, _ = io.ReadAll(entered.Body)
				get := legacyHeaders(entered.Header.Get("Mcp-Session-Id"))
				get.Set("Accept", "text/event-stream")
				opened("a GET stream", send(http.MethodGet, "", get))
			}
			if res := send(http.MethodPost, modernBody("2", "tools/list", ""), modernHeaders("tools/list", "")); res.StatusCode != http.StatusOK {
				t.Errorf("a request beside %d streams = %d, want its answer", 4*most, res.StatusCode)
			}
			r.eventually(t, "no request is in flight", func() bool { return r.g.inflight.Len() == 0 })
		})
	}
}

// Who ends the gateway waits for listen streams as for WebSockets: their results
// are read before it goes on.
func TestEndConnectionsWaitsForListenStreams(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	f := r.listen(t, "7", `{"toolsListChanged":true}`)
	f.next()
	if err := r.g.EndConnections(t.Context()); err != nil {
		t.Errorf("EndConnections() = %v", err)
	}
	if s := r.g.Snapshot(); s.Streams != 0 {
		t.Errorf("%d streams are open after EndConnections", s.Streams)
	}
	if got := f.next(); !strings.Contains(got, `"id":7,"result":`) {
		t.Errorf("last frame = %s", got)
	}
}

// A client that stays although its stream has ended holds nobody up beyond the bound.
func TestEndConnectionsCutsOffListenStreams(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	res := r.open(t, http.MethodPost, modernBody("7", "subscriptions/listen", `"notifications":{}`), modernHeaders("subscriptions/listen", ""))
	defer func() { _ = res.Body.Close() }()
	r.eventually(t, "the stream is open", func() bool { return r.g.Snapshot().Streams == 1 })
	late := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(late)
	if err := r.g.EndConnections(ctx); !errors.Is(err, late) {
		t.Errorf("EndConnections() = %v, want %v", err, late)
	}
	if s := r.g.Snapshot(); s.Streams != 0 {
		t.Errorf("%d streams are open after EndConnections", s.Streams)
	}
}
