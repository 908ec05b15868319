package engines

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pinner has one server, whose tools are pinned at an engine.
type pinner struct {
	t              *testing.T
	bridge, engine string
	behind         string // URL of the server
}

// config writes a configuration of one replica, with a state_dir of its own.
func (p *pinner) config(port int) string {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), "config.yaml")
	text := fmt.Sprintf(`
listen: 127.0.0.1:%d
admin: "off"
state_dir: %q
replicas: {engine: %q, prefix: test, keys: [%q], peer: "127.0.0.1:%d"}
servers: {book: {url: %q, pin: refuse}}
`, port, p.t.TempDir(), p.engine, peerKey, freePort(p.t), p.behind)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// serve starts a replica, and returns what kills it.
func (p *pinner) serve(config string) (kill func()) {
	p.t.Helper()
	cmd := exec.Command(p.bridge, "serve", config)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended := false
	kill = func() {
		if ended {
			return
		}
		ended = true
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	p.t.Cleanup(func() {
		if kill(); p.t.Failed() {
			p.t.Logf("%s: %s", config, log.String())
		}
	})
	return kill
}

// run runs a command of mcpbridge.
func (p *pinner) run(args ...string) (out string, code int) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), p.bridge, args...)
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		p.t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// lists waits until a server lists tools, with or without one that is called search.
func (p *pinner) lists(url string, search bool) {
	p.t.Helper()
	var out string
	eventually(p.t, patience, fmt.Sprintf("search listed: %v", search), func() bool {
		var code int
		out, code = p.run("call", url)
		return code == 0 && strings.Contains(out, "edit_note") && strings.Contains(out, "\nsearch ") == search
	})
}

// newPinner starts the server that is behind the replicas. It has two tools until enable_search is
// called, and then search, too.
func newPinner(t *testing.T, engine string) *pinner {
	t.Helper()
	p := &pinner{t: t, bridge: bridge(t), engine: engine}
	port := freePort(t)
	behind := filepath.Join(t.TempDir(), "behind.yaml")
	if err := os.WriteFile(behind, []byte(fmt.Sprintf("listen: 127.0.0.1:%d\nadmin: \"off\"\nservers: {book: {builtin: notebook}}\n", port)), 0o600); err != nil {
		t.Fatal(err)
	}
	p.behind = fmt.Sprintf("http://127.0.0.1:%d/mcp/book", port)
	p.serve(behind)
	p.lists(p.behind, false)
	return p
}

// change has the server have a tool that nobody has accepted.
func (p *pinner) change() {
	p.t.Helper()
	if out, code := p.run("call", p.behind, "enable_search"); code != 0 {
		p.t.Fatalf("enable_search = %d, %s", code, out)
	}
	p.lists(p.behind, true)
}

// replica starts a replica with a folder of its own, which is empty, and returns its URL.
func (p *pinner) replica() (url string, kill func()) {
	p.t.Helper()
	at := freePort(p.t)
	return fmt.Sprintf("http://127.0.0.1:%d/mcp/book", at), p.serve(p.config(at))
}

// refuses has a replica list and call what was accepted, and nothing else.
func (p *pinner) refuses(url string) {
	p.t.Helper()
	p.lists(url, false)
	if out, code := p.run("call", url, "edit_note", "name=a", "text=b"); code != 0 {
		p.t.Errorf("edit_note = %d, %s", code, out)
	}
	if got := p.search(url); !strings.Contains(got, "was not accepted") {
		p.t.Errorf("search = %s, want that it was not accepted", got)
	}
}

// search calls search, which mcpbridge call would not where it is not listed.
func (p *pinner) search(url string) string {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"text":"b"},
		"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"search"}}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(body)
}

// accept accepts what the server has now.
func (p *pinner) accept(tools int) {
	p.t.Helper()
	if out, code := p.run("pin", "book", "-c", p.config(0), "--accept"); code != 0 || !strings.Contains(out, fmt.Sprint("tools accepted: ", tools)) {
		p.t.Fatalf("pin --accept = %d, %s, want %d tools", code, out, tools)
	}
}

// pinned has what a person accepted at the command line outlive replicas, their folders, and the
// engine's process, which has a disk.
func pinned(t *testing.T, engine string, restart func()) {
	p := newPinner(t, engine)
	p.accept(2)
	p.change()
	for range 2 { // the second replica begins after the engine was ended
		url, kill := p.replica()
		p.refuses(url)
		kill()
		restart()
	}
	url, _ := p.replica()
	p.lists(url, false)
	if out, code := p.run("pin", "book", "-c", p.config(0)); code != 1 || !strings.Contains(out, "new      search") {
		t.Errorf("pin = %d, %s, want that search is new", code, out)
	}
	p.accept(3)
	p.lists(url, true)
	if got := p.search(url); !strings.Contains(got, `"result":`) {
		t.Errorf("search = %s, although it was accepted", got)
	}
}

// threePinned has what one of three replicas saw first hold at the others after its death, after a
// restart of the engine below them, and at one that takes the place of all three.
func threePinned(t *testing.T, engine string, restart func()) {
	p := newPinner(t, engine)
	var urls []string
	var kills []func()
	for range 3 {
		url, kill := p.replica()
		urls, kills = append(urls, url), append(kills, kill)
	}
	p.lists(urls[0], false) // the first list is accepted, by the first replica
	kills[0]()
	p.change()
	p.refuses(urls[1])
	restart()
	p.refuses(urls[1])
	p.refuses(urls[2]) // it is asked for the first time
	kills[1]()
	kills[2]()
	url, _ := p.replica()
	p.refuses(url)
	p.accept(3)
	p.lists(url, true)
	if got := p.search(url); !strings.Contains(got, `"result":`) {
		t.Errorf("search = %s, although it was accepted", got)
	}
}

// atNATS runs a test of pins with a nats-server that is ended, and begins again with its disk.
func atNATS(t *testing.T, test func(t *testing.T, engine string, restart func())) {
	t.Parallel()
	w := &natsWorld{t: t, port: freePort(t), dir: t.TempDir()}
	w.Start(false)
	t.Cleanup(w.Stop)
	test(t, fmt.Sprintf("nats://replica:open%%20sesame@127.0.0.1:%d", w.port), func() {
		w.Stop()
		w.Start(false)
	})
}

// atRedis is atNATS with a redis-server that is killed.
func atRedis(t *testing.T, test func(t *testing.T, engine string, restart func())) {
	t.Parallel()
	r := newRedis(t)
	r.start(false)
	test(t, "redis://"+user+r.addr()+"/2", func() {
		r.kill()
		r.start(false)
	})
}

func TestPinsAtNATS(t *testing.T)  { atNATS(t, pinned) }
func TestPinsAtRedis(t *testing.T) { atRedis(t, pinned) }

func TestPinsOfThreeReplicasAtNATS(t *testing.T)  { atNATS(t, threePinned) }
func TestPinsOfThreeReplicasAtRedis(t *testing.T) { atRedis(t, threePinned) }
