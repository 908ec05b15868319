package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/ledger"
	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// A world is a legacy server and an mcpbridge in front of it.
type world struct {
	t      testing.TB
	setup  setup
	bridge *process.Process
	own    *process.Process // the server, unless it is mcpbridge's child
	args   []string         // of the server
	ledger string           // file

	listen string // mcpbridge's address for clients
	admin  string // and that for us
	addr   string // the server's /admin, and its /mcp unless stdio

	clients *http.Client // that talk to mcpbridge
	us      *http.Client // for all else
}

// A setup says what kind of world is wanted.
type setup struct {
	stdio  bool
	server string                   // further settings of the server, as in a YAML flow mapping
	before func(base string) string // returns the URL of what stands before the server; nil for nothing
}

func (s setup) String() string {
	if s.stdio {
		return "stdio"
	}
	return "http"
}

// recovery is what anything may take to be in order again.
const recovery = 2 * time.Minute

func newWorld(t testing.TB, s setup) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, setup: s, ledger: filepath.Join(dir, "ledger"), listen: rig.FreeAddr(t), admin: rig.FreeAddr(t), addr: rig.FreeAddr(t),
		clients: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4096, IdleConnTimeout: 5 * time.Second}},
		us:      &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{}}}
	server := fmt.Sprintf("url: %q", "http://"+w.addr+"/mcp")
	flag := "-http="
	if s.stdio {
		flag = "-admin="
	}
	w.args = []string{flag + w.addr, "-ledger=" + w.ledger}
	switch {
	case s.stdio:
		args, err := json.Marshal(w.args)
		if err != nil {
			t.Fatal(err)
		}
		server = fmt.Sprintf("command: %q, args: %s", binaries.Server, args)
	case s.before != nil:
		server = fmt.Sprintf("url: %q", s.before("http://"+w.addr)+"/mcp")
		fallthrough
	default:
		w.startServer()
	}
	t.Cleanup(w.closeServer)
	w.startBridge(server + s.server)
	t.Cleanup(w.close)
	rig.Until(t, recovery, "a first call", func() string {
		if got := w.tool(t.Context(), "mark", map[string]any{"nonce": fmt.Sprint("first ", time.Now().UnixNano())}, ""); got.problem() != "" {
			return got.problem()
		}
		return ""
	})
	return w
}

func (w *world) startServer() {
	w.t.Helper()
	var err error
	if w.own, err = process.Start("legacy-go", nil, append([]string{binaries.Server}, w.args...)...); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), recovery)
	defer cancel()
	if err := w.own.Ready(ctx, "http://"+w.addr+"/admin/subscriptions", http.StatusOK); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) startBridge(server string) {
	w.t.Helper()
	config := fmt.Sprintf("listen: %s\nadmin: %s\nlog: {level: warn}\nservers:\n  legacy: {%s}\n", w.listen, w.admin, server)
	w.bridge = binaries.StartBridge(w.t, config, w.admin)
}

// close ends mcpbridge, which must not be dead, nor need to be killed.
func (w *world) close() {
	w.clients.CloseIdleConnections()
	w.us.CloseIdleConnections()
	if w.t.Failed() {
		w.t.Logf("mcpbridge's log ends:\n%s", w.bridge.Log())
	}
	if err := w.bridge.Stop(time.Minute); err != nil {
		w.t.Error(err)
	}
}

func (w *world) closeServer() {
	if w.own != nil {
		w.own.Kill()
	}
}

// kill ends the server as kill -9 does. It reports false if there was none: a
// child that mcpbridge has yet to start.
func (w *world) kill() bool {
	w.us.CloseIdleConnections()
	if !w.setup.stdio {
		w.own.Kill()
		return true
	}
	var now struct{ PID int }
	res, err := w.us.Get("http://" + w.addr + "/admin/subscriptions")
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return json.NewDecoder(res.Body).Decode(&now) == nil && syscall.Kill(now.PID, syscall.SIGKILL) == nil
}

// entries reads the ledger of all the processes that there were.
func (w *world) entries() []ledger.Entry {
	w.t.Helper()
	return ledger.Read(w.t, w.ledger)
}

// ran counts the calls by their nonces, and how often the server was started
// after the first of them.
func (w *world) ran() (calls map[string]int, restarts int) {
	w.t.Helper()
	calls = make(map[string]int)
	for _, e := range w.entries() {
		switch {
		case e.What == "call":
			calls[e.Nonce]++
		case e.What == "start" && len(calls) > 0:
			restarts++
		}
	}
	return calls, restarts
}

// gauges returns the samples of /metrics, by name with labels.
func (w *world) gauges() map[string]float64 {
	w.t.Helper()
	return rig.Gauges(w.t, w.us, w.admin)
}

const (
	parked     = `mcpbridge_parked_calls{server="legacy"}`
	goroutines = "go_goroutines"
	files      = "process_open_fds"
)

// slack is by how much a gauge may be above what it was: a connection of ours or
// to the server may come and go.
const slack = 6

// wantNoMore waits until gauges are what they were. Connections that lie idle
// take a while to end.
func (w *world) wantNoMore(before map[string]float64, names ...string) {
	w.t.Helper()
	rig.Until(w.t, recovery, "nothing is left behind", func() string {
		w.clients.CloseIdleConnections()
		now := w.gauges()
		for _, name := range names {
			if now[name] > before[name] && (name == parked || now[name] > before[name]+slack) {
				return fmt.Sprintf("%s = %v, and was %v", name, now[name], before[name])
			}
		}
		return ""
	})
	now := w.gauges()
	for _, name := range names {
		w.t.Logf("%s: %v before, %v after", name, before[name], now[name])
	}
}

// quiet returns the gauges once nothing is in flight and idle connections have
// gone.
func (w *world) quiet() map[string]float64 {
	w.t.Helper()
	last, since := w.gauges(), time.Now()
	rig.Until(w.t, recovery, "mcpbridge comes to rest", func() string {
		w.clients.CloseIdleConnections()
		now := w.gauges()
		if now[goroutines] < last[goroutines] || now[files] < last[files] {
			last, since = now, time.Now()
		}
		if time.Since(since) < 5*time.Second {
			return "it does not stand still yet"
		}
		return ""
	})
	return last
}
