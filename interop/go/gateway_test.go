package interop

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
)

const revision = "2026-07-28"

// What interop/build made and fetched.
const (
	bridgeBinary    = "../bin/mcpbridge"
	everythingGo    = "../bin/everything-v1.6.1"
	legacy2026      = "../bin/legacy-2026"
	fastmcpPython   = "../bin/python-fastmcp/bin/python"
	modernGo        = "../bin/modern-go"
	nodeBinary      = "../node/node_modules/.bin/node"
	everythingNode  = "../node/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
	listenNode      = "../node/listen.mjs"
	roundNode       = "../node/round.mjs"
	driveNode       = "../node/drive.mjs"
	modernNode      = "../node/modern-server.mjs"
	fastmcpServer   = "../python/fastmcp_server.py"
	tasksNode       = "../node/tasks-server.mjs"
	skillbookNode   = "../node/skillbook.mjs"
	filesNode       = "../node/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
	tasksRust       = "../bin/tasks-rmcp" // where there is cargo
	conformanceNode = "../node/node_modules/@modelcontextprotocol/conformance/dist/index.js"
)

// world is everything that runs: the servers behind HTTP, and one mcpbridge in
// front of them and of the servers behind stdio.
type world struct {
	urls    map[string]string // of the servers behind HTTP, by name
	servers []*process.Process
	bridge  *bridge
}

var w = world{urls: make(map[string]string)}

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == scribeFlag {
		if err := scribe(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, "scribe:", err)
			os.Exit(1)
		}
		return
	}
	code, err := runWorld(m)
	if err != nil {
		fmt.Println("FAIL:", err)
		code = 1
	}
	os.Exit(code)
}

func runWorld(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "mcpbridge-interop-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	defer func() { err = errors.Join(err, w.stop()) }()
	ctx, cancel := context.WithTimeout(context.Background(), 3*process.StartTime) // of many, one after another
	defer cancel()
	if err := w.startServers(ctx); err != nil {
		return 1, err
	}
	if w.bridge, err = startBridge(ctx, dir, w.urls); err != nil {
		return 1, err
	}
	defer time.AfterFunc(testTime, w.abort).Stop()
	return m.Run(), nil
}

// testTime bounds the whole run. The go command's own bound would end this
// process and leave the others.
const testTime = 38 * time.Minute

func (w *world) abort() {
	pprof.Lookup("goroutine").WriteTo(os.Stdout, 1)
	fmt.Printf("FAIL: not done after %v: %v\n", testTime, w.stop())
	os.Exit(1)
}

func (w *world) stop() error {
	var errs []error
	if w.bridge != nil {
		errs = append(errs, w.bridge.stop())
	}
	for _, p := range w.servers {
		errs = append(errs, p.Stop(time.Minute))
	}
	return errors.Join(errs...)
}

// startServers starts the servers that are reached over HTTP.
func (w *world) startServers(ctx context.Context) error {
	for _, s := range []struct {
		name string
		argv func(addr, port string) (env, argv []string)
		path string
	}{
		{"everything-go", func(addr, _ string) (env, argv []string) {
			return nil, []string{everythingGo, "-http", addr}
		}, ""},
		{"legacy-2026", func(addr, _ string) (env, argv []string) {
			return nil, []string{legacy2026, "-http", addr}
		}, ""},
		{"modern-go", func(addr, _ string) (env, argv []string) {
			return nil, []string{modernGo, "-http", addr}
		}, ""},
		{"modern-typescript", func(addr, _ string) (env, argv []string) {
			return nil, []string{nodeBinary, modernNode, "--http", addr}
		}, ""},
		{"everything-http", func(_, port string) (env, argv []string) {
			return []string{"PORT=" + port}, []string{nodeBinary, everythingNode, "streamableHttp"}
		}, "/mcp"},
		{"fastmcp", func(_, port string) (env, argv []string) {
			return nil, []string{fastmcpPython, fastmcpServer, "--transport", "http", "--port", port}
		}, "/mcp"},
		{"tasks-2025", func(addr, _ string) (env, argv []string) {
			return nil, []string{nodeBinary, tasksNode, "--http", addr}
		}, "/mcp"},
		{"skills-modern", func(addr, _ string) (env, argv []string) {
			return nil, []string{nodeBinary, modernNode, "--http", addr, "./skillbook.mjs"}
		}, ""},
		{"skills-legacy", func(addr, _ string) (env, argv []string) {
			return nil, []string{nodeBinary, skillbookNode, addr}
		}, ""},
	} {
		addr, err := process.FreeAddr()
		if err != nil {
			return err
		}
		_, port, _ := net.SplitHostPort(addr)
		env, argv := s.argv(addr, port)
		p, err := process.Start(s.name, env, argv...)
		if err != nil {
			return err
		}
		w.servers = append(w.servers, p)
		w.urls[s.name] = "http://" + addr + s.path
		if err := p.Ready(ctx, w.urls[s.name], 0); err != nil {
			return err
		}
	}
	return nil
}

// bridge is an mcpbridge that serves all the servers.
type bridge struct {
	dir    string // the folder that the files server shows; marks the children's command lines
	listen string // the address
	*process.Process
}

// startBridge starts mcpbridge and returns when it says that it is ready. dir
// is for its configuration and the files server's files.
func startBridge(ctx context.Context, dir string, urls map[string]string) (*bridge, error) {
	listen, err := process.FreeAddr()
	if err != nil {
		return nil, err
	}
	admin, err := process.FreeAddr()
	if err != nil {
		return nil, err
	}
	b := &bridge{dir: dir, listen: listen}
	config := filepath.Join(dir, "mcpbridge.yaml")
	if err := errors.Join(testFiles(dir), b.writeConfig(config, admin, urls)); err != nil {
		return nil, err
	}
	if b.Process, err = process.Start("mcpbridge", nil, bridgeBinary, "serve", "-c", config); err != nil {
		return nil, err
	}
	if err := b.Ready(ctx, "http://"+admin+"/readyz", 200); err != nil {
		return nil, errors.Join(err, b.stop())
	}
	return b, nil
}

// writeConfig writes the one configuration that has all servers.
func (b *bridge) writeConfig(file, admin string, urls map[string]string) error {
	node, err := absolute(nodeBinary, everythingNode, filesNode)
	if err != nil {
		return err
	}
	text := fmt.Sprintf(`listen: %s
admin: %s
servers:
  notebook-go: {builtin: notebook}
  notebook-typescript: {builtin: notebook}
  everything-go: {url: %q}
  legacy-2026: {url: %q}
  modern-go: {url: %q}
  modern-typescript: {url: %q}
  everything-http: {url: %q}
  fastmcp: {url: %q}
  tasks-2025: {url: %q}
  skills-modern: {url: %q}
  skills-legacy: {url: %q}
  everything-stdio: {command: %q, args: [%q, stdio, %q]}
  files: {command: %q, args: [%q, %q]}
`, b.listen, admin, urls["everything-go"], urls["legacy-2026"], urls["modern-go"], urls["modern-typescript"],
		urls["everything-http"], urls["fastmcp"], urls["tasks-2025"], urls["skills-modern"], urls["skills-legacy"], node[0], node[1], b.dir, node[0], node[2], b.dir)
	if _, err := os.Stat(tasksRust); err == nil {
		abs, err := absolute(tasksRust)
		if err != nil {
			return err
		}
		text += fmt.Sprintf("  tasks-rmcp: {command: %q}\n", abs[0])
	}
	return os.WriteFile(file, []byte(text), 0o600)
}

// endpoint is where the bridge serves a server.
func (b *bridge) endpoint(server string) string { return "http://" + b.listen + "/mcp/" + server }

// stop ends the bridge, and looks for children it left.
func (b *bridge) stop() error {
	err := b.Process.Stop(time.Minute)
	left, err2 := process.WithMark(b.dir)
	if len(left) > 0 {
		err2 = fmt.Errorf("mcpbridge left children behind: %q", left)
	}
	return errors.Join(err, err2)
}

func absolute(paths ...string) ([]string, error) {
	var out []string
	for _, p := range paths {
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, err
		}
		out = append(out, abs)
	}
	return out, nil
}

// testFiles is what the files server has to show.
func testFiles(dir string) error {
	dot, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")
	return errors.Join(err,
		os.WriteFile(filepath.Join(dir, "dot.png"), dot, 0o600),
		os.WriteFile(filepath.Join(dir, "raw.bin"), []byte{0, 1, 2, 255}, 0o600),
		os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("one\ntwo\n"), 0o600))
}
