package legacy

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func TestL2M01Initialize(t *testing.T) {
	for _, tt := range []struct{ offered, settled string }{
		{"2025-11-25", "2025-11-25"}, {"2025-06-18", "2025-06-18"}, {"2025-03-26", "2025-03-26"}, {"2024-11-05", "2024-11-05"},
		{"2024-10-07", "2025-11-25"}, {"2026-07-28", "2025-11-25"}, {"x", "2025-11-25"},
	} {
		t.Run("L2M-01 "+tt.offered, func(t *testing.T) {
			st := newTheatre(t, nil)
			r := st.send(t, "POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`, tt.offered))
			want := fmt.Sprintf(`{"jsonrpc":"2.0","id":"a","result":{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"up","version":"7"}}}`, tt.settled, allOffered)
			if r.body != want || r.status != 200 {
				t.Errorf("initialize = %d %s\nwant %s", r.status, r.body, want)
			}
		})
	}
}

func TestL2M01NamelessServer(t *testing.T) {
	st := newTheatre(t, nil)
	st.describe = func() (*exchange.Description, error) {
		return &exchange.Description{Capabilities: []byte(`{}`), Instructions: []byte(`"be kind"`)}, nil
	}
	r := st.send(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`)
	if want := `"serverInfo":{"name":"docs","version":"0"},"instructions":"be kind"}}`; !strings.HasSuffix(r.body, want) {
		t.Errorf("initialize = %s, want it to end with %s", r.body, want)
	}
}

func TestL2M01WaitsForAServerThatStarts(t *testing.T) {
	st := newTheatre(t, nil)
	n := 0
	st.describe = func() (*exchange.Description, error) {
		if n++; n < 3 {
			return nil, fmt.Errorf("server is still %w", exchange.ErrStarting)
		}
		return &exchange.Description{Capabilities: []byte(`{}`)}, nil
	}
	st.enter(t, "2025-11-25")
	if n != 3 {
		t.Errorf("asked %d times, want 3", n)
	}
	st.mu.Lock()
	st.describe = func() (*exchange.Description, error) { n++; return nil, fmt.Errorf("server docs is down") }
	st.mu.Unlock()
	r := st.send(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`)
	if r.status != 200 || r.code() != -32603 || !strings.Contains(r.body, "is down") || n != 4 {
		t.Errorf("initialize on a server that is down = %d %s after %d attempts, want an error at once", r.status, r.body, n-3)
	}
}

func TestF01InitializeWithoutRevision(t *testing.T) {
	st := newTheatre(t, nil)
	if r := st.send(t, "POST", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`); r.code() != -32602 || !strings.Contains(r.body, "protocolVersion") {
		t.Errorf("initialize = %d %s, want code -32602 that names protocolVersion", r.status, r.body)
	}
}

// TestSessionStatuses is the table of what a session's requests can meet.
func TestSessionStatuses(t *testing.T) {
	st := newTheatre(t, func(o *FrontOptions) { o.Idle = 50 * time.Millisecond })
	const ping = `{"jsonrpc":"2.0","id":5,"method":"ping"}`
	ended := st.enter(t, "2025-11-25").id
	if r := st.send(t, "DELETE", "", "Mcp-Session-Id", ended); r.status != 204 {
		t.Errorf("DELETE = %d, want 204", r.status)
	}
	idle := st.enter(t, "2025-11-25").id
	eventually(t, "idle session ended", func() bool { return st.front.Sessions() == 0 })
	st.front.opts.Idle = time.Hour
	live, old := st.enter(t, "2025-11-25").id, st.enter(t, "2025-03-26").id

	for _, tt := range []struct {
		name, method, body string
		headers            []string
		who                exchange.Principal
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
		{"L2M-02 revision not negotiated", "POST", ping, []string{"Mcp-Session-Id", live, "Mcp-Protocol-Version", "2025-06-18"}, "ada", 400, -32600},
		{"L2M-02 unknown revision", "POST", ping, []string{"Mcp-Session-Id", old, "Mcp-Protocol-Version", "1999-01-01"}, "ada", 400, -32600},
		{"F-08 Accept without streams", "POST", ping, []string{"Mcp-Session-Id", live, "Accept", "application/json"}, "ada", 406, -32600},
		{"F-08 Accept without JSON", "POST", ping, []string{"Mcp-Session-Id", live, "Accept", "text/event-stream"}, "ada", 406, -32600},
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
			r := st.send(t, tt.method, tt.body, tt.headers...)
			if r.status != tt.status || r.code() != tt.code {
				t.Errorf("= %d %s, want %d and code %d", r.status, r.body, tt.status, tt.code)
			}
			if tt.body == ping && tt.status != 200 && !strings.Contains(r.body, `"id":5`) {
				t.Errorf("= %s, want the request's id", r.body)
			}
		})
	}
}

func TestL2M02SessionIDs(t *testing.T) {
	st := newTheatre(t, nil)
	a, b := st.enter(t, "2025-11-25").id, st.enter(t, "2025-11-25").id
	if a == b || !strings.HasPrefix(a, "1inst-") || len(a) < len("1inst-")+26 {
		t.Errorf("ids %q and %q, want version, instance and 130 random bits each", a, b)
	}
}

func TestL2M03SessionsAreBounded(t *testing.T) {
	release := make(chan struct{})
	st := newTheatre(t, func(o *FrontOptions) { o.MaxSessions, o.MaxSessionsEach = 3, 2 })
	st.handle = func(ctx context.Context, _ *exchange.Request, _ exchange.Exchange) (string, error) {
		<-release
		return `{"content":[]}`, nil
	}
	busy := st.enter(t, "2025-11-25")
	done := make(chan httpReply)
	go func() { done <- busy.call(t, "tools/call", `{"name":"x"}`) }()
	eventually(t, "call in flight", func() bool { st.mu.Lock(); defer st.mu.Unlock(); return len(st.got) == 1 })
	idle := st.enter(t, "2025-11-25")
	fresh := st.enter(t, "2025-11-25") // the principal's third: the idle one goes
	if r := idle.call(t, "ping", `{}`); r.status != 404 {
		t.Errorf("the session idle longest = %d, want 404", r.status)
	}
	if r := fresh.call(t, "ping", `{}`); r.status != 200 {
		t.Errorf("the newest = %d, want 200", r.status)
	}
	if n := st.drops("limit client_sessions"); n != 1 {
		t.Errorf("%d evictions counted, want 1", n)
	}
	close(release)
	if r := <-done; r.status != 200 {
		t.Errorf("the call = %d %s, want it answered: a session with a call in flight is not idle", r.status, r.body)
	}
}

func TestL2M04WhatTheGatewayServes(t *testing.T) {
	st := newTheatre(t, nil)
	g := st.enter(t, "2025-11-25")
	if r := g.call(t, "ping", `{}`); r.body != `{"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Errorf("ping = %s", r.body)
	}
	for _, method := range []string{"notifications/roots/list_changed", "notifications/nonsense"} {
		if r := g.post(t, `{"jsonrpc":"2.0","method":"`+method+`"}`); r.status != 202 || r.body != "" {
			t.Errorf("%s = %d %q, want 202 and nothing", method, r.status, r.body)
		}
	}
	if n := st.drops("client notification"); n != 1 {
		t.Errorf("%d notifications counted as dropped, want the unknown one", n)
	}
	if len(st.got) != 0 {
		t.Errorf("%d requests went upstream, want none", len(st.got))
	}
	st.handle = func(context.Context, *exchange.Request, exchange.Exchange) (string, error) {
		return "", wire.Errorf(-32601, "unknown method")
	}
	if r := g.call(t, "nonsense/method", `{}`); r.status != 200 || r.code() != -32601 || !strings.Contains(r.body, `"id":2`) {
		t.Errorf("an upstream's error = %d %s, want 200 and the id: 404 means that the session is gone", r.status, r.body)
	}
	for _, method := range []string{"server/discover", "subscriptions/listen", "tasks/list"} {
		if r := g.call(t, method, `{}`); r.status != 200 || r.code() != -32601 {
			t.Errorf("%s = %d %s, want -32601", method, r.status, r.body)
		}
	}
}

func TestL2M12LevelGoesAlong(t *testing.T) {
	st := newTheatre(t, nil)
	st.handle = func(ctx context.Context, req *exchange.Request, x exchange.Exchange) (string, error) {
		_ = x.Notify(ctx, exchange.Notification{Method: "notifications/message", Params: []byte(`{"level":"info","data":"hi"}`)})
		return `{"content":[],"resultType":"complete"}`, nil
	}
	g := st.enter(t, "2025-11-25")
	for _, tt := range []struct{ level, want string }{{"", ""}, {"info", "info"}, {"error", "error"}} {
		if tt.level != "" {
			if r := g.call(t, "logging/setLevel", `{"level":"`+tt.level+`"}`); r.code() != 0 {
				t.Fatalf("setLevel = %s", r.body)
			}
		}
		r := g.call(t, "tools/call", `{"name":"x"}`)
		if got := st.got[len(st.got)-1].LogLevel; string(got) != tt.want {
			t.Errorf("level = %q, want %q", got, tt.want)
		}
		if !strings.Contains(r.body, `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hi"}}`) {
			t.Errorf("the call's stream = %s, want the message on it", r.body)
		}
	}
	if r := g.call(t, "logging/setLevel", `{"level":"loud"}`); r.code() != -32602 {
		t.Errorf("unknown level = %s, want -32602", r.body)
	}
}

func TestL2M05Batches(t *testing.T) {
	st := newTheatre(t, nil)
	st.handle = func(_ context.Context, req *exchange.Request, _ exchange.Exchange) (string, error) {
		return `{"tools":[],"resultType":"complete"}`, nil
	}
	g := st.enter(t, "2025-03-26")
	r := g.post(t, `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":"b","method":"tools/list"},{"jsonrpc":"2.0","id":3,"method":"initialize","params":{}},{"jsonrpc":"1.0","id":4,"method":"ping"}]`)
	for _, want := range []string{`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":"b","result":{"tools":[]}}`, `"id":3,"error":{"code":-32600`, `"id":4,"error":{"code":-32600`} {
		if !strings.Contains(r.body, want) {
			t.Errorf("batch = %s, want %s in it", r.body, want)
		}
	}
	if r.status != 200 || r.body[0] != '[' || strings.Count(r.body, `"jsonrpc"`) != 4 {
		t.Errorf("batch = %d %s, want one array of 4", r.status, r.body)
	}
	if r := g.post(t, `[{"jsonrpc":"2.0","method":"notifications/x"}]`); r.status != 202 {
		t.Errorf("batch of notifications = %d, want 202", r.status)
	}
	if r := g.post(t, `[]`); r.status != 400 {
		t.Errorf("empty batch = %d, want 400", r.status)
	}
	for _, revision := range []string{"2025-06-18", "2025-11-25"} {
		if r := st.enter(t, revision).post(t, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`); r.status != 400 || r.code() != -32600 {
			t.Errorf("batch in %s = %d %s, want 400", revision, r.status, r.body)
		}
	}
}

func TestL2M05BatchWithStream(t *testing.T) {
	st := newTheatre(t, nil)
	st.handle = func(ctx context.Context, req *exchange.Request, x exchange.Exchange) (string, error) {
		if req.Method == "tools/call" {
			_ = x.Notify(ctx, exchange.Notification{Method: "notifications/progress", Params: []byte(`{"progressToken":7,"progress":1}`)})
		}
		return `{"ok":true}`, nil
	}
	g := st.enter(t, "2025-03-26")
	f := read(t, st.open(t, "POST", `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":7}}},{"jsonrpc":"2.0","id":2,"method":"x/y"}]`, "Mcp-Session-Id", g.id))
	seen := map[string]bool{}
	for data, ok := f.next(); ok; data, ok = f.next() {
		seen[data[:min(len(data), 34)]] = true
	}
	if len(seen) != 3 {
		t.Errorf("events = %v, want progress and both answers", seen)
	}
}

func TestL2M15Cancelled(t *testing.T) {
	st := newTheatre(t, nil)
	cause := make(chan error, 1)
	begun := make(chan bool)
	st.handle = func(ctx context.Context, req *exchange.Request, x exchange.Exchange) (string, error) {
		begun <- true
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return "", ctx.Err()
	}
	g := st.enter(t, "2025-06-18")
	done := make(chan httpReply)
	go func() {
		done <- g.post(t, `{"jsonrpc":"2.0","id":"7","method":"tools/call","params":{"name":"x"}}`)
	}()
	<-begun
	g.post(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`) // another id
	select {
	case err := <-cause:
		t.Fatalf("cancelled by another id: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	if r := g.post(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}}`); r.status != 202 {
		t.Errorf("cancelled = %d, want 202", r.status)
	}
	if err := <-cause; err != errCancelledByClient {
		t.Errorf("cause = %v", err)
	}
	if r := <-done; strings.Contains(r.body, "jsonrpc") {
		t.Errorf("answer = %s, want none", r.body)
	}
}

func TestF09LostConnectionCancelsNothing(t *testing.T) {
	st := newTheatre(t, nil)
	release, ended := make(chan struct{}), make(chan error, 1)
	st.handle = func(ctx context.Context, req *exchange.Request, x exchange.Exchange) (string, error) {
		_ = x.Notify(ctx, exchange.Notification{Method: "notifications/message", Params: []byte(`{"level":"info","data":1}`)})
		<-release
		ended <- ctx.Err()
		return `{"content":[]}`, nil
	}
	g := st.enter(t, "2025-11-25")
	f := read(t, st.open(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, "Mcp-Session-Id", g.id))
	f.next()
	f.res.Body.Close()
	close(release)
	if err := <-ended; err != nil {
		t.Errorf("the call's context: %v, want it alive after the connection", err)
	}
	// L2M-26: what came while nobody was there is replayed.
	again := read(t, st.open(t, "GET", "", "Mcp-Session-Id", g.id, "Last-Event-ID", f.last))
	again.want(`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`)
	again.ends()
}

func TestF09SessionsEndCancelsCalls(t *testing.T) {
	st := newTheatre(t, nil)
	begun, cause := make(chan bool), make(chan error, 1)
	st.handle = func(ctx context.Context, req *exchange.Request, x exchange.Exchange) (string, error) {
		begun <- true
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return "", context.Cause(ctx)
	}
	g := st.enter(t, "2025-11-25")
	done := make(chan httpReply)
	go func() { done <- g.call(t, "tools/call", `{}`) }()
	<-begun
	st.send(t, "DELETE", "", "Mcp-Session-Id", g.id)
	if err := <-cause; err != errSessionEnded {
		t.Errorf("cause = %v, want %v", err, errSessionEnded)
	}
	if r := <-done; r.code() != -32001 {
		t.Errorf("answer = %d %s, want an error that says the session has ended", r.status, r.body)
	}
}

func TestL2M09ProgressGrows(t *testing.T) {
	st := newTheatre(t, nil)
	st.handle = func(ctx context.Context, req *exchange.Request, x exchange.Exchange) (string, error) {
		for _, n := range []string{"1", "0.5", "1", "2.5", "2", "3"} {
			_ = x.Notify(ctx, exchange.Notification{Method: "notifications/progress", Params: []byte(`{"progressToken":"p","progress":` + n + `}`)})
		}
		return `{"content":[]}`, nil
	}
	r := st.enter(t, "2025-11-25").call(t, "tools/call", `{"_meta":{"progressToken":"p"}}`)
	if n := strings.Count(r.body, `"progress":`); n != 3 {
		t.Errorf("%d progress notifications in %s, want those that grow: 1, 2.5, 3", n, r.body)
	}
}
