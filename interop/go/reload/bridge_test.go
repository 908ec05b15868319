//go:build linux

package reload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
)

// A bridge is one mcpbridge with a configuration that changes.
type bridge struct {
	t           *testing.T
	file        string
	cmd         *exec.Cmd
	log         process.Tail
	url, admin  string
	fixed       []string // URLs of the servers that stay
	http        *http.Client
	alternative int // of the server that changes
}

func startBridge(t *testing.T, fixed []string) *bridge {
	t.Helper()
	b := &bridge{t: t, file: filepath.Join(t.TempDir(), "config.yaml"), fixed: fixed, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	b.write("")
	b.cmd = exec.Command(binaries.Bridge, "serve", b.file, "--json", "--watch=false")
	b.cmd.Stderr = &b.log
	out, err := b.cmd.StdoutPipe()
	if err == nil {
		err = b.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.http.CloseIdleConnections()
		_ = b.cmd.Process.Signal(os.Interrupt)
		if err := b.cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("serve ended with %v; the end of its log:\n%s", err, b.log.String())
		}
	})
	var a struct {
		Admin     string
		Endpoints []struct{ URL string }
	}
	if err := json.NewDecoder(out).Decode(&a); err != nil {
		t.Fatalf("serve printed no endpoints: %v\n%s", err, b.log.String())
	}
	b.admin, b.url = a.Admin, strings.TrimSuffix(a.Endpoints[0].URL, "/s0")
	return b
}

// write writes the configuration, in which the last server differs each time. more follows.
func (b *bridge) write(more string) {
	b.t.Helper()
	b.alternative++
	text := "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nlog: {level: warn}\nservers:\n"
	for i, url := range b.fixed {
		text += fmt.Sprintf("  s%d: {url: %q}\n", i, url)
	}
	text += fmt.Sprintf("  changing:\n    command: %q\n    args: [server]\n    env: {ALTERNATIVE: %q}\n", os.Args[0], fmt.Sprint(b.alternative))
	if err := os.WriteFile(b.file, []byte(text+more), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// An outcome is what POST /reload answers.
type outcome struct {
	OK      bool     `json:"ok"`
	Error   string   `json:"error"`
	Line    int      `json:"line"`
	Added   []string `json:"added"`
	Changed []string `json:"changed"`
	Removed []string `json:"removed"`
	Renewed []string `json:"renewed"`
}

func (b *bridge) reload() (o outcome) {
	b.t.Helper()
	resp, err := b.http.Post(b.admin+"/reload", "", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&o); err != nil || o.OK != (resp.StatusCode == 200) {
		b.t.Fatalf("POST /reload = %d, %+v, %v", resp.StatusCode, o, err)
	}
	return o
}

// request returns a request of a modern client.
func (b *bridge) request(server, method, name, params string) *http.Request {
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequest("POST", b.url+"/"+server, bytes.NewReader([]byte(body)))
	if err != nil {
		b.t.Fatal(err)
	}
	for key, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name} {
		if value != "" {
			req.Header.Set(key, value)
		}
	}
	return req
}

// call calls the tool of a server.
func (b *bridge) call(server, text string) error {
	resp, err := b.http.Do(b.request(server, "tools/call", "echo", `"name":"echo","arguments":{"text":"`+text+`"}`))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || !strings.Contains(string(answer), `"text":"`+text+`"`) {
		return fmt.Errorf("%s: %d %s, %v", server, resp.StatusCode, answer, err)
	}
	return nil
}

// gauge returns a counter of the process.
func (b *bridge) gauge(name string) int {
	b.t.Helper()
	resp, err := b.http.Get(b.admin + "/metrics")
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			n, err := strconv.ParseFloat(rest, 64)
			if err != nil {
				b.t.Fatal(err)
			}
			return int(n)
		}
	}
	b.t.Fatalf("no counter %s", name)
	return 0
}

// children returns how many servers run as processes of mcpbridge.
func (b *bridge) children() (n int) {
	entries, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, entry := range entries {
		if text, err := os.ReadFile(entry); err == nil && string(text) == os.Args[0]+"\x00server\x00" {
			n++
		}
	}
	return n
}

// eventually waits until ok.
func (b *bridge) eventually(what string, ok func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatal("it did not happen that", what)
		}
	}
}
