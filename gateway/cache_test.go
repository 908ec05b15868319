package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/legacy"
)

// everyList are the methods whose results a keeping rig keeps.
var everyList = []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"}

// newKeepingRig returns a rig whose server's results are public for a minute, and
// kept.
func newKeepingRig(t *testing.T, change func(*Options)) *rig {
	p := newPeer(t)
	hints := make(map[string]exchange.CacheHint)
	for _, method := range everyList {
		hints[method] = exchange.CacheHint{TTL: 60_000, Public: true}
	}
	r := newRig(t, func(o *Options) {
		o.Servers = []ServerOptions{{Name: "peer", Keep: everyList, Open: func(c exchange.Changes) (Back, error) {
			return legacy.NewBack(legacy.Options{Name: "peer", URL: p.URL, Changes: c, Logger: o.Logger, Linger: time.Millisecond,
				ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`), Cache: hints})
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

// What differs in nothing but its envelope is the same question; all else is
// another.
func TestM2L08KeyOfKeptResults(t *testing.T) {
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
	for _, tt := range []struct {
		name string
		hint exchange.CacheHint
		keep []string
	}{
		{"private", exchange.CacheHint{TTL: 60_000}, everyList},
		{"no ttl", exchange.CacheHint{Public: true}, everyList},
		{"method not named", exchange.CacheHint{TTL: 60_000, Public: true}, []string{"prompts/list"}},
	} {
		t.Run("M2L-08 "+tt.name, func(t *testing.T) {
			p := newPeer(t)
			r := newRig(t, func(o *Options) {
				o.Servers = []ServerOptions{{Name: "peer", Keep: tt.keep, Open: func(c exchange.Changes) (Back, error) {
					return legacy.NewBack(legacy.Options{Name: "peer", URL: p.URL, Changes: c, ClientInfo: []byte(`{}`),
						Cache: map[string]exchange.CacheHint{"tools/list": tt.hint}})
				}}}
			})
			r.list(t, "")
			r.list(t, "")
			if n := len(p.sent("tools/list")); n != 2 || r.g.Snapshot().Cache != (CacheSnapshot{}) {
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
			if _, err := New(Options{Servers: []ServerOptions{{Name: "peer", Keep: []string{method}}}}); err == nil {
				t.Errorf("New with Keep %s = nil, want an error", method)
			}
		}
	})
}

// A read that asked its client depends on the answers.
func TestM2L08NotKeptAfterAQuestion(t *testing.T) {
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
	if got := r.g.Snapshot().Cache; got != (CacheSnapshot{}) {
		t.Errorf("cache = %+v, want it empty", got)
	}
}

// Clients of different capabilities may be shown different things; and no two
// principals share a scope, whatever the configuration calls public.
func TestM2L08ProfilesDoNotShare(t *testing.T) {
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

	for _, tt := range []struct {
		isolation Isolation
		shared    bool
	}{{IsolatePrincipal, false}, {IsolateRequest, false}, {IsolateNothing, true}} {
		p, err := newProfiler(ServerOptions{Name: "peer", Isolation: tt.isolation})
		if err != nil {
			t.Fatal(err)
		}
		var keys [2]cacheKey
		for i, who := range []exchange.Principal{"ada", "bob"} {
			req := &exchange.Request{Method: "resources/read", Params: []byte(`{"uri":"u:x"}`), Principal: who}
			if err := p.admit(req); err != nil {
				t.Fatal(err)
			}
			keys[i], _ = keyOf(req)
		}
		if got := keys[0] == keys[1]; got != tt.shared {
			t.Errorf("isolation %s: two principals share results: %v, want %v", tt.isolation, got, tt.shared)
		}
	}
}

func TestM2L08ChangesEvict(t *testing.T) {
	r := newKeepingRig(t, nil)
	f := r.listen(t, "7", `{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["file:///d"]}`)
	f.next()
	t.Run("M2L-08 before the change is told", func(t *testing.T) {
		for i := range 20 {
			name := fmt.Sprint("t", i)
			r.peer.answer("tools/list", toolNamed(name))
			if i > 0 {
				r.peer.push(toolsChanged)
				f.next()
			}
			if got := r.list(t, ""); got != "[{"+name+"}]" {
				t.Fatalf("after the change: %s, want %s", got, name)
			}
		}
	})
	for _, tt := range []struct {
		name, push string
		gone       []string // URIs whose reads go
	}{
		{"tools", toolsChanged, nil},
		{"an update", updated("file:///d"), []string{"file:///d", "file:///d/x", "file:///d/x?v=1", "file:///"}},
		{"an update told under an ancestor", updated("file:///d/x/y"), []string{"file:///d", "file:///d/x", "file:///d/x?v=1", "file:///"}},
		{"resources", `{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`,
			[]string{"file:///d", "file:///d/x", "file:///d/x?v=1", "file:///", "file:///dx", "file:///e"}},
	} {
		t.Run("M2L-08 "+tt.name, func(t *testing.T) {
			all := []string{"file:///d", "file:///d/x", "file:///d/x?v=1", "file:///", "file:///dx", "file:///e"}
			for _, uri := range all {
				r.read(t, uri)
			}
			r.peer.push(tt.push)
			f.next()
			before := len(r.peer.sent("resources/read"))
			var gone []string
			for _, uri := range all {
				if r.read(t, uri); len(r.peer.sent("resources/read")) > before {
					before++
					gone = append(gone, uri)
				}
			}
			if fmt.Sprint(gone) != fmt.Sprint(tt.gone) {
				t.Errorf("read anew: %q, want %q", gone, tt.gone)
			}
		})
	}
}

// An evictionHook is called when a result leaves the cache.
type evictionHook struct {
	noMetrics
	f func(why string)
}

func (h evictionHook) CacheEvicted(_, why string) { h.f(why) }

// Nothing stands in a mailbox before the results that the change concerns are
// gone.
func TestM2L08EvictedBeforeTheMailbox(t *testing.T) {
	mail := fanout.NewMailbox(fanout.MailboxOptions{})
	evicted := 0
	r := newKeepingRig(t, func(o *Options) {
		o.Metrics = evictionHook{f: func(string) {
			if evicted++; mail.Len() != 0 {
				t.Error("the change was told before its results were evicted")
			}
		}}
	})
	r.list(t, "")
	req := &exchange.Request{Principal: exchange.Anonymous, Capabilities: []byte("{}")}
	if err := r.g.servers["peer"].profiles.admit(req); err != nil {
		t.Fatal(err)
	}
	topic := fanout.Topic{Scope: req.Profile.Scope, Kind: fanout.ToolsListChanged}
	r.g.hub.index.Subscribe(topic, mail)
	defer r.g.hub.index.Prune(mail)
	r.g.hub.Publish(fanout.Event{Topic: topic})
	if evicted != 1 || mail.Len() != 1 {
		t.Errorf("%d results evicted, %d events told, want 1 and 1", evicted, mail.Len())
	}
}

// A result that was on its way when the change came may be older than it.
func TestM2L08OvertakenResultIsNotKept(t *testing.T) {
	r := newKeepingRig(t, nil)
	f := r.listen(t, "7", `{"toolsListChanged":true}`)
	f.next()
	release := r.peer.holdNext("tools/list")
	r.peer.answer("tools/list", toolNamed("old"))
	overtaken := make(chan string)
	go func() { overtaken <- r.list(t, "") }()
	r.eventually(t, "the first is on its way", func() bool { return len(r.peer.sent("tools/list")) == 1 })

	r.peer.holdNext("tools/list")() // no more
	r.peer.answer("tools/list", toolNamed("new"))
	r.peer.push(toolsChanged)
	f.next()
	begin := time.Now()
	if got := r.list(t, ""); got != "[{new}]" || time.Since(begin) >= joinFor {
		t.Errorf("after the change, before the first: %s after %v, want the new list at once", got, time.Since(begin))
	}
	release()
	if got := <-overtaken; got != "[{old}]" {
		t.Errorf("the first got %s, want what it was sent", got)
	}
	if got := r.list(t, ""); got != "[{new}]" {
		t.Errorf("after both: %s, want the new list", got)
	}
	if n := len(r.peer.sent("tools/list")); n != 2 {
		t.Errorf("the server was asked %d times, want the second result kept", n)
	}
}

// holdNext has requests of a method wait for release from now on.
func (p *peer) holdNext(method string) (release func()) {
	hold := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold[method] = hold
	return sync.OnceFunc(func() { close(hold) })
}

// All who ask for a list at once cost the server one request.
func TestM2L08ConcurrentMissesShareOneRequest(t *testing.T) {
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

// What becomes of ten who wait for a request of another, by what becomes of that.
func TestM2L08WaitersAfterTheirLeader(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(c *cache, l *load, leave context.CancelFunc)
		lead int // how many ask the server themselves
		wait time.Duration
	}{
		{"kept", func(c *cache, l *load, _ context.CancelFunc) { c.keep(l, publicTools()); c.leave(l, true) }, 0, 0},
		{"its client left", func(c *cache, l *load, _ context.CancelFunc) { c.leave(l, false) }, 1, 0},
		{"the server refused", func(c *cache, l *load, _ context.CancelFunc) { c.leave(l, true) }, 10, 0},
		{"overtaken by a change", func(c *cache, l *load, _ context.CancelFunc) {
			c.evict(fanout.Event{Topic: fanout.Topic{Scope: l.key.scope, Kind: fanout.ToolsListChanged}})
			c.keep(l, publicTools())
			c.leave(l, true)
		}, 1, 0},
		{"slow", func(c *cache, l *load, _ context.CancelFunc) { time.Sleep(joinFor); synctest.Wait(); c.leave(l, true) }, 10, joinFor},
		{"the waiters left", func(c *cache, l *load, leave context.CancelFunc) { leave(); synctest.Wait(); c.leave(l, true) }, 10, 0},
	} {
		t.Run("M2L-08 "+tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newTestCache(t)
				k := &keeper{cache: c, server: "peer"}
				key := cacheKey{scope: "peer/1", method: spec.MethodToolsList}
				_, first, _ := c.look("peer", key, false)
				ctx, leave := context.WithCancel(t.Context())
				begin := time.Now()
				found := make(chan *load, 10)
				for range 10 {
					go func() { _, l := k.find(ctx, key); found <- l }()
				}
				synctest.Wait()
				if len(found) != 0 {
					t.Fatalf("%d of 10 did not wait", len(found))
				}
				tt.end(c, first, leave)
				synctest.Wait()
				if took := time.Since(begin); took != tt.wait {
					t.Errorf("they waited %v, want %v", took, tt.wait)
				}
				lead := 0
				for n := 0; n < 10; n++ {
					if l := <-found; l != nil {
						lead++
						c.keep(l, publicTools()) // for those who wait on
						c.leave(l, true)
					}
				}
				if lead != tt.lead || len(c.leaders) != 0 {
					t.Errorf("%d of 10 asked the server, want %d; %d leaders left", lead, tt.lead, len(c.leaders))
				}
				leave()
			})
		})
	}
}

// A slowBack answers tools/list after a second, its first caller only once that
// has left.
type slowBack struct{ asked atomic.Int32 }

func (b *slowBack) Serve(ctx context.Context, _ *exchange.Request, _ exchange.Exchange) (*exchange.Result, error) {
	if b.asked.Add(1) == 1 {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	time.Sleep(time.Second)
	return publicTools(), nil
}

// A client that leaves takes nobody with it, and makes no crowd of those who
// waited for its result.
func TestM2L08LeaderLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(slowBack)
		k := &keeper{cache: newTestCache(t), server: "peer", methods: map[string]bool{"tools/list": true}, next: b, metrics: noMetrics{}}
		req := &exchange.Request{Method: "tools/list"}
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() { _, err := k.Serve(ctx, req, nil); left <- err }()
		synctest.Wait()
		for range 10 {
			go func() {
				if _, err := k.Serve(t.Context(), req, nil); err != nil {
					t.Errorf("one who waited got %v", err)
				}
			}()
		}
		synctest.Wait()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who left got %v", err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := b.asked.Load(); got != 2 {
			t.Errorf("the server was asked %d times, want twice", got)
		}
	})
}

func newTestCache(t *testing.T) *cache {
	c, err := newCache(Options{CacheEntries: 10, CacheBytes: 1 << 20, Metrics: noMetrics{}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// publicTools is a result that is public for 5 s.
func publicTools() *exchange.Result {
	res := exchange.NewResult([]byte(`{"tools":[]}`), nil)
	res.Cache = exchange.CacheHint{TTL: 5000, Public: true}
	return res
}

func TestM2L08CacheIsBounded(t *testing.T) {
	var mu sync.Mutex
	why := make(map[string]int)
	r := newKeepingRig(t, func(o *Options) {
		o.CacheEntries, o.CacheBytes = 20, 16<<10
		o.Metrics = evictionHook{f: func(w string) { mu.Lock(); defer mu.Unlock(); why[w]++ }}
	})
	read := func(i, size int) {
		t.Helper()
		r.peer.answer("resources/read", `{"contents":[{"uri":"u","text":"`+strings.Repeat("x", size)+`"}]}`)
		r.read(t, fmt.Sprint("u:", i))
		if got := r.g.Snapshot().Cache; got.Entries > 20 || got.Bytes > 16<<10 || got.Bytes < size+entryOverhead {
			t.Fatalf("after %d results of %d bytes: %+v", i+1, size, got)
		}
	}
	for i := range 50 {
		read(i, 10)
	}
	if got := r.g.Snapshot().Cache.Entries; got != 20 || why["full"] != 30 {
		t.Errorf("%d entries after 50 results, %d evicted, want 20 and 30", got, why["full"])
	}
	asked := len(r.peer.sent("resources/read"))
	r.read(t, "u:30") // the least recently used but for this
	read(50, 10)
	r.read(t, "u:30")
	if got := len(r.peer.sent("resources/read")); got != asked+1 {
		t.Errorf("the server was asked %d times, want %d: u:30 was in use", got, asked+1)
	}
	for i := range 50 {
		read(100+i, 1000)
	}
	if got := r.g.Snapshot().Cache.Entries; got > 16 {
		t.Errorf("%d entries of 1000 bytes, want at most 16", got)
	}
	before := r.g.Snapshot().Cache
	r.peer.answer("resources/read", `{"contents":[{"uri":"u","text":"`+strings.Repeat("x", 3000)+`"}]}`)
	r.read(t, "u:huge")
	if got := r.g.Snapshot().Cache; got != before {
		t.Errorf("after a result over an eighth of the cache: %+v, want it left out", got)
	}
	r.g.EndStreams()
	if got := r.g.Snapshot().Cache; got != (CacheSnapshot{}) || len(r.g.hub.cache.shelves) != 0 {
		t.Errorf("after the end: %+v with %d shelves, want nothing", got, len(r.g.hub.cache.shelves))
	}
	r.read(t, "u:30")
	if got := r.g.Snapshot().Cache; got != (CacheSnapshot{}) {
		t.Errorf("while draining: %+v, want nothing kept", got)
	}
}

func TestM2L08KeptResultsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCache(t)
		key := cacheKey{scope: "peer/1", method: spec.MethodToolsList}
		_, l, _ := c.look("peer", key, false)
		c.keep(l, publicTools())
		c.leave(l, true)
		for _, tt := range []struct {
			wait time.Duration
			want int64
		}{{0, 5000}, {2 * time.Second, 3000}, {2999500 * time.Microsecond, 0}} {
			time.Sleep(tt.wait)
			got, l, _ := c.look("peer", key, false)
			switch {
			case got == nil && tt.want != 0, got != nil && got.Cache != exchange.CacheHint{TTL: tt.want, Public: true}:
				t.Errorf("after %v more: %+v, want %d ms left", tt.wait, got, tt.want)
			case got == nil:
				c.leave(l, true)
			}
		}
		if got := c.snapshot(); got != (CacheSnapshot{}) || len(c.shelves) != 0 {
			t.Errorf("cache = %+v with %d shelves, want what expired gone", got, len(c.shelves))
		}
	})
}

func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		uri, at string
		want    bool
	}{
		{"file:///d", "file:///d", true},
		{"file:///d/x", "file:///d", true},
		{"file:///d/x", "file:///d/", true},
		{"file:///d?v", "file:///d", true},
		{"file:///d#f", "file:///d", true},
		{"file:///dx", "file:///d", false},
		{"file:///d", "file:///d/x", false},
		{"note:todo", "note", false},
		{"u:x", "u:y", false},
	} {
		if got := within(tt.uri, tt.at); got != tt.want {
			t.Errorf("within(%q, %q) = %v, want %v", tt.uri, tt.at, got, tt.want)
		}
	}
}
