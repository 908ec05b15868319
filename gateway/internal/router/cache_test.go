package router

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/cache"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// everyList are the methods whose results a keeping rig keeps.
var everyList = []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"}

// newKeepingRig returns a rig whose server's results are public for a minute, and
// kept.
func newKeepingRig(t *testing.T, change func(*Options)) *rig {
	p := newPeer(t)
	r := newRig(t, func(o *Options) {
		o.Servers = []ServerOptions{{Name: "peer", Settings: settings.Server{Cache: public(everyList...)}, Open: func(c mcp.Changes) (mcp.Back, error) {
			return legacyback.New(legacyback.Options{Options: upstream.Options{Name: "peer", URL: p.URL, Changes: c, Logger: o.Logger, Settings: settings.Server{Linger: time.Millisecond, Cache: public(append([]string{"server/discover"}, everyList...)...)},
				ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}})
		}}}
		if change != nil {
			change(o)
		}
	})
	r.peer = p
	return r
}

// list returns the names of the tools that tools/list has.
func (r *rig) list(t *testing.T, body string) string {
	t.Helper()
	if body == "" {
		body = modernBody("1", "tools/list", "")
	}
	var l struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(r.send(t, http.MethodPost, body, modernHeaders("tools/list", "")).result(t), &l); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(l.Tools)
}

// read returns the text of a resource.
func (r *rig) read(t *testing.T, uri string) string {
	t.Helper()
	var l struct{ Contents []struct{ Text string } }
	if err := json.Unmarshal(r.call(t, "1", "resources/read", uri, `"uri":"`+uri+`"`).result(t), &l); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(l.Contents)
}

func toolNamed(name string) string {
	return `{"tools":[{"name":"` + name + `","inputSchema":{"type":"object"}}]}`
}

const toolsChanged = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`

func TestM2L08KeptResultsAreServed(t *testing.T) {
	t.Parallel()
	r := newKeepingRig(t, nil)
	r.peer.answer("tools/list", toolNamed("a"))
	first := string(r.call(t, "1", "tools/list", "", "").result(t))
	if want := `{"tools":[{"name":"a","inputSchema":{"type":"object"}}],"resultType":"complete","ttlMs":60000,"cacheScope":"public",` + serverInfo + `}`; first != want {
		t.Fatalf("result = %s\nwant     %s", first, want)
	}
	time.Sleep(2 * time.Millisecond) // of real sockets: time has to pass
	again := r.call(t, `"other"`, "tools/list", "", "")
	var hint struct{ TTLMs int64 }
	if err := json.Unmarshal(again.result(t), &hint); err != nil || hint.TTLMs >= 60_000 || hint.TTLMs < 30_000 {
		t.Errorf("ttlMs = %d, want what is left of 60000", hint.TTLMs)
	}
	if got := strings.Replace(string(again.result(t)), fmt.Sprintf(`"ttlMs":%d`, hint.TTLMs), `"ttlMs":60000`, 1); got != first {
		t.Errorf("kept result = %s\nwant          %s", got, first)
	}
	if !strings.HasPrefix(again.body, `{"jsonrpc":"2.0","id":"other",`) {
		t.Errorf("answer = %s, want the id of its own request", again.body)
	}
	if n := len(r.peer.sent("tools/list")); n != 1 {
		t.Errorf("the server was asked %d times, want once", n)
	}
}

func TestM2L08DiscoveryHasItsHint(t *testing.T) {
	t.Parallel()
	r := newKeepingRig(t, nil)
	if got := r.call(t, "1", "server/discover", "", "").result(t); !strings.Contains(string(got), `"ttlMs":60000,"cacheScope":"public"`) {
		t.Errorf("result = %s, want the configured hint", got)
	}
}

// The skills extension wants hints as lists do, though its results are not kept.
func TestM2L08SkillsHaveHints(t *testing.T) {
	t.Parallel()
	r := newKeepingRig(t, nil)
	for _, method := range []string{"skills/list", "skills/get"} {
		r.peer.answer(method, `{"x":1}`)
		for range 2 {
			got := string(r.call(t, "1", method, "", "").result(t))
			if want := `{"x":1,"resultType":"complete","ttlMs":0,"cacheScope":"private",` + serverInfo + `}`; got != want {
				t.Errorf("%s: result = %s\nwant     %s", method, got, want)
			}
		}
		if n := len(r.peer.sent(method)); n != 2 {
			t.Errorf("%s arrived %d times, want 2", method, n)
		}
	}
}

// What differs in nothing but its envelope is the same question; all else is
// another.
func TestM2L08KeyOfKeptResults(t *testing.T) {
	t.Parallel()
	r := newKeepingRig(t, nil)
	with := func(meta string) string { return strings.Replace(envelope, `"_meta":{`, `"_meta":{`+meta+`,`, 1) }
	body := func(meta, rest string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + with(meta) + rest + `}}`
	}
	const traced = `"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"`
	for _, tt := range []struct {
		name, body string
		asked      int // how often the server was, in all
	}{
		{"the first", body(traced, ""), 1},
		{"another trace", body(`"traceparent":"00-00000000000000000000000000000001-b7ad6b7169203331-01"`, ""), 1},
		{"wants progress and logs", body(`"progressToken":7,"io.modelcontextprotocol/logLevel":"debug"`, ""), 1},
		{"another client's name", strings.Replace(body(traced, ""), `"name":"c"`, `"name":"d"`, 1), 1},
		{"a page", body(traced, `,"cursor":"2"`), 2},
		{"the same page, spelt otherwise", body(traced, `, "cursor" : "2" `), 2},
		{"another page", body(traced, `,"cursor":"3"`), 3},
		{"an extension's key", body(`"com.example/tenant":"x"`, ""), 4},
		{"its other value", body(`"com.example/tenant":"y"`, ""), 5},
		{"a retry", body(traced, `,"inputResponses":{}`), 6},
		{"a retry, again", body(traced, `,"inputResponses":{}`), 7},
		{"a retry by its state", body(traced, `,"requestState":"x"`), 8},
		{"a retry by its state, again", body(traced, `,"requestState":"x"`), 9},
		{"the first, still", body(traced, ""), 9},
	} {
		t.Run("M2L-08 "+tt.name, func(t *testing.T) {
			r.list(t, tt.body)
			if n := len(r.peer.sent("tools/list")); n != tt.asked {
				t.Errorf("the server was asked %d times, want %d", n, tt.asked)
			}
		})
	}
}

func TestM2L08NotKept(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		hint settings.CacheHint
		keep []string
	}{
		{"private", settings.CacheHint{TTL: time.Minute}, everyList},
		{"no ttl", settings.CacheHint{Scope: spec.ScopePublic}, everyList},
		{"method not named", public("tools/list")["tools/list"], []string{"prompts/list"}},
	} {
		t.Run("M2L-08 "+tt.name, func(t *testing.T) {
			p := newPeer(t)
			r := newRig(t, func(o *Options) {
				o.Servers = []ServerOptions{{Name: "peer", Settings: settings.Server{Cache: public(tt.keep...)}, Open: func(c mcp.Changes) (mcp.Back, error) {
					return legacyback.New(legacyback.Options{Options: upstream.Options{Name: "peer", URL: p.URL, Changes: c, ClientInfo: []byte(`{}`),
						Settings: settings.Server{Cache: map[string]settings.CacheHint{"tools/list": tt.hint}}}})
				}}}
			})
			r.list(t, "")
			r.list(t, "")
			if n := len(p.sent("tools/list")); n != 2 || r.g.Snapshot().Cache != (cache.Snapshot{}) {
				t.Errorf("the server was asked %d times, want 2; cache %+v", n, r.g.Snapshot().Cache)
			}
		})
	}
	t.Run("M2L-08 errors", func(t *testing.T) {
		r := newKeepingRig(t, nil)
		r.peer.answer("tools/list", `{"code":-32603,"message":"no"}`)
		for range 2 {
			if got := r.call(t, "1", "tools/list", "", ""); got.code() != -32603 {
				t.Errorf("answer = %s, want the error", got.body)
			}
		}
		if n := len(r.peer.sent("tools/list")); n != 2 {
			t.Errorf("the server was asked %d times, want 2", n)
		}
	})
	t.Run("M2L-08 methods that can't be", func(t *testing.T) {
		for _, method := range []string{"tools/call", "server/discover"} {
			if _, err := New(Options{Servers: []ServerOptions{{Name: "peer", Settings: settings.Server{Cache: public(method)}}}}); err == nil {
				t.Errorf("New that keeps results of %s = nil, want an error", method)
			}
		}
	})
}

// A read that asked its client depends on the answers.
func TestM2L08NotKeptAfterAQuestion(t *testing.T) {
	t.Parallel()
	r := newKeepingRig(t, nil)
	r.peer.handle["resources/read"] = func(c *peerCall) string {
		return `{"contents":[{"uri":"u:x","text":` + fmt.Sprintf("%q", c.ask("elicitation/create", `{"message":"who?","requestedSchema":{"type":"object","properties":{}}}`)) + `}]}`
	}
	read := func(more string) answer {
		return r.send(t, http.MethodPost, askableBody("1", "resources/read", allQuestions, `"uri":"u:x"`+more), modernHeaders("resources/read", "u:x"))
	}
	for _, who := range []string{"ada", "bob"} {
		q := read("").round(t)
		responses := `{"` + q.key("elicitation/create") + `":{"action":"accept","content":{"who":"` + who + `"}}}`
		if got := read(`,"requestState":"` + q.State + `","inputResponses":` + responses); !strings.Contains(got.body, who) {
			t.Errorf("%s read %s", who, got.body)
		}
	}
	if got := r.g.Snapshot().Cache; got != (cache.Snapshot{}) {
		t.Errorf("cache = %+v, want it empty", got)
	}
}

// Clients of different capabilities may be shown different things; and no two
// principals share a scope, whatever the configuration calls public.
func TestM2L08ProfilesDoNotShare(t *testing.T) {
	t.Parallel()
	r := newKeepingRig(t, nil)
	r.peer.answer("tools/list", toolNamed("a"))
	r.list(t, "")
	r.peer.answer("tools/list", toolNamed("b"))
	if got := r.list(t, askableBody("1", "tools/list", allQuestions, "")); got != "[{b}]" {
		t.Errorf("client of other capabilities got %s, want what the server shows it", got)
	}
	if got := r.list(t, ""); got != "[{a}]" {
		t.Errorf("first client got %s, want its kept result", got)
	}
}

// All who ask for a list at once cost the server one request.
func TestM2L08ConcurrentMissesShareOneRequest(t *testing.T) {
	t.Parallel()
	r := newKeepingRig(t, nil)
	hold := make(chan struct{})
	r.peer.hold["tools/list"] = hold
	r.peer.answer("tools/list", toolNamed("a"))
	var wg sync.WaitGroup
	const n = 50
	for range n {
		wg.Go(func() {
			if got := r.list(t, ""); got != "[{a}]" {
				t.Errorf("list = %s", got)
			}
		})
	}
	r.eventually(t, "one is on its way", func() bool { return len(r.peer.sent("tools/list")) == 1 })
	close(hold)
	wg.Wait()
	if got := len(r.peer.sent("tools/list")); got != 1 {
		t.Errorf("the server was asked %d times by %d clients, want once", got, n)
	}
}
