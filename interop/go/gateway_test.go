package interop

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const revision = "2026-07-28"

// What interop/build made and fetched.
const (
	bridgeBinary    = "../bin/mcpbridge"
	everythingGo    = "../bin/everything-v1.6.1"
	nodeBinary      = "../node/node_modules/.bin/node"
	everythingNode  = "../node/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
	roundNode       = "../node/round.mjs"
	filesNode       = "../node/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
	conformanceNode = "../node/node_modules/@modelcontextprotocol/conformance/dist/index.js"
)

// world is everything that runs: the servers behind HTTP, and one mcpbridge in
// front of them and of the servers behind stdio.
type world struct {
	dir     string // the folder that the files server shows; marks the children's command lines
	listen  string // mcpbridge's address
	urls    map[string]string
	servers []*process
	bridge  *process
}

var w = world{urls: make(map[string]string)}

func TestMain(m *testing.M) {
	code, err := runWorld(m)
	if err != nil {
		fmt.Println("FAIL:", err)
		code = 1
	}
	os.Exit(code)
}

func runWorld(m *testing.M) (code int, err error) {
	if w.dir, err = os.MkdirTemp("", "mcpbridge-interop-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(w.dir)
	defer func() { err = errors.Join(err, w.stop()) }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := w.start(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func (w *world) start(ctx context.Context) error {
	if err := errors.Join(testFiles(w.dir), w.startServers(ctx)); err != nil {
		return err
	}
	config, admin, err := w.config()
	if err != nil {
		return err
	}
	if w.bridge, err = start("mcpbridge", nil, bridgeBinary, "serve", "-c", config); err != nil {
		return err
	}
	return w.bridge.ready(ctx, "http://"+admin+"/readyz", 200)
}

// stop ends mcpbridge, then the servers, and looks for what is left of them.
func (w *world) stop() error {
	var errs []error
	if w.bridge != nil {
		errs = append(errs, w.bridge.stop(20*time.Second))
		left, err := withMark(w.dir)
		if errs = append(errs, err); len(left) > 0 {
			errs = append(errs, fmt.Errorf("mcpbridge left children behind: %q", left))
		}
	}
	for _, p := range w.servers {
		errs = append(errs, p.stop(10*time.Second))
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
		{"everything-http", func(_, port string) (env, argv []string) {
			return []string{"PORT=" + port}, []string{nodeBinary, everythingNode, "streamableHttp"}
		}, "/mcp"},
	} {
		addr, err := freeAddr()
		if err != nil {
			return err
		}
		_, port, _ := net.SplitHostPort(addr)
		env, argv := s.argv(addr, port)
		p, err := start(s.name, env, argv...)
		if err != nil {
			return err
		}
		w.servers = append(w.servers, p)
		w.urls[s.name] = "http://" + addr + s.path
		if err := p.ready(ctx, w.urls[s.name], 0); err != nil {
			return err
		}
	}
	return nil
}

// config writes the one configuration that has all servers, and returns its
// file and the admin address.
func (w *world) config() (file, admin string, err error) {
	if w.listen, err = freeAddr(); err != nil {
		return "", "", err
	}
	if admin, err = freeAddr(); err != nil {
		return "", "", err
	}
	node, err := absolute(nodeBinary, everythingNode, filesNode)
	if err != nil {
		return "", "", err
	}
	text := fmt.Sprintf(`listen: %s
admin: %s
servers:
  notebook: {builtin: notebook}
  everything-go: {url: %q}
  everything-http: {url: %q}
  everything-stdio: {command: %q, args: [%q, stdio, %q]}
  files: {command: %q, args: [%q, %q]}
`, w.listen, admin, w.urls["everything-go"], w.urls["everything-http"], node[0], node[1], w.dir, node[0], node[2], w.dir)
	file = filepath.Join(w.dir, "mcpbridge.yaml")
	return file, admin, os.WriteFile(file, []byte(text), 0o600)
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

// endpoint is where mcpbridge serves a server.
func (w *world) endpoint(server string) string { return "http://" + w.listen + "/mcp/" + server }

// testFiles is what the files server has to show.
func testFiles(dir string) error {
	dot, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")
	return errors.Join(err,
		os.WriteFile(filepath.Join(dir, "dot.png"), dot, 0o600),
		os.WriteFile(filepath.Join(dir, "raw.bin"), []byte{0, 1, 2, 255}, 0o600),
		os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("one\ntwo\n"), 0o600))
}
