package engines

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
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
	eventually(p.t, time.Minute, fmt.Sprintf("search listed: %v", search), func() bool {
		var code int
		out, code = p.run("call", url)
		return code == 0 && strings.Contains(out, "edit_note") && strings.Contains(out, "\nsearch ") == search
	})
}

// pinned has what a person accepted at the command line outlive replicas, their folders, and the
// engine's process, if it has a disk.
func pinned(t *testing.T, engine string, restart func()) {
	p := &pinner{t: t, bridge: bridge(t), engine: engine}
	port := freePort(t)
	behind := filepath.Join(t.TempDir(), "behind.yaml")
	if err := os.WriteFile(behind, []byte(fmt.Sprintf("listen: 127.0.0.1:%d\nadmin: \"off\"\nservers: {book: {builtin: notebook}}\n", port)), 0o600); err != nil {
		t.Fatal(err)
	}
	p.behind = fmt.Sprintf("http://127.0.0.1:%d/mcp/book", port)
	p.serve(behind)
	p.lists(p.behind, false)
	if out, code := p.run("pin", "book", "-c", p.config(0), "--accept"); code != 0 || !strings.Contains(out, "tools accepted: 2") {
		t.Fatalf("pin --accept = %d, %s", code, out)
	}
	if out, code := p.run("call", p.behind, "enable_search"); code != 0 {
		t.Fatalf("enable_search = %d, %s", code, out)
	}
	p.lists(p.behind, true)
	for range 2 { // the second replica begins without any folder, after the engine was ended
		at := freePort(t)
		url := fmt.Sprintf("http://127.0.0.1:%d/mcp/book", at)
		kill := p.serve(p.config(at))
		p.lists(url, false)
		if out, code := p.run("call", url, "edit_note", "name=a", "text=b"); code != 0 {
			t.Errorf("edit_note = %d, %s", code, out)
		}
		kill()
		restart()
	}
	at := freePort(t)
	p.serve(p.config(at))
	p.lists(fmt.Sprintf("http://127.0.0.1:%d/mcp/book", at), false)
	if out, code := p.run("pin", "book", "-c", p.config(0)); code != 1 || !strings.Contains(out, "new      search") {
		t.Errorf("pin = %d, %s, want that search is new", code, out)
	}
	if out, code := p.run("pin", "book", "-c", p.config(0), "--accept"); code != 0 || !strings.Contains(out, "tools accepted: 3") {
		t.Errorf("pin --accept = %d, %s", code, out)
	}
	p.lists(fmt.Sprintf("http://127.0.0.1:%d/mcp/book", at), true)
}

// NATS is ended, and begins again with its disk.
func TestPinsAtNATS(t *testing.T) {
	t.Parallel()
	w := &natsWorld{t: t, port: freePort(t), dir: t.TempDir()}
	w.Start(false)
	t.Cleanup(w.Stop)
	pinned(t, fmt.Sprintf("nats://replica:open%%20sesame@127.0.0.1:%d", w.port), func() {
		w.Stop()
		w.Start(false)
	})
}

func TestPinsAtRedis(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	r.start(false)
	pinned(t, "redis://"+user+r.addr()+"/2", func() {})
}
