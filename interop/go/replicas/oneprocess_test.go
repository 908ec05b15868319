package replicas

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// A command that all clients share serves all their calls by one process, whichever replica they
// come to and however: calls of modern clients, sessions, HTTP+SSE streams and WebSockets. When
// its replica ends, another process does. With an engine no replica starts one before a client asks
// whom it serves.
func TestOneProcess(t *testing.T) {
	beside(t)
	over(t, append([]string{peers}, both...), func(t *testing.T, engine string) {
		l := ledgers{t, t.TempDir()}
		w := newWorld(t, setup{engine: engine, servers: l.command("lone", programs.legacy) + l.command("fresh", programs.modern), config: "drain: 5s"})
		for _, server := range []string{"lone", "fresh"} {
			if n := w.processes(server); n != 0 && engine != peers {
				t.Errorf("%s: %d processes before the first call", server, n)
			}
			w.comeIn(server, "first")
			if n := w.processes(server); n != 1 && engine != peers {
				t.Errorf("%s: %d processes, want one for all", server, n)
			}
			first := l.served(server, "first", 5*len(w.replicas))
			holder := w.holderOf(server, first)
			if holder == nil {
				continue
			}
			holder.stop(recovery)
			w.comeIn(server, "second")
			if second := l.served(server, "second", 5*(len(w.replicas)-1)); second == first {
				t.Errorf("%s: the process of a replica that has ended goes on", server)
			}
			holder.start()
			w.wantMembers(w.replicas...)
		}
	})
}

// ledgers are those of commands, each of which has one for each of its processes.
type ledgers struct {
	t   *testing.T
	dir string
}

// command returns an entry of servers.
func (l ledgers) command(name, program string) string {
	return fmt.Sprintf("  %s: {command: /bin/sh, args: [-c, 'exec %s -ledger %s/%s.$$'], isolation: shared}\n", name, program, l.dir, name)
}

// served returns the process of a command that has got all n calls whose nonces begin so.
func (l ledgers) served(name, prefix string, n int) (process string) {
	l.t.Helper()
	by := make(map[string]int)
	for nonce, files := range l.calls(name) {
		if !strings.HasPrefix(nonce, prefix) {
			continue
		}
		for _, file := range files {
			by[file]++
			process = file
		}
	}
	if len(by) != 1 || by[process] != n {
		l.t.Errorf("%s: %s calls were served by the processes %v, want all %d by one", name, prefix, by, n)
	}
	return process
}

// calls returns the processes that have got each call, by their nonces.
func (l ledgers) calls(name string) map[string][]string {
	l.t.Helper()
	by := make(map[string][]string)
	files, _ := filepath.Glob(filepath.Join(l.dir, name+".*"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			l.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var e struct{ What, Nonce string }
			if json.Unmarshal([]byte(line), &e) == nil && e.What == "call" {
				by[e.Nonce] = append(by[e.Nonce], file)
			}
		}
	}
	return by
}

// processes returns how many processes of a command the replicas have.
func (w *world) processes(server string) (n int) {
	of := make(map[string]bool)
	for _, r := range w.replicas {
		if r.p != nil {
			of[fmt.Sprint(r.p.Pid())] = true
		}
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if of[strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')'):]))[2]] && strings.Contains(string(line), "/"+server+".") {
			n++
		}
	}
	return n
}

// holderOf returns the replica that runs a process.
func (w *world) holderOf(server, ledger string) *replica {
	pid := strings.TrimPrefix(filepath.Ext(ledger), ".")
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		w.t.Errorf("%s: process %s is gone", server, pid)
		return nil
	}
	parent := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')'):]))[2]
	at := slices.IndexFunc(w.replicas, func(r *replica) bool { return r.p != nil && fmt.Sprint(r.p.Pid()) == parent })
	if at < 0 {
		w.t.Errorf("%s: process %s is of no replica", server, pid)
		return nil
	}
	return w.replicas[at]
}

// comeIn calls a tool of a server at each replica that runs, in each of five ways.
func (w *world) comeIn(server, prefix string) {
	t := w.t
	t.Helper()
	for _, r := range w.replicas {
		if r.p == nil {
			continue
		}
		nonce := func(how string) string { return prefix + " " + how + " " + r.name }
		wantMarked := func(how string, a answer) {
			t.Helper()
			if a.problem() != "" {
				t.Errorf("%s: a call at %s, %s: %s", server, r.name, how, a.problem())
			}
		}
		wantMarked("modern", w.mark(t.Context(), r.url(server), nonce("modern")))
		wantMarked("of a session", w.mustOpen(r, server, nil).mark(t.Context(), r, nonce("session")))
		old, err := w.openOld(t.Context(), r, server, nil)
		if err != nil {
			t.Fatal(err)
		}
		wantMarked("over HTTP+SSE", old.mark(t.Context(), r, nonce("old")))
		old.feed.close()
		w.overSocket(r, server, nonce)
	}
}

// overSocket calls a tool over a WebSocket, as clients of both eras do.
func (w *world) overSocket(r *replica, server string, nonce func(how string) string) {
	t := w.t
	t.Helper()
	ws, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(r.url(server), "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	_ = ws.SetReadDeadline(time.Now().Add(recovery))
	ask := func(id int, method, params string) {
		t.Helper()
		if err := ws.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, id, method, params)); err != nil {
			t.Fatal(err)
		}
		for {
			_, text, err := ws.ReadMessage()
			if err != nil {
				t.Fatalf("%s: %s over a WebSocket at %s: %v", server, method, r.name, err)
			}
			var a struct {
				ID     int
				Result json.RawMessage
			}
			if json.Unmarshal(text, &a) == nil && a.ID == id {
				if a.Result == nil {
					t.Errorf("%s: %s over a WebSocket at %s = %s", server, method, r.name, text)
				}
				return
			}
		}
	}
	call := func(how string) string { return fmt.Sprintf(`"name":"mark","arguments":{"nonce":%q}`, nonce(how)) }
	ask(1, "tools/call", envelope+","+call("modern socket"))
	ask(2, "initialize", `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"replicas","version":"1"}`)
	if err := ws.WriteMessage(websocket.TextMessage, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
		t.Fatal(err)
	}
	ask(3, "tools/call", call("legacy socket"))
}
