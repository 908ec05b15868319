package deviations

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// programs has the mcpbridge that the tests start.
var programs rig.Binaries

func TestMain(m *testing.M) {
	rig.Parallel(len(all) + 2) // they wait for servers most of the time
	os.Exit(rig.Main(m, "", &programs))
}

// A published is a server as others made it.
type published struct {
	name  string
	start func(addr, port string) (env, argv []string)
	path  string
	place // without its URL

	pipe func() []string // the command that serves pipes; nil if another entry has it
	slow bool            // to start
}

// peer returns the absolute path of a file of interop/.
func peer(path string) string {
	abs, err := filepath.Abs("../../" + path)
	if err != nil {
		panic(err) // there is no working directory
	}
	return abs
}

func node(argv ...string) []string {
	return append([]string{peer("node/node_modules/.bin/node"), peer("node/" + argv[0])}, argv[1:]...)
}

func python(set, program, port string) []string {
	return []string{peer("bin/python-" + set + "/bin/python"), peer("python/" + program), "--transport", "http", "--port", port}
}

func pythonPipe(set, program string) []string {
	return []string{peer("bin/python-" + set + "/bin/python"), peer("python/" + program)}
}

// What the conformance suite, and the memos of the servers on Python, name.
var (
	conformance = place{tool: "test_simple_text", arguments: "{}", uri: "test://static-text"}
	memos       = place{tool: "echo", arguments: `{"text":"hi"}`, uri: "memo://today"}
)

// all are the servers that deviations are played against. The one on TypeScript 2.4.0 and those
// on Python 2.3.0 and fastmcp serve both eras, and so does that on go-sdk without sessions.
var all = []published{
	{name: "typescript-1.32.2", start: func(_, port string) (env, argv []string) {
		return []string{"PORT=" + port}, node("node_modules/@modelcontextprotocol/server-everything/dist/index.js", "streamableHttp")
	}, path: "/mcp", place: place{tool: "echo", arguments: `{"message":"hi"}`, uri: "demo://resource/static/document/features.md"},
		pipe: func() []string {
			return node("node_modules/@modelcontextprotocol/server-everything/dist/index.js", "stdio")
		}},
	{name: "typescript-2.4.0", start: func(addr, _ string) (env, argv []string) {
		return nil, node("modern-server.mjs", "--http", addr, "--both")
	}, path: "/", place: conformance, pipe: func() []string { return node("modern-server.mjs") }},
	{name: "python-1.30.0", start: func(_, port string) (env, argv []string) { return nil, python("1", "server1.py", port) }, path: "/mcp", place: memos,
		pipe: func() []string { return pythonPipe("1", "server1.py") }, slow: true},
	{name: "python-2.3.0", start: func(_, port string) (env, argv []string) { return nil, python("2", "server2.py", port) }, path: "/mcp", place: memos,
		pipe: func() []string { return pythonPipe("2", "server2.py") }, slow: true},
	{name: "go-sdk-1.8.0", start: func(addr, _ string) (env, argv []string) {
		return nil, []string{peer("bin/everything-v1.8.0"), "-http", addr}
	}, path: "/", place: conformance, pipe: func() []string { return []string{peer("bin/everything-v1.8.0")} }},
	{name: "go-sdk-1.8.0-sessions", start: func(addr, _ string) (env, argv []string) {
		return nil, []string{peer("bin/everything-v1.8.0"), "-http", addr, "-stateless=false"}
	}, path: "/", place: conformance},
	{name: "fastmcp-4.1.0", start: func(_, port string) (env, argv []string) { return nil, python("fastmcp", "fastmcp_server.py", port) }, path: "/mcp",
		place: place{tool: "greet", arguments: `{"name":"hi"}`, uri: "memo://none"},
		pipe:  func() []string { return pythonPipe("fastmcp", "fastmcp_server.py") }, slow: true},
}

// run starts the server, and returns where it is.
func (s published) run(t *testing.T) place {
	t.Helper()
	addr := rig.FreeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	env, argv := s.start(addr, port)
	p, err := process.Start(s.name, env, argv...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill) // some wait for streams that clients have left
	ctx, cancel := context.WithTimeout(t.Context(), process.StartTime)
	defer cancel()
	at := s.place
	at.url = "http://" + addr + s.path
	if err := p.Ready(ctx, at.url, 0); err != nil {
		t.Fatal(err)
	}
	return at
}

// serve starts mcpbridge before servers, each of them a line of the configuration, and returns
// what its endpoints begin with, and its admin address.
func serve(t *testing.T, lines string) (endpoints, admin string) {
	t.Helper()
	listen, admin := rig.FreeAddr(t), rig.FreeAddr(t)
	p := programs.StartBridge(t, fmt.Sprintf("listen: %s\nadmin: %s\n%s", listen, admin, lines), admin)
	t.Cleanup(func() {
		if err := p.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	return "http://" + listen + "/mcp/", admin
}

// newClient returns a client that adds nothing to what it sends.
func newClient(t *testing.T) *http.Client {
	c := &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 4}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}
