package day

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/steer"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// logServers are servers on the Python SDKs that log what the tool log is told, without being
// asked for it: one of the legacy era, one of both, and one of the modern era alone. In parallel
// are the calls of clients that have a process each.
var logServers = map[string]struct {
	argv     []string
	parallel string
}{
	"legacy": {[]string{bin("python-1/bin/python"), python("server1.py")}, "10"},
	"both":   {[]string{bin("python-2/bin/python"), python("server2.py")}, "1"},
	"modern": {[]string{bin("python-2/bin/python"), python("server2.py"), "--modern-only"}, "1"},
}

// python returns a program of interop/python.
func python(name string) string { return bin("../python/" + name) }

// TestLogMessages has langchain-mcp-adapters, which opens a session for each call and ends it
// after the result, call a tool that logs: over serve and wrap each call hears its message, as
// it does directly. So does a client that opens no GET stream, as mcp-go by default.
func TestLogMessages(t *testing.T) {
	for name, s := range logServers {
		t.Run("serve/"+name, func(t *testing.T) {
			t.Parallel()
			to := serveCommand(t, t.TempDir(), s.argv, "5m")
			logs(t, to.URL, s.parallel, "10")
			to.Transport, to.Capabilities = "post", json.RawMessage(`{}`)
			logsWithoutGet(t, to)
		})
		t.Run("wrap/"+name, func(t *testing.T) {
			t.Parallel()
			wrap := []string{"/usr/bin/env", "XDG_CACHE_HOME=" + filepath.Join(t.TempDir(), "cache"), bridge, "wrap", "--"}
			logs(t, command(t, append(wrap, s.argv...)), "1", "2")
		})
		if name != "modern" { // this client has no word for it
			t.Run("direct/"+name, func(t *testing.T) {
				t.Parallel()
				logs(t, command(t, s.argv), "1", "2")
			})
		}
	}
}

func command(t *testing.T, argv []string) string {
	text, err := json.Marshal(argv)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// logs makes calls side by side, and then more one after another.
func logs(t *testing.T, server, parallel, then string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), bin("python-langchain/bin/python"), python("langchain_calls.py"),
		server, parallel, then, "log", `{"text": "call {n}"}`, "logged", "log=call {n}").CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, strings.TrimSpace(string(out[:min(len(out), 8000)])))
	}
}

// logsWithoutGet makes three calls, each in a session of its own.
func logsWithoutGet(t *testing.T, to remote.Target) {
	t.Helper()
	c, err := steer.Start(bin("client-mcpgo"))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		for _, step := range []struct {
			method string
			params any
		}{{"initialize", to}, {"tools/call", map[string]any{"name": "log", "arguments": map[string]string{"text": "hello"}}}, {remote.Close, nil}} {
			if _, err := c.Request(t.Context(), step.method, step.params); err != nil {
				t.Errorf("%s: %v", step.method, err)
			}
		}
		if _, heard := c.Messages.Take(time.Minute); !heard {
			t.Error("a client without a GET stream heard no log message")
			break
		}
	}
	if err := c.End(); err != nil {
		t.Error(err)
	}
}
