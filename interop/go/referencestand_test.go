package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
)

const python2 = "../bin/python-2/bin/python"

// A document is a page of the Python SDK's documentation: its programs, which the
// tests run, and the frames that it shows.
type document struct {
	server   string // one that changes notes
	lowLevel string // the same on the SDK's low level
	client   string // awaits one change
	watcher  string // a function that awaits them all
	frames   []any  // of a listen stream with the id 7
}

// location is the one line of the client that says where the server is.
const location = "from .tutorial001 import mcp\n"

// readDocument returns the page on subscriptions from the folder that
// MCP_REFERENCES names. It has no public place: a test that needs it is left out without.
func readDocument(t *testing.T) *document {
	t.Helper()
	dir := os.Getenv("MCP_REFERENCES")
	text, err := os.ReadFile(filepath.Join(dir, "python-sdk-subscriptions.txt"))
	if dir == "" || errors.Is(err, fs.ErrNotExist) {
		t.Skipf("left out: the folder of MCP_REFERENCES (%q) has no python-sdk-subscriptions.txt", dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	d := &document{
		server:   listing(page, "\nserver.py\n", 1),
		lowLevel: listing(page, "\nserver.py\n", 2),
		client:   listing(page, "\nclient.py\n", 1),
		watcher:  "async def watch(" + listing(page, "\nasync def watch(", 1),
	}
	for _, frame := range strings.Split(page, "\n\n") {
		if !strings.HasPrefix(frame, `{"method"`) {
			continue
		}
		var v map[string]any
		if err := json.Unmarshal([]byte(frame), &v); err != nil {
			t.Fatalf("the document's frame %s: %v", frame, err)
		}
		v["jsonrpc"] = "2.0" // which the document leaves out
		d.frames = append(d.frames, v)
	}
	if len(d.frames) != 2 || strings.Count(d.client, location) != 1 || !strings.Contains(d.server, "MCPServer(") || !strings.Contains(d.lowLevel, "ListenHandler(") {
		t.Fatalf("the document has changed: %+v", d)
	}
	return d
}

// listing returns the nth program that follows a mark, up to the next bullet.
func listing(page, mark string, n int) string {
	parts := strings.SplitN(page, mark, n+2)
	if len(parts) <= n {
		return ""
	}
	program, _, _ := strings.Cut(parts[n], "•")
	return strings.TrimSpace(program) + "\n"
}

// A stand is the document's servers, and an mcpbridge before them and a notebook
// of the legacy era.
type stand struct {
	dir    string // of the programs
	addr   string // of the document's server
	server *process.Process
	bridge string // URL
}

func startStand(t *testing.T, d *document) *stand {
	t.Helper()
	s := &stand{dir: t.TempDir(), addr: freeAddr(t)}
	listen, admin, low := freeAddr(t), freeAddr(t), freeAddr(t)
	s.bridge = "http://" + listen + "/mcp/"
	python, err := filepath.Abs(python2)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`drain: 30s # which leaves a command 2 s to end in: Python takes its time
listen: %s
admin: %s
servers:
  document: {url: "http://%s/mcp"}
  low-level: {url: "http://%s/mcp"}
  stdio: {command: %q, args: [-c, "from server import mcp; mcp.run()"], env: {PYTHONPATH: %q}}
  notebook: {builtin: notebook}
`, listen, admin, s.addr, low, python, s.dir)
	for name, text := range map[string]string{"server.py": d.server, "lowlevel.py": d.lowLevel, "mcpbridge.yaml": config} {
		err = errors.Join(err, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(low)
	s.serve(t)
	t.Cleanup(func() { s.server.Stop(10 * time.Second) }) // of the last one
	run(t, "http://"+low+"/mcp", 0, s.env(), python2, "-c",
		"import uvicorn, lowlevel; uvicorn.run(lowlevel.server.streamable_http_app(), port="+port+")")
	run(t, "http://"+admin+"/readyz", http.StatusOK, nil, bridgeBinary, "serve", "-c", filepath.Join(s.dir, "mcpbridge.yaml"))
	return s
}

func (s *stand) env() []string { return []string{"PYTHONPATH=" + s.dir, "PYTHONDONTWRITEBYTECODE=1"} }

// serve starts the document's server over HTTP.
func (s *stand) serve(t *testing.T) {
	t.Helper()
	_, port, _ := net.SplitHostPort(s.addr)
	var err error
	s.server, err = process.Start("server.py", s.env(), python2, "-c", "from server import mcp; mcp.run('streamable-http', port="+port+")")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), process.StartTime)
	defer cancel()
	if err := s.server.Ready(ctx, "http://"+s.addr+"/mcp", 0); err != nil {
		s.server.Kill()
		t.Fatal(err)
	}
}

// program returns a program of the document, to be run with Python.
func (s *stand) program(ctx context.Context, t *testing.T, text, entry string, args ...string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "client.py"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, python2, append([]string{"-c", entry}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir, "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}
