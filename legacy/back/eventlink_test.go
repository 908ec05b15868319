package back

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func TestU03HTTPSSEBack(t *testing.T) {
	for _, tt := range []struct {
		name     string
		endpoint func(base, session string) string
	}{
		{"path", func(_, s string) string { return "/message?session_id=" + s }},
		{"relative to the stream", func(_, s string) string { return "message?session_id=" + s }},
		{"absolute, of the same origin", func(base, s string) string { return base + "/message?session_id=" + s }},
		{"absolute, in capitals", func(base, s string) string {
			return strings.Replace(base, "http:", "HTTP:", 1) + "/message?session_id=" + s
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := legacytest.NewEventServer(t)
			p.Endpoint = func(session string) string { return tt.endpoint(p.URL, session) }
			p.On["tools/list"] = legacytest.Result(`{"tools":[]}`)
			b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL + "/sse", Headers: http.Header{"Authorization": {"Bearer s3cret"}}}, Transport: TransportSSE})
			got, err := body(b.Serve(t.Context(), ask("tools/list", `{}`), &backtest.Caller{}))
			if err != nil || got != `{"tools":[]}` {
				t.Fatalf("Serve = %s, %v", got, err)
			}
			if order := p.Order(); order != "GET initialize notifications/initialized tools/list" {
				t.Errorf("the server was sent %s", order)
			}
			for _, s := range p.Seen() {
				if s.Header.Get("Authorization") != "Bearer s3cret" || s.Header.Get("Mcp-Protocol-Version")+s.Header.Get("Mcp-Session-Id") != "" {
					t.Errorf("%s %s has the headers %v, want the configured ones and none of Streamable HTTP", s.Verb, s.Method, s.Header)
				}
			}
		})
	}
}

// HTTP+SSE is tried when Streamable HTTP was refused with one of three statuses, and
// what was found is remembered.
func TestU03FallsBackToHTTPSSE(t *testing.T) {
	const invalid = `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"no"}}`
	for _, tt := range []struct {
		name   string
		status int
		body   string
		typ    Transport
		falls  bool
	}{
		{"405", 405, "", "", true},
		{"404 with a page", 404, "<html>Cannot POST /sse</html>", "", true},
		{"400 in words", 400, "sessionid must be provided", "", true},
		{"400 with an error of no request", 400, strings.Replace(invalid, `"id":1`, `"id":null`, 1), "", true},
		{"404 with an error of the request", 404, invalid, "", true},
		{"500", 500, "", "", false},
		{"401", 401, "", "", false},
		{"403", 403, "", "", false},
		{"429", 429, "", "", false},
		{"200 with an error", 200, invalid, "", false},
		{"405, but it is to be Streamable HTTP", 405, "", TransportHTTP, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := legacytest.NewEventServer(t)
			p.Refuse = func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && strings.HasPrefix(tt.body, "{") {
					w.Header().Set("Content-Type", "application/json")
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			}
			p.On["tools/list"] = legacytest.Result(`{"tools":[]}`)
			b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL + "/sse"}, Transport: tt.typ})
			_, err := b.Serve(t.Context(), ask("tools/list", `{}`), &backtest.Caller{})
			if !tt.falls {
				if err == nil || len(p.Requests("GET")) != 0 {
					t.Errorf("Serve = %v after %s, want an error and no GET", err, p.Order())
				}
				return
			}
			if err != nil {
				t.Fatalf("Serve = %v after %s", err, p.Order())
			}
			p.LastStream().Cut()
			bridgetest.Eventually(t, "another session", func() bool {
				_, err := b.Serve(t.Context(), ask("tools/list", `{}`), &backtest.Caller{})
				return err == nil && len(p.Requests("GET")) == 2
			})
			if order := p.Order(); !strings.HasPrefix(order, "initialize GET initialize notifications/initialized tools/list") || len(p.Requests("initialize")) != 3 {
				t.Errorf("the server was sent %s, want Streamable HTTP tried once", order)
			}
		})
	}
}

// A server that is neither says what both attempts came to; one that was replaced is
// found to be of Streamable HTTP.
func TestU03NeitherTransport(t *testing.T) {
	p := legacytest.NewEventServer(t)
	p.Refuse = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL + "/nothing"}})
	_, err := b.Serve(t.Context(), ask("tools/list", `{}`), &backtest.Caller{})
	for _, part := range []string{`server "scripted"`, "initialize: HTTP 404", "HTTP+SSE failed, too: opening its event stream: HTTP 404"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("Serve = %v, want %q in it", err, part)
		}
	}
}

func TestU03ReplacedByANewerServer(t *testing.T) {
	old, newer := legacytest.NewEventServer(t), legacytest.NewHTTPServer(t)
	newer.On["tools/list"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		legacytest.AnswerJSON(w, m.ID, `{"tools":["new"]}`)
	}
	var mu sync.Mutex
	var now http.Handler = old
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		h := now
		mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	old.On["tools/list"] = legacytest.Result(`{"tools":["old"]}`)
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL + "/sse"}})
	if got, err := body(b.Serve(t.Context(), ask("tools/list", `{}`), &backtest.Caller{})); err != nil || !strings.Contains(got, "old") {
		t.Fatalf("Serve = %s, %v", got, err)
	}
	mu.Lock()
	now = newer
	mu.Unlock()
	old.LastStream().Cut()
	bridgetest.Eventually(t, "served by the newer", func() bool {
		got, err := body(b.Serve(t.Context(), ask("tools/list", `{}`), &backtest.Caller{}))
		return err == nil && strings.Contains(got, "new")
	})
}

// What the server asks while a POST waits for the answer to it is asked and answered.
func TestHTTPSSEPostsThatWait(t *testing.T) {
	p := legacytest.NewEventServer(t)
	answered := make(chan string, 1)
	p.On["tools/call"] = func(s *legacytest.EventStream, m wire.Message) string {
		token := wire.Get(wire.Get(m.Params, "_meta"), "progressToken")
		s.Write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, token))
		s.Write(`{"jsonrpc":"2.0","id":"q","method":"ping"}`)
		<-answered
		return string(wire.AppendResult(nil, m.ID, []byte(`{"content":[]}`), nil))
	}
	p.Post = func(_ http.ResponseWriter, m wire.Message) bool {
		if m.Kind() == wire.Response {
			answered <- string(m.Result)
		}
		return false
	}
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL + "/sse"}, Transport: TransportSSE})
	c := &backtest.Caller{}
	req := ask("tools/call", `{"name":"x","_meta":{"progressToken":7}}`)
	req.ProgressToken = []byte("7")
	if got, err := body(b.Serve(t.Context(), req, c)); err != nil || got != `{"content":[]}` {
		t.Fatalf("Serve = %s, %v", got, err)
	}
	if heard := c.Heard(); len(heard) != 1 || !strings.Contains(heard[0], `"progressToken":7`) {
		t.Errorf("the client heard %q, want its progress", heard)
	}
}

// What happens to a call whose POST is refused, and to its session.
func TestM2L03HTTPSSELostSessions(t *testing.T) {
	for _, tt := range []struct {
		name     string
		answer   func(w http.ResponseWriter, s *legacytest.EventStream)
		repeated bool
		want     string // in the error; empty for a result
	}{
		{"404, to a ping as well", func(w http.ResponseWriter, _ *legacytest.EventStream) { w.WriteHeader(404) }, true, ""},
		{"404", func(w http.ResponseWriter, _ *legacytest.EventStream) { w.WriteHeader(404) }, false, "HTTP 404"},
		{"400", func(w http.ResponseWriter, _ *legacytest.EventStream) { w.WriteHeader(400) }, false, "HTTP 400"},
		{"500", func(w http.ResponseWriter, _ *legacytest.EventStream) { w.WriteHeader(500) }, false, "may have taken effect"},
		{"connection cut", func(http.ResponseWriter, *legacytest.EventStream) { panic(http.ErrAbortHandler) }, false, "may have taken effect"},
		{"stream cut", func(w http.ResponseWriter, s *legacytest.EventStream) { w.WriteHeader(202); s.Cut() }, false, "its event stream ended; the request may have taken effect"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := legacytest.NewEventServer(t)
			p.On["tools/call"] = legacytest.Result(`{"content":[]}`)
			var calls atomic.Int32
			p.Post = func(w http.ResponseWriter, m wire.Message) bool {
				switch {
				case m.Method == "tools/call":
					calls.Add(1)
				case m.Method != "ping" || !tt.repeated:
					return false
				}
				if calls.Load() != 1 {
					return false
				}
				tt.answer(w, p.LastStream())
				return true
			}
			p.On["ping"] = legacytest.Result(`{}`)
			b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL + "/sse"}, Transport: TransportSSE})
			_, err := b.Serve(t.Context(), ask("tools/call", `{"name":"x"}`), &backtest.Caller{})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), `server "scripted"`)) {
				t.Errorf("Serve = %v, want %q", err, tt.want)
			}
			if sent := len(p.Requests("tools/call")); sent != map[bool]int{true: 2, false: 1}[tt.repeated] {
				t.Errorf("the call was sent %d times", sent)
			}
			if _, err := b.Serve(t.Context(), ask("tools/call", `{"name":"x"}`), &backtest.Caller{}); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

// The stream's loss is the session's: another is opened, with what was subscribed.
func TestM2L37HTTPSSEStreamLost(t *testing.T) {
	p := legacytest.NewEventServer(t)
	p.On["resources/subscribe"] = legacytest.Result(`{}`)
	log := &watchtest.Journal{}
	heard := watchtest.NewAudience(log)
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL + "/sse", Changes: heard}, Transport: TransportSSE})
	topics := watchtest.URITopics(testScope, "file:///a")
	heard.Want(1, topics...)
	honored, release, err := b.Watch(t.Context(), mcp.Profile{Scope: testScope}, topics)
	if err != nil || len(honored) != 1 {
		t.Fatalf("Watch = %v, %v", honored, err)
	}
	defer release()
	update := `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a"}}`
	cues := func(n int) func() bool {
		var got []string
		return func() bool { got = append(got, log.Take()...); return len(got) >= n }
	}
	p.LastStream().Write(update)
	bridgetest.Eventually(t, "the update", cues(1))
	p.LastStream().Cut()
	bridgetest.Eventually(t, "subscribed again", func() bool { return len(p.Requests("resources/subscribe")) == 2 })
	bridgetest.Eventually(t, "the cue for the gap", cues(1))
	p.LastStream().Write(update)
	bridgetest.Eventually(t, "an update after the gap", cues(1))
}
