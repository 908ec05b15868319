package front

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func TestL2M01Initialize(t *testing.T) {
	for _, tt := range []struct{ offered, settled string }{
		{"2025-11-25", "2025-11-25"}, {"2025-06-18", "2025-06-18"}, {"2025-03-26", "2025-03-26"}, {"2024-11-05", "2024-11-05"},
		{"2024-10-07", "2025-11-25"}, {"2026-07-28", "2025-11-25"}, {"x", "2025-11-25"},
	} {
		t.Run("L2M-01 "+tt.offered, func(t *testing.T) {
			st := newRig(t, nil)
			r := st.Send(t, "POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`, tt.offered))
			want := fmt.Sprintf(`{"jsonrpc":"2.0","id":"a","result":{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"up","version":"7"}}}`, tt.settled, allOffered)
			if r.Body != want || r.Status != 200 {
				t.Errorf("initialize = %d %s\nwant %s", r.Status, r.Body, want)
			}
		})
	}
}

func TestL2M01NamelessServer(t *testing.T) {
	st := newRig(t, nil)
	st.describe = func() (*mcp.Description, error) {
		return &mcp.Description{Capabilities: []byte(`{}`), Instructions: []byte(`"be kind"`)}, nil
	}
	r := st.Send(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`)
	if want := `"serverInfo":{"name":"docs","version":"0"},"instructions":"be kind"}}`; !strings.HasSuffix(r.Body, want) {
		t.Errorf("initialize = %s, want it to end with %s", r.Body, want)
	}
}

func TestL2M01WaitsForAServerThatStarts(t *testing.T) {
	t.Parallel()
	st := newRig(t, nil)
	n := 0
	st.describe = func() (*mcp.Description, error) {
		if n++; n < 3 {
			return nil, fmt.Errorf("server is still %w", mcp.ErrStarting)
		}
		return &mcp.Description{Capabilities: []byte(`{}`)}, nil
	}
	st.Enter(t, "2025-11-25")
	if n != 3 {
		t.Errorf("asked %d times, want 3", n)
	}
	st.mu.Lock()
	st.describe = func() (*mcp.Description, error) { n++; return nil, fmt.Errorf("server docs is down") }
	st.mu.Unlock()
	r := st.Send(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`)
	if r.Status != 200 || r.Code() != -32603 || !strings.Contains(r.Body, "is down") || n != 4 {
		t.Errorf("initialize on a server that is down = %d %s after %d attempts, want an error at once", r.Status, r.Body, n-3)
	}
}

func TestF01InitializeWithoutRevision(t *testing.T) {
	st := newRig(t, nil)
	if r := st.Send(t, "POST", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`); r.Code() != -32602 || !strings.Contains(r.Body, "protocolVersion") {
		t.Errorf("initialize = %d %s, want code -32602 that names protocolVersion", r.Status, r.Body)
	}
}

// A session that is used just when its time is up, and is idle again before its timer gets
// the lock, lasts.
func TestSessionUsedAsItsTimeIsUp(t *testing.T) {
	st := newRig(t, nil)
	st.Enter(t, "2025-11-25")
	ss := st.front.sessions
	ss.mu.Lock()
	for _, s := range ss.byID {
		ss.useLocked(s)
		st.front.opts.Idle = time.Millisecond
		s.usage.uses--
		ss.idleLocked(s)
		time.Sleep(50 * time.Millisecond) // the timer fires
		st.front.opts.Idle = time.Hour
		ss.useLocked(s)
		s.usage.uses--
		ss.idleLocked(s)
	}
	ss.mu.Unlock()
	time.Sleep(50 * time.Millisecond)
	if n := st.front.Sessions(); n != 1 {
		t.Errorf("%d sessions, want the one that was used", n)
	}
}

// A session has begun with its first request after the handshake, or with a stream.
func TestM2L02SessionsBegin(t *testing.T) {
	for name, begin := range map[string]func(*legacytest.Session){
		"request": func(g *legacytest.Session) { g.Call(t, "ping", `{}`) },
		"stream":  func(g *legacytest.Session) { _ = g.Listen(t).Response.Body.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			st := newRig(t, nil)
			g := st.Enter(t, "2025-11-25")
			want := func(begun bool) {
				t.Helper()
				bridgetest.Eventually(t, fmt.Sprintf("at rest, begun: %t", begun), func() bool {
					_, has, ok := st.front.sessions.rest(st.only(t))
					return ok && has == begun
				})
			}
			want(false)
			begin(g)
			want(true)
		})
	}
}

// A session is retired only if its client has had nothing open all the time, and is over for the client
// in that moment.
func TestM2L02SessionsAreRetiredAtRest(t *testing.T) {
	st := newRig(t, nil)
	g := st.Enter(t, "2025-11-25")
	s, ss := st.only(t), st.front.sessions
	resting := func() {
		t.Helper()
		bridgetest.Eventually(t, "at rest", func() bool { _, _, ok := ss.rest(s); return ok })
	}
	since := func(d time.Duration) {
		ss.mu.Lock()
		defer ss.mu.Unlock()
		s.usage.rested = time.Now().Add(-d)
	}
	resting()
	since(time.Hour)
	if ss.retire(s, 2*time.Hour) {
		t.Error("it was retired before its time")
	}
	get := g.Listen(t)
	if ss.retire(s, 0) {
		t.Error("it was retired while a stream is open")
	}
	_ = get.Response.Body.Close()
	resting()
	if ss.retire(s, time.Hour) {
		t.Error("it was retired though its client has come back since")
	}
	if r := g.Call(t, "ping", `{}`); r.Status != 200 {
		t.Errorf("ping = %d %s, want it served", r.Status, r.Body)
	}
	resting()
	since(time.Hour)
	for range 2 { // the second time it has been
		if !ss.retire(s, time.Hour) {
			t.Error("it was not retired, or is not said to be")
		}
	}
	if r := g.Call(t, "ping", `{}`); r.Status != 404 || r.Code() != -32001 {
		t.Errorf("ping = %d %s, want 404", r.Status, r.Body)
	}
}

// TestSessionStatuses is the table of what a session's requests can meet.
func TestSessionStatuses(t *testing.T) {
	st := newRig(t, nil)
	const ping = `{"jsonrpc":"2.0","id":5,"method":"ping"}`
	ended := st.Enter(t, "2025-11-25").ID
	if r := st.Send(t, "DELETE", "", "Mcp-Session-Id", ended); r.Status != 204 {
		t.Errorf("DELETE = %d, want 204", r.Status)
	}
	idle := st.Enter(t, "2025-11-25").ID
	st.front.opts.Idle = 10 * time.Millisecond // from the next use on
	st.Send(t, "POST", ping, "Mcp-Session-Id", idle)
	bridgetest.Eventually(t, "idle session ended", func() bool { return st.front.Sessions() == 0 })
	st.front.opts.Idle = time.Hour
	live, old := st.Enter(t, "2025-11-25").ID, st.Enter(t, "2025-03-26").ID

	for _, tt := range []struct {
		name, method, body string
		headers            []string
		who                mcp.Principal
		status             int
		code               int64
	}{
		{"L2M-02 live", "POST", ping, []string{"Mcp-Session-Id", live}, "ada", 200, 0},
		{"L2M-02 live with its revision", "POST", ping, []string{"Mcp-Session-Id", live, "Mcp-Protocol-Version", "2025-11-25"}, "ada", 200, 0},
		{"L2M-02 no id", "POST", ping, nil, "ada", 400, -32600},
		{"L2M-02 unknown id", "POST", ping, []string{"Mcp-Session-Id", "1inst-nope"}, "ada", 404, -32001},
		{"L2M-02 ended", "POST", ping, []string{"Mcp-Session-Id", ended}, "ada", 404, -32001},
		{"L2M-02 idle for too long", "POST", ping, []string{"Mcp-Session-Id", idle}, "ada", 404, -32001},
		{"L2M-02 foreign principal", "POST", ping, []string{"Mcp-Session-Id", live}, "bob", 404, -32001},
		{"Q-01 another known revision", "POST", ping, []string{"Mcp-Session-Id", live, "Mcp-Protocol-Version", "2025-06-18"}, "ada", 200, 0},
		{"Q-01 a modern revision", "POST", ping, []string{"Mcp-Session-Id", live, "Mcp-Protocol-Version", "2026-07-28"}, "ada", 200, 0},
		{"Q-01 a modern revision in an ended session", "POST", ping, []string{"Mcp-Session-Id", ended, "Mcp-Protocol-Version", "2026-07-28"}, "ada", 404, -32001},
		{"Q-01 a modern revision in a foreign session", "POST", ping, []string{"Mcp-Session-Id", live, "Mcp-Protocol-Version", "2026-07-28"}, "bob", 404, -32001},
		{"L2M-02 unknown revision", "POST", ping, []string{"Mcp-Session-Id", old, "Mcp-Protocol-Version", "1999-01-01"}, "ada", 400, -32600},
		{"F-08 Accept of neither form", "POST", ping, []string{"Mcp-Session-Id", live, "Accept", "text/html"}, "ada", 406, -32600},
		{"Q-04 Accept without streams", "POST", ping, []string{"Mcp-Session-Id", live, "Accept", "application/json"}, "ada", 200, 0},
		{"Q-04 Accept without JSON", "POST", ping, []string{"Mcp-Session-Id", live, "Accept", "text/event-stream"}, "ada", 200, 0},
		{"F-08 Accept of anything", "POST", ping, []string{"Mcp-Session-Id", live, "Accept", "*/*"}, "ada", 200, 0},
		{"F-08 GET without streams", "GET", "", []string{"Mcp-Session-Id", live, "Accept", "application/json"}, "ada", 406, -32600},
		{"F-06 GET without id", "GET", "", nil, "ada", 400, -32600},
		{"F-06 GET of an ended session", "GET", "", []string{"Mcp-Session-Id", ended}, "ada", 404, -32001},
		{"F-06 DELETE without id", "DELETE", "", nil, "ada", 400, -32600},
		{"F-06 DELETE of an ended session", "DELETE", "", []string{"Mcp-Session-Id", ended}, "ada", 404, -32001},
		{"F-06 DELETE by a foreign principal", "DELETE", "", []string{"Mcp-Session-Id", live}, "bob", 404, -32001},
		{"L2M-04 notification of an ended session", "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, []string{"Mcp-Session-Id", ended}, "ada", 404, -32001},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st.mu.Lock()
			st.who = tt.who
			st.mu.Unlock()
			r := st.Send(t, tt.method, tt.body, tt.headers...)
			if r.Status != tt.status || r.Code() != tt.code {
				t.Errorf("= %d %s, want %d and code %d", r.Status, r.Body, tt.status, tt.code)
			}
			if tt.body == ping && tt.status != 200 && !strings.Contains(r.Body, `"id":5`) {
				t.Errorf("= %s, want the request's id", r.Body)
			}
		})
	}
}

func TestL2M02SessionIDs(t *testing.T) {
	st := newRig(t, nil)
	a, b := st.Enter(t, "2025-11-25").ID, st.Enter(t, "2025-11-25").ID
	if a == b || !strings.HasPrefix(a, "1inst-") || len(a) < len("1inst-")+26 {
		t.Errorf("ids %q and %q, want version, instance and 130 random bits each", a, b)
	}
}

func TestL2M03SessionsAreBounded(t *testing.T) {
	release := make(chan struct{})
	st := newRig(t, func(o *Options) { o.Limits = limits.Set{"client_sessions": 3, "client_sessions_each": 2} })
	st.handle = func(ctx context.Context, _ *mcp.Request, _ mcp.Caller) (string, error) {
		<-release
		return `{"content":[]}`, nil
	}
	busy := st.Enter(t, "2025-11-25")
	done := make(chan legacytest.Reply)
	go func() { done <- busy.Call(t, "tools/call", `{"name":"x"}`) }()
	bridgetest.Eventually(t, "call in flight", func() bool { st.mu.Lock(); defer st.mu.Unlock(); return len(st.got) == 1 })
	idle := st.Enter(t, "2025-11-25")
	fresh := st.Enter(t, "2025-11-25") // the principal's third: the idle one goes
	if r := idle.Call(t, "ping", `{}`); r.Status != 404 {
		t.Errorf("the session idle longest = %d, want 404", r.Status)
	}
	if r := fresh.Call(t, "ping", `{}`); r.Status != 200 {
		t.Errorf("the newest = %d, want 200", r.Status)
	}
	if n := st.Count("limit client_sessions"); n != 1 {
		t.Errorf("%d evictions counted, want 1", n)
	}
	close(release)
	if r := <-done; r.Status != 200 {
		t.Errorf("the call = %d %s, want it answered: a session with a call in flight is not idle", r.Status, r.Body)
	}
}

func TestL2M04WhatTheGatewayServes(t *testing.T) {
	st := newRig(t, nil)
	g := st.Enter(t, "2025-11-25")
	if r := g.Call(t, "ping", `{}`); r.Body != `{"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Errorf("ping = %s", r.Body)
	}
	for _, method := range []string{"notifications/roots/list_changed", "notifications/nonsense"} {
		if r := g.Post(t, `{"jsonrpc":"2.0","method":"`+method+`"}`); r.Status != 202 || r.Body != "" {
			t.Errorf("%s = %d %q, want 202 and nothing", method, r.Status, r.Body)
		}
	}
	if n := st.Count("client notification"); n != 1 {
		t.Errorf("%d notifications counted as dropped, want the unknown one", n)
	}
	if len(st.got) != 0 {
		t.Errorf("%d requests went upstream, want none", len(st.got))
	}
	st.handle = func(context.Context, *mcp.Request, mcp.Caller) (string, error) {
		return "", wire.Errorf(-32601, "unknown method")
	}
	if r := g.Call(t, "nonsense/method", `{}`); r.Status != 200 || r.Code() != -32601 || !strings.Contains(r.Body, `"id":2`) {
		t.Errorf("an upstream's error = %d %s, want 200 and the id: 404 means that the session is gone", r.Status, r.Body)
	}
	for _, method := range []string{"server/discover", "subscriptions/listen", "tasks/list"} {
		if r := g.Call(t, method, `{}`); r.Status != 200 || r.Code() != -32601 {
			t.Errorf("%s = %d %s, want -32601", method, r.Status, r.Body)
		}
	}
}

// A clientNotes notes what it is told of clients.
type clientNotes struct {
	mu     sync.Mutex
	roots  []*mcp.Request
	levels []*mcp.Request
	left   []*mcp.Request
}

func (n *clientNotes) RootsChanged(req *mcp.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.roots = append(n.roots, req)
}

func (n *clientNotes) LevelChanged(req *mcp.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.levels = append(n.levels, req)
}

func (n *clientNotes) ClientLeft(req *mcp.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.left = append(n.left, req)
}

// The server is told of changed roots, in the client's session, and when that has ended.
func TestG14ClientsAreFollowed(t *testing.T) {
	var notes clientNotes
	var refuse atomic.Bool // read by what follows the lists, too
	st := newRig(t, func(o *Options) {
		admit := o.Admit
		o.Admit = func(req *mcp.Request) error {
			if refuse.Load() {
				return wire.Errorf(-32600, "no")
			}
			return admit(req)
		}
		o.Clients = &notes
	})
	g := st.Enter(t, "2025-11-25")
	for range 2 {
		g.Post(t, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
		refuse.Store(true)
	}
	refuse.Store(false)
	g.Call(t, "logging/setLevel", `{"level":"info"}`)
	if len(notes.levels) != 0 {
		t.Error("a single server is told of the level, which goes along with calls")
	}
	told := notes.roots
	if len(told) != 1 || told[0].Method != "notifications/roots/list_changed" || told[0].Session == "" || told[0].Profile.Scope != "docs/"+told[0].Session {
		t.Errorf("told %v, want the notification that was admitted, of the session", told)
	}
	if n := st.Count("client notification"); n != 1 {
		t.Errorf("%d notifications dropped, want the one that was not admitted", n)
	}
	if len(notes.left) != 0 {
		t.Error("it is told to have left, and has not")
	}
	st.Send(t, "DELETE", "", "Mcp-Session-Id", g.ID)
	bridgetest.Eventually(t, "it has left", func() bool {
		notes.mu.Lock()
		defer notes.mu.Unlock()
		return len(notes.left) == 1 && notes.left[0].Profile.Scope == told[0].Profile.Scope
	})
}

func TestL2M12LevelGoesAlong(t *testing.T) {
	st := newRig(t, nil)
	st.handle = func(ctx context.Context, req *mcp.Request, x mcp.Caller) (string, error) {
		_ = x.Notify(ctx, mcp.Notification{Method: "notifications/message", Params: []byte(`{"level":"info","data":"hi"}`)})
		return `{"content":[],"resultType":"complete"}`, nil
	}
	g := st.Enter(t, "2025-11-25")
	for _, tt := range []struct{ level, want string }{{"", "debug"}, {"info", "info"}, {"error", "error"}} {
		if tt.level != "" {
			if r := g.Call(t, "logging/setLevel", `{"level":"`+tt.level+`"}`); r.Code() != 0 {
				t.Fatalf("setLevel = %s", r.Body)
			}
		}
		r := g.Call(t, "tools/call", `{"name":"x"}`)
		if got := st.got[len(st.got)-1].LogLevel; string(got) != tt.want {
			t.Errorf("level = %q, want %q", got, tt.want)
		}
		if !strings.Contains(r.Body, `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hi"}}`) {
			t.Errorf("the call's stream = %s, want the message on it", r.Body)
		}
	}
	if r := g.Call(t, "logging/setLevel", `{"level":"loud"}`); r.Code() != -32602 {
		t.Errorf("unknown level = %s, want -32602", r.Body)
	}
}

// The level of a client that has set none is the configured one: debug, since directly such a
// client hears everything.
func TestL2M12LevelOfWhoSetsNone(t *testing.T) {
	for _, tt := range []struct{ configured, want string }{{"", "debug"}, {"none", ""}, {"warning", "warning"}} {
		st := newRig(t, func(o *Options) { o.Settings.LogLevel = tt.configured })
		st.handle = func(context.Context, *mcp.Request, mcp.Caller) (string, error) {
			return `{"content":[],"resultType":"complete"}`, nil
		}
		st.Enter(t, "2025-11-25").Call(t, "tools/call", `{"name":"x"}`)
		if got := string(st.got[0].LogLevel); got != tt.want {
			t.Errorf("level where log_level is %q = %q, want %q", tt.configured, got, tt.want)
		}
	}
}

func TestL2M05Batches(t *testing.T) {
	st := newRig(t, nil)
	st.handle = func(_ context.Context, req *mcp.Request, _ mcp.Caller) (string, error) {
		return `{"tools":[],"resultType":"complete"}`, nil
	}
	g := st.Enter(t, "2025-03-26")
	r := g.Post(t, `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":"b","method":"tools/list"},{"jsonrpc":"2.0","id":3,"method":"initialize","params":{}},{"jsonrpc":"1.0","id":4,"method":"ping"}]`)
	for _, want := range []string{`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":"b","result":{"tools":[]}}`, `"id":3,"error":{"code":-32600`, `"id":4,"error":{"code":-32600`} {
		if !strings.Contains(r.Body, want) {
			t.Errorf("batch = %s, want %s in it", r.Body, want)
		}
	}
	if r.Status != 200 || r.Body[0] != '[' || strings.Count(r.Body, `"jsonrpc"`) != 4 {
		t.Errorf("batch = %d %s, want one array of 4", r.Status, r.Body)
	}
	if r := g.Post(t, `[{"jsonrpc":"2.0","method":"notifications/x"}]`); r.Status != 202 {
		t.Errorf("batch of notifications = %d, want 202", r.Status)
	}
	if r := g.Post(t, `[]`); r.Status != 400 {
		t.Errorf("empty batch = %d, want 400", r.Status)
	}
	for _, revision := range []string{"2025-06-18", "2025-11-25"} {
		if r := st.Enter(t, revision).Post(t, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`); r.Status != 400 || r.Code() != -32600 {
			t.Errorf("batch in %s = %d %s, want 400", revision, r.Status, r.Body)
		}
	}
}

func TestL2M05BatchWithStream(t *testing.T) {
	st := newRig(t, nil)
	st.handle = func(ctx context.Context, req *mcp.Request, x mcp.Caller) (string, error) {
		if req.Method == "tools/call" {
			_ = x.Notify(ctx, mcp.Notification{Method: "notifications/progress", Params: []byte(`{"progressToken":7,"progress":1}`)})
		}
		return `{"ok":true}`, nil
	}
	g := st.Enter(t, "2025-03-26")
	f := legacytest.Read(t, st.Open(t, "POST", `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":7}}},{"jsonrpc":"2.0","id":2,"method":"x/y"}]`, "Mcp-Session-Id", g.ID))
	seen := map[string]bool{}
	for data, ok := f.Next(); ok; data, ok = f.Next() {
		seen[data[:min(len(data), 34)]] = true
	}
	if len(seen) != 3 {
		t.Errorf("events = %v, want progress and both answers", seen)
	}
}

func TestL2M15Cancelled(t *testing.T) {
	st := newRig(t, nil)
	cause := make(chan error, 1)
	begun := make(chan bool)
	st.handle = func(ctx context.Context, req *mcp.Request, x mcp.Caller) (string, error) {
		begun <- true
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return "", ctx.Err()
	}
	g := st.Enter(t, "2025-06-18")
	done := make(chan legacytest.Reply)
	go func() {
		done <- g.Post(t, `{"jsonrpc":"2.0","id":"7","method":"tools/call","params":{"name":"x"}}`)
	}()
	<-begun
	g.Post(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`) // another id
	select {
	case err := <-cause:
		t.Fatalf("cancelled by another id: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	if r := g.Post(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}}`); r.Status != 202 {
		t.Errorf("cancelled = %d, want 202", r.Status)
	}
	if err := <-cause; err != errCancelledByClient {
		t.Errorf("cause = %v", err)
	}
	if r := <-done; strings.Contains(r.Body, "jsonrpc") {
		t.Errorf("answer = %s, want none", r.Body)
	}
}

func TestF09LostConnectionCancelsNothing(t *testing.T) {
	st := newRig(t, nil)
	release, ended := make(chan struct{}), make(chan error, 1)
	st.handle = func(ctx context.Context, req *mcp.Request, x mcp.Caller) (string, error) {
		_ = x.Notify(ctx, mcp.Notification{Method: "notifications/message", Params: []byte(`{"level":"info","data":1}`)})
		<-release
		ended <- ctx.Err()
		return `{"content":[]}`, nil
	}
	g := st.Enter(t, "2025-11-25")
	f := legacytest.Read(t, st.Open(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, "Mcp-Session-Id", g.ID))
	f.Next()
	f.Response.Body.Close()
	close(release)
	if err := <-ended; err != nil {
		t.Errorf("the call's context: %v, want it alive after the connection", err)
	}
	// L2M-26: what came while nobody was there is replayed.
	again := legacytest.Read(t, st.Open(t, "GET", "", "Mcp-Session-Id", g.ID, "Last-Event-ID", f.Last))
	again.Want(`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`)
	again.Ends()
}

func TestF09SessionsEndCancelsCalls(t *testing.T) {
	st := newRig(t, nil)
	begun, cause := make(chan bool), make(chan error, 1)
	st.handle = func(ctx context.Context, req *mcp.Request, x mcp.Caller) (string, error) {
		begun <- true
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return "", context.Cause(ctx)
	}
	g := st.Enter(t, "2025-11-25")
	done := make(chan legacytest.Reply)
	go func() { done <- g.Call(t, "tools/call", `{}`) }()
	<-begun
	st.Send(t, "DELETE", "", "Mcp-Session-Id", g.ID)
	if err := <-cause; err != errSessionEnded {
		t.Errorf("cause = %v, want %v", err, errSessionEnded)
	}
	if r := <-done; r.Code() != -32001 {
		t.Errorf("answer = %d %s, want an error that says the session has ended", r.Status, r.Body)
	}
}

func TestL2M09ProgressGrows(t *testing.T) {
	st := newRig(t, nil)
	st.handle = func(ctx context.Context, req *mcp.Request, x mcp.Caller) (string, error) {
		for _, n := range []string{"1", "0.5", "1", "2.5", "2", "3"} {
			_ = x.Notify(ctx, mcp.Notification{Method: "notifications/progress", Params: []byte(`{"progressToken":"p","progress":` + n + `}`)})
		}
		return `{"content":[]}`, nil
	}
	r := st.Enter(t, "2025-11-25").Call(t, "tools/call", `{"_meta":{"progressToken":"p"}}`)
	if n := strings.Count(r.Body, `"progress":`); n != 3 {
		t.Errorf("%d progress notifications in %s, want those that grow: 1, 2.5, 3", n, r.Body)
	}
}
