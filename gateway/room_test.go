package gateway

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// How a server is reached is told without credentials.
func TestReached(t *testing.T) {
	for _, tt := range []struct {
		s    ServerOptions
		want string
	}{
		{ServerOptions{URL: "https://ada:pw@example.com/mcp?key=k&a=b"}, "https://example.com/mcp?a=" + redact.Hidden + "&key=" + redact.Hidden},
		{ServerOptions{URL: "http://127.0.0.1:1/mcp"}, "http://127.0.0.1:1/mcp"},
		{ServerOptions{URL: "http://[::1"}, redact.Hidden},
		{ServerOptions{Command: []string{"npx", "-y", "some server", "--token", "abc", "it's"}}, `npx -y 'some server' --token ` + redact.Hidden + ` 'it'\''s'`},
		{ServerOptions{Command: []string{"x", "--api-key=abc", ""}}, "x --api-key=" + redact.Hidden + " ''"},
		{ServerOptions{Handler: http.NotFoundHandler()}, "in this process"},
	} {
		if got := reached(&tt.s); got != tt.want {
			t.Errorf("reached = %s, want %s", got, tt.want)
		}
	}
	for a, want := range map[*UpstreamAuth]string{nil: "", {Token: "t"}: "a token of the configuration", {Login: &StoredLogin{Principal: "ada"}}: "the stored login of ada", {Passthrough: true}: "the token of each caller"} {
		if got := a.words(); got != want {
			t.Errorf("credentials = %q, want %q", got, want)
		}
	}
}

// The room of a server has its options without values, and what it has said. A group has none, and
// looking asks nobody.
func TestServerRoom(t *testing.T) {
	one := &shelf{text: "one"}
	s := httptest.NewServer(one)
	t.Cleanup(s.Close)
	r := run(t, Options{
		Servers: []ServerOptions{{Name: "docs", URL: s.URL + "/mcp", Header: http.Header{"X-Key": {"the-secret"}}, Pin: PinOff}},
		Groups:  []GroupOptions{{Name: "all", Members: []string{"docs"}}},
	})
	g := hook{}.Inner(r.g)
	until(t, "it is ready", func() bool { return g.ServerRoom("docs").State == "ready" })
	opened, _, _ := one.counts()
	room := g.ServerRoom("docs")
	if room.Reached != s.URL+"/mcp" || !slices.Equal(room.Headers, []string{"X-Key"}) || room.Era != "legacy" || room.Transport != "http" || room.Proof || room.Pin != "" || !strings.Contains(string(room.Info), `"version":"1"`) {
		t.Errorf("the room is %+v", room)
	}
	if again, _, _ := one.counts(); again != opened {
		t.Errorf("looking has opened %d sessions", again-opened)
	}
	if g.ServerRoom("all") != nil || g.ServerRoom("none") != nil {
		t.Error("a group, or nothing, has the room of a server")
	}
	if _, err := g.ToolChanges(t.Context(), "docs"); err == nil || !strings.Contains(err.Error(), "pin: warn") {
		t.Errorf("changes where nothing is pinned: %v", err)
	}
}

// Whoever looks at the overview, at servers and at groups has nothing sent to any server, also where
// what was said of a server does not last, and where nobody has asked as the admin address would.
func TestLookingAsksNobody(t *testing.T) {
	var asked atomic.Int64
	counted := func(h http.Handler) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked.Add(1); h.ServeHTTP(w, r) }))
		t.Cleanup(s.Close)
		return s.URL + "/mcp"
	}
	fleeting := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // the gateway's
		m, _ := wire.Parse(body, wire.Options{})
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"content":[],"ttlMs":0,"cacheScope":"private"}}`, m.ID)
	})
	old, modern, gone := counted(&shelf{text: "old"}), counted(fleeting), "http://127.0.0.1:1/mcp" // which is tried again and again
	r := run(t, Options{
		Servers: []ServerOptions{{Name: "old", URL: old}, {Name: "modern", URL: modern}, {Name: "sure", URL: modern, Era: Modern}, {Name: "gone", URL: gone, Era: Legacy}},
		Groups:  []GroupOptions{{Name: "all", Members: []string{"old", "modern"}}},
	})
	g := hook{}.Inner(r.g)
	for name, state := range map[string]string{"old": "ready", "modern": "ready", "sure": "ready"} {
		until(t, name+" is "+state, func() bool { return g.ServerRoom(name).State == state })
	}
	if code, text := r.call("modern", ""); code != http.StatusOK {
		t.Fatal(text)
	}
	before := asked.Load()
	until(t, "nothing more is asked at the start", func() bool {
		was := before
		time.Sleep(500 * time.Millisecond) // on a busy machine there may be pauses
		before = asked.Load()
		return was == before
	})
	for range 3 {
		for _, name := range []string{"old", "modern", "sure", "gone"} {
			if room := g.ServerRoom(name); name == "old" && len(room.Info) == 0 || name == "modern" && len(room.Capabilities) == 0 {
				t.Errorf("the room of %s does not have what it said: %+v", name, room)
			}
		}
		if g.Room("all") == nil || len(g.Status(true).Servers) < 4 || g.Rates("old") == nil {
			t.Error("there is nothing to look at")
		}
	}
	time.Sleep(200 * time.Millisecond) // in which what was begun would be heard of
	if after := asked.Load(); after != before {
		t.Errorf("looking has sent %d requests to servers", after-before)
	}
}

// Clients of a server that is restarted are told of that, and of nothing else.
func TestRestartIsTold(t *testing.T) {
	notes := httptest.NewServer(&shelf{text: "notes"})
	t.Cleanup(notes.Close)
	log := new(bridgetest.Log)
	r := run(t, Options{Servers: []ServerOptions{{Name: "notes", URL: notes.URL}}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	r.initialize("notes")
	if err := (hook{}).Inner(r.g).Restart("notes"); err != nil {
		t.Fatal(err)
	}
	until(t, "the session has ended", func() bool { return strings.Contains(log.String(), "client session ended") })
	if text := log.String(); !strings.Contains(text, `reason="server \"notes\" was restarted; connect again"`) || strings.Contains(text, "shutting down") {
		t.Errorf("the log of a restart:\n%s", text)
	}
	r.initialize("notes")
	changed := r.g.current.opts
	changed.Servers = []ServerOptions{{Name: "notes", URL: notes.URL, Era: Legacy}}
	if _, err := r.g.Reload(changed); err != nil {
		t.Fatal(err)
	}
	until(t, "the other session has ended", func() bool {
		return strings.Contains(log.String(), `reason="server \"notes\" was changed in the gateway's configuration; connect again"`)
	})
}

// A restart replaces one server, and nothing else; calls in flight go on.
func TestRestart(t *testing.T) {
	one, two := &shelf{text: "one", hold: make(chan struct{})}, &shelf{text: "two"}
	s1, s2 := httptest.NewServer(one), httptest.NewServer(two)
	t.Cleanup(s1.Close)
	t.Cleanup(s2.Close)
	r := run(t, Options{Servers: []ServerOptions{{Name: "one", URL: s1.URL}, {Name: "two", URL: s2.URL}}})
	g := hook{}.Inner(r.g)
	status, body := make(chan int, 1), make(chan string, 1)
	go func() { // ends with the call
		code, text := r.call("one", "")
		status <- code
		body <- text
	}()
	until(t, "the call has begun", func() bool { _, _, calls := one.counts(); return calls == 1 })
	if _, text := r.call("two", ""); !strings.Contains(text, "two") {
		t.Fatal(text)
	}
	partsOne, partsTwo := r.g.current.find("one"), r.g.current.find("two")
	if err := g.Restart("one"); err != nil {
		t.Fatal(err)
	}
	if r.g.current.find("one") == partsOne || r.g.current.find("two") != partsTwo {
		t.Error("not the one server was replaced")
	}
	close(one.hold)
	if code, text := <-status, <-body; code != http.StatusOK || !strings.Contains(text, "one") {
		t.Errorf("the call in flight = %d %s", code, text)
	}
	if err := g.Restart("none"); err == nil || !strings.Contains(err.Error(), "it is not served") {
		t.Errorf("restarting nothing = %v", err)
	}
}

// A task of a client is cancelled for who uses the admin page, and the audit log has that.
func TestCancelledTasksAreInTheAuditLog(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // the gateway's
		m, _ := wire.Parse(body, wire.Options{})
		result := map[string]string{
			"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"s","version":"1"}}`,
			"tools/list": `{"tools":[{"name":"dig","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]}`,
			"tools/call": `{"task":{"taskId":"t-1","status":"working"}}`, "tasks/cancel": `{"taskId":"t-1","status":"cancelled"}`,
		}[m.Method]
		if result == "" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "audit")
	r := run(t, Options{Servers: []ServerOptions{{Name: "mine", URL: server.URL, Era: Legacy}}, Audit: path})
	g := hook{}.Inner(r.g)
	if n := len(g.Tasks("mine").List) + len(g.Tasks("none").List); n != 0 {
		t.Errorf("%d tasks before any was made", n)
	}
	if _, text := r.callAs("mine", "dig", `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, ""); !strings.Contains(text, `"resultType":"task"`) {
		t.Fatalf("the call = %s, want a task", text)
	}
	told := g.Tasks("mine").List
	if len(told) != 1 || told[0].Tool != "dig" || g.ServerRoom("mine").Tasks != 1 {
		t.Fatalf("told of %+v, and %d counted", told, g.ServerRoom("mine").Tasks)
	}
	for _, bad := range [][2]string{{"mine", "x"}, {"none", told[0].Key}} {
		if err := g.CancelTask(t.Context(), bad[0], bad[1]); err == nil || !strings.Contains(err.Error(), bad[0]) {
			t.Errorf("CancelTask(%q) = %v", bad, err)
		}
	}
	if err := g.CancelTask(t.Context(), "mine", told[0].Key); err != nil {
		t.Fatal(err)
	}
	until(t, "the line is written", func() bool {
		text, _ := os.ReadFile(path)
		return strings.Count(string(text), `"method":"cancel-task"`) == 1 && strings.Contains(string(text), `"name":"dig"`) && strings.Contains(string(text), `it was a task of anonymous`)
	})
}
