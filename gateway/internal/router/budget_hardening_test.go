package router

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
	modernback "github.com/mcpbridge/mcpbridge/modern/back"
)

// evictions counts why results leave the cache.
type evictions struct {
	tally
	why numbers
}

func (e *evictions) CacheEvicted(_, why string) { e.why.add(why) }
func (e *evictions) evicted(why string) int     { return e.why.of(why) }

// What is kept of results is memory, too: it is counted, and goes before a request is
// refused for want of some.
func TestKeptResultsGoBeforeAnythingIsRefused(t *testing.T) {
	t.Parallel()
	const each = 300 << 10
	seen := &evictions{}
	r := newKeepingRig(t, func(o *Options) { o.Metrics = seen; o.bound("memory", 4<<20); o.bound("cache", 64<<20) })
	r.peer.answer("resources/read", `{"contents":[{"uri":"u:x","text":"`+strings.Repeat("x", each)+`"}]}`)
	r.peer.answer("tools/call", `{"content":[]}`)
	for n := range 4 {
		r.read(t, fmt.Sprintf("u:%d", n))
	}
	before := r.g.Snapshot().Cache
	if used := r.g.budget.Used(); before.Entries != 4 || used < 4*each {
		t.Fatalf("%d results are kept and %d bytes counted, want 4 results and their bytes", before.Entries, used)
	}
	body := modernBody("1", "tools/call", `"name":"a","arguments":{"text":"`+strings.Repeat("x", 900<<10)+`"}`)
	if got := r.send(t, http.MethodPost, body, modernHeaders("tools/call", "a")); got.status != http.StatusOK || got.code() != 0 {
		t.Errorf("call = %d %s, want its answer", got.status, got.body)
	}
	if n, after := seen.evicted("memory"), r.g.Snapshot().Cache; n == 0 || after.Entries != 4-n || seen.limits("memory") != 0 {
		t.Errorf("%d results were given up, %d are left, %d refusals; want some, the rest and none", n, after.Entries, seen.limits("memory"))
	}
}

// A largePeer is a server of either era whose answers to tools/call come to an end only
// when the test says so.
type largePeer struct {
	*rig
	limits *tally
	finish chan struct{}
}

const largeAnswer = 1 << 20

// newLargePeer returns a peer behind a gateway of 16 MiB that spells its answers as said.
func newLargePeer(t *testing.T, modernEra, stream bool) *largePeer {
	p := &largePeer{limits: &tally{}, finish: make(chan struct{})}
	up := newScriptedServer(t, func(w http.ResponseWriter, r *http.Request, id, method string) {
		begin, end := "", ""
		if stream {
			w.Header().Set("Content-Type", "text/event-stream")
			begin, end = "data: ", "\n\n"
		}
		switch method {
		case "tools/call":
			fmt.Fprintf(w, `%s{"jsonrpc":"2.0","id":%s,"result":{"content":[],"resultType":"complete","x":"%s`, begin, id, strings.Repeat("x", largeAnswer))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-p.finish:
			case <-r.Context().Done():
			}
			fmt.Fprintf(w, `"}}%s`, end)
		case "server/discover":
			fmt.Fprintf(w, `%s{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"m","version":"1"},"ttlMs":0,"cacheScope":"private"}}%s`, begin, id, end)
		default:
			fmt.Fprintf(w, `%s{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"p","version":"1"}}}%s`, begin, id, end)
		}
	})
	p.rig = newRig(t, func(o *Options) {
		o.Metrics = p.limits
		o.bound("memory", 16<<20)
		o.Servers[0].Open = func(c mcp.Changes) (mcp.Back, error) {
			info := []byte(`{"name":"mcpbridge","version":"test"}`)
			if modernEra {
				return modernback.New(modernback.Options{Options: upstream.Options{Name: "peer", URL: up, Changes: c, Logger: o.Logger, ClientInfo: info}})
			}
			return legacyback.New(legacyback.Options{Options: upstream.Options{Name: "peer", URL: up, Changes: c, Logger: o.Logger, ClientInfo: info, Settings: settings.Server{Lanes: settings.Lanes{HTTP: 100}}}})
		}
	})
	return p
}

// Answers that many calls get at once are held while they are read, each up to
// upstream_message, which no other limit bounds (CWE-770). What can't be had fails with an
// error; it does not wait.
func TestAnswersInFlightAreBounded(t *testing.T) {
	t.Parallel()
	for _, modernEra := range []bool{false, true} {
		for _, stream := range []bool{false, true} {
			for _, client := range []string{"modern", "legacy"} {
				t.Run(fmt.Sprintf("modern server %v, stream %v, %s client", modernEra, stream, client), func(t *testing.T) {
					testAnswersInFlight(t, newLargePeer(t, modernEra, stream), client == "legacy")
				})
			}
		}
	}
}

func testAnswersInFlight(t *testing.T, p *largePeer, legacyClient bool) {
	const calls = 16
	header, body := modernHeaders("tools/call", "a"), modernBody("%d", "tools/call", `"name":"a"`)
	if legacyClient {
		got := p.send(t, http.MethodPost, hello, legacyHeaders(""))
		header, body = legacyHeaders(got.header.Get("Mcp-Session-Id")), `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"a"}}`
	}
	answers := make(chan answer, calls)
	for n := range calls {
		go func() {
			answers <- p.send(t, http.MethodPost, strings.Replace(body, "%d", fmt.Sprint(n+1), 1), header)
		}()
	}
	failed := 0
	for deadline := time.After(patience); failed < calls/2; {
		select {
		case got := <-answers:
			failed++
			// A legacy client gets a stream if its answer takes long, which has no header for it.
			hinted := got.header.Get("Retry-After") != "" || got.header.Get("Content-Type") == "text/event-stream"
			if !strings.Contains(got.body, `"code":-32603`) || !strings.Contains(got.body, "raise limits.memory") || !strings.Contains(got.body, "may have taken effect") || !hinted {
				t.Errorf("a call that was given up got %v %s, want an error that names limits.memory, and Retry-After", got.header, got.body)
			}
		case <-deadline:
			t.Fatalf("%d of %d calls failed while answers of %d MiB were in flight with 16 MiB for all, want at least half", failed, calls, calls*largeAnswer>>20)
		}
	}
	close(p.finish)
	served := 0
	for range calls - failed {
		if got := <-answers; strings.Contains(got.body, `"content":[]`) {
			served++
		}
	}
	if served == 0 { // each had a part of the memory, and none enough
		if got := p.send(t, http.MethodPost, strings.Replace(body, "%d", fmt.Sprint(calls+1), 1), header); strings.Contains(got.body, `"content":[]`) {
			served++
		}
	}
	if served == 0 || p.limits.limits("memory") < failed || !strings.Contains(p.logs.String(), memoryUsedUp) {
		t.Errorf("%d calls were served, %d hits counted; want some, one for each that failed, and a log line", served, p.limits.limits("memory"))
	}
	if legacyClient { // a session keeps what its client may come back for
		p.send(t, http.MethodDelete, "", header)
	}
	p.eventually(t, "all given back", func() bool { return p.g.budget.Used() <= 256<<10 })
}

// A connection is memory before anything was asked on it.
func TestConnectionsTakeMemory(t *testing.T) {
	t.Parallel()
	const most = 100 // in 1 MiB
	upgrade := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Sec-Websocket-Protocol": {"mcp"}}
	for _, tt := range []struct {
		name, path string
		header     http.Header
		open       int
	}{
		{"WebSocket", "/mcp/peer", upgrade, http.StatusSwitchingProtocols},
		{"HTTP+SSE", "/sse/peer", http.Header{"Accept": {"text/event-stream"}}, http.StatusOK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			limits := &tally{}
			r := newRig(t, func(o *Options) { o.Metrics = limits; o.bound("memory", 1<<20) })
			var last *http.Response
			for n := 0; n == 0 || n <= most && last.StatusCode == tt.open; n++ {
				last = r.openAt(t, http.MethodGet, tt.path, "", tt.header)
				defer last.Body.Close()
			}
			if last.StatusCode != http.StatusServiceUnavailable || last.Header.Get("Retry-After") == "" || limits.limits("memory") != 1 {
				t.Errorf("one of more than %d = %d %v, want 503 with Retry-After, and one hit", most, last.StatusCode, last.Header)
			}
		})
	}
}

// What was refused for a limit says when to try again, where HTTP has a header for it.
func TestRefusalsSayWhenToTryAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.bound("client_sessions", 1); o.bound("websockets_each", 1); o.bound("parked", 1) })
	upgrade := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Sec-Websocket-Protocol": {"mcp"}}
	defer r.open(t, http.MethodGet, "", upgrade).Body.Close()
	full := r.open(t, http.MethodGet, "", upgrade)
	defer full.Body.Close()
	if full.StatusCode != http.StatusServiceUnavailable || full.Header.Get("Retry-After") == "" {
		t.Errorf("a WebSocket too many = %d %v, want 503 with Retry-After", full.StatusCode, full.Header)
	}
	session := r.send(t, http.MethodPost, hello, legacyHeaders("")).header.Get("Mcp-Session-Id")
	get := legacyHeaders(session)
	get.Set("Accept", "text/event-stream")
	defer r.open(t, http.MethodGet, "", get).Body.Close()
	if got := r.send(t, http.MethodPost, hello, legacyHeaders("")); got.code() != -32603 || got.header.Get("Retry-After") == "" {
		t.Errorf("a session too many = %d %v %s, want -32603 with Retry-After", got.status, got.header, got.body)
	}
}

// newScriptedServer returns the URL of a server that answers requests by answer.
func newScriptedServer(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, id, method string)) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, err := wire.Parse(body, wire.Options{})
		if err != nil || m.Kind() != wire.Request {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		answer(w, r, m.ID.String(), m.Method)
	}))
	t.Cleanup(s.Close)
	return s.URL
}
