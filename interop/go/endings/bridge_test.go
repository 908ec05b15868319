//go:build linux

package endings

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// drain is what serve is configured with.
const drain = time.Second

// A bridge is one mcpbridge, and the client that it has.
type bridge struct {
	t        *testing.T
	dir      string // marks all its processes
	cmd      *exec.Cmd
	in       io.WriteCloser // of wrap
	terminal *os.File
	log      process.Tail
	lines    chan string // on its standard output; closed at the end
	done     chan struct{}

	url, session string // of serve
	http         *http.Client
}

// startBridge runs wrap or serve on a terminal of its own, in front of a server of a
// kind that does not answer mute.
func startBridge(t *testing.T, command, kind, mute string) *bridge {
	t.Helper()
	b := &bridge{t: t, dir: t.TempDir(), lines: make(chan string, 64), done: make(chan struct{}), http: &http.Client{Transport: &http.Transport{}}}
	bin := filepath.Join(b.dir, "mcpbridge") // so that its guard is known, which has no environment
	if err := os.Symlink(binaries.Bridge, bin); err != nil {
		t.Fatal(err)
	}
	args := []string{os.Args[0], "server", filepath.Join(b.dir, "ledger"), kind, mute}
	if command == "wrap" {
		b.cmd = exec.Command(bin, append([]string{"wrap", "--"}, args...)...)
	} else {
		b.cmd = exec.Command(bin, "serve", "--json", "-c", b.config(args))
	}
	b.cmd.Env = append(os.Environ(), "ENDINGS_MARK="+b.dir)
	b.start()
	return b
}

// config writes the configuration of serve, which gives commands a small environment.
func (b *bridge) config(args []string) string {
	text, err := json.Marshal(map[string]any{
		"listen": "127.0.0.1:0", "admin": "off", "drain": drain.String(),
		"servers": map[string]any{"endings": map[string]any{
			"command": args[0], "args": args[1:], "env": map[string]string{"ENDINGS_MARK": b.dir},
		}},
	})
	file := filepath.Join(b.dir, "config.json")
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return file
}

// start starts the process as the leader of a session whose terminal is its standard
// error; a client has its standard input and output.
func (b *bridge) start() {
	ours, theirs, err := openTerminal()
	if err != nil {
		b.t.Fatal(err)
	}
	b.terminal = ours
	b.cmd.Stderr = theirs
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2}
	in, err := b.cmd.StdinPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	out, err := b.cmd.StdoutPipe()
	if err == nil {
		err = b.cmd.Start()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	_ = theirs.Close()
	b.in = in
	go func() { _, _ = io.Copy(&b.log, ours) }() // ends with the terminal
	go b.read(out)                               // ends with the process's output
	b.t.Cleanup(b.close)
}

func (b *bridge) read(out io.Reader) {
	for s := bufio.NewScanner(out); s.Scan(); {
		b.lines <- s.Text()
	}
	close(b.lines)
	_ = b.cmd.Wait() // its state is looked at
	close(b.done)
}

// close leaves nothing behind, whatever came of the cell.
func (b *bridge) close() {
	killLeft(b.dir)
	_ = b.cmd.Process.Kill() // it may have ended
	<-b.done
	_ = b.terminal.Close()
	b.http.CloseIdleConnections()
}

// await waits until a line of the server's ledger begins with what.
func (b *bridge) await(what string) {
	b.t.Helper()
	rig.Until(b.t, time.Minute, what, func() string {
		text, _ := os.ReadFile(filepath.Join(b.dir, "ledger")) // there may be none yet
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, what) {
				return ""
			}
		}
		return fmt.Sprintf("the ledger is %q; mcpbridge says:\n%s", text, b.log.String())
	})
}

// tell has the client send a message, and answered returns what it was answered with.
func (b *bridge) tell(text string) (answered func()) {
	b.t.Helper()
	if b.cmd.Args[1] == "serve" {
		return b.post(text)
	}
	if _, err := fmt.Fprintln(b.in, text); err != nil {
		b.t.Fatal(err)
	}
	return func() { b.next() }
}

// next returns the next line of standard output.
func (b *bridge) next() string {
	b.t.Helper()
	select {
	case line, ok := <-b.lines:
		if ok {
			return line
		}
	case <-time.After(time.Minute):
	}
	b.t.Fatalf("mcpbridge did not answer; it says:\n%s", b.log.String())
	return ""
}

func (b *bridge) post(text string) (answered func()) {
	b.t.Helper()
	if b.url == "" {
		var said struct{ Endpoints []struct{ URL string } }
		var all strings.Builder
		for json.Unmarshal([]byte(all.String()), &said) != nil {
			all.WriteString(b.next() + "\n")
		}
		b.url = said.Endpoints[0].URL
	}
	req, err := http.NewRequest(http.MethodPost, b.url, strings.NewReader(text))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if b.session != "" {
		req.Header.Set("Mcp-Session-Id", b.session)
	}
	came := make(chan string, 1)
	go func() { // ends with the request, which ends with mcpbridge
		defer close(came)
		res, err := b.http.Do(req)
		if err != nil {
			return
		}
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, res.Body) // as much as comes
		came <- res.Header.Get("Mcp-Session-Id")
	}()
	return func() {
		if id := <-came; id != "" {
			b.session = id
		}
	}
}
