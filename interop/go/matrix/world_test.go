package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/record"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// A world is everything that runs but the clients: each server behind each of its
// backs, and one mcpbridge before them all. A server behind stdio is started by
// mcpbridge.
type world struct {
	table  *Table
	dir    string   // of the servers' files; marks the command lines of what they start
	words  []string // what is filled in, in pairs
	bridge *process.Process
	listen string // the address of mcpbridge
	admin  string // its admin address

	servers []*process.Process
	spots   map[spot]served
	fronts  map[spot]*record.Recorder // between clients and mcpbridge, for HTTP; set before the first cell
	backs   map[spot]*record.Recorder // between mcpbridge and servers over HTTP; as fronts

	turns map[spot]*sync.Mutex // clients take turns on a server: some of them share what they start
	slots chan struct{}        // holds a token for each cell under way
}

// A spot is one server behind one back; it has a name in mcpbridge's config.
type spot struct{ server, back string }

func (s spot) String() string { return s.server + "-" + s.back }

// served is what mcpbridge needs to know of a spot: a URL or a command.
type served struct {
	URL     string            `json:"url,omitempty"`
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Linger  string            `json:"linger,omitempty"`
	// Timeouts are long: the machine may be busy.
	Timeouts map[string]string `json:"timeouts"`
}

var patience = map[string]string{"connect": "2m"}

// newWorld starts everything in dir. It returns a world to stop even if that went
// wrong.
func newWorld(ctx context.Context, t *Table, dir string) (*world, error) {
	w := &world{table: t, dir: dir, spots: make(map[spot]served), fronts: make(map[spot]*record.Recorder), backs: make(map[spot]*record.Recorder), turns: make(map[spot]*sync.Mutex), slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
	for name, path := range map[string]string{"bin": "../../bin", "node": "../../node/node_modules/.bin/node", "npm": "../../node/node_modules", "interop": "../.."} {
		abs, err := filepath.Abs(path)
		if err != nil {
			return w, err
		}
		w.words = append(w.words, "{"+name+"}", abs)
	}
	if err := w.startServers(ctx); err != nil {
		return w, err
	}
	if err := w.startBridge(ctx); err != nil {
		return w, err
	}
	return w, w.recordFronts()
}

// startServers starts the servers that are reached over the network, all at once,
// and waits for them.
func (w *world) startServers(ctx context.Context) error {
	ready := make(map[string]*process.Process)
	for _, name := range w.table.servers() {
		s := w.table.Servers[name]
		for _, back := range s.backs() {
			addr, err := w.prepare(spot{name, back}, s)
			if err != nil {
				return err
			}
			if back == "stdio" {
				continue
			}
			at := w.spots[spot{name, back}]
			p, err := process.Start(name+"-"+back, environ(at.Env), append([]string{at.Command}, at.Args...)...)
			if err != nil {
				return err
			}
			w.servers = append(w.servers, p)
			ready["http://"+addr+"/"] = p
			base := "ws://" + addr
			if back != "ws" {
				if base, err = w.recordBack(spot{name, back}, addr); err != nil {
					return err
				}
			}
			w.spots[spot{name, back}] = served{URL: base + s.Backs[back].Path, Type: back, Linger: s.Backs[back].Linger, Timeouts: patience}
		}
	}
	for url, p := range ready {
		if err := p.Ready(ctx, url, 0); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes the command of a spot, with an address for it, and its folder.
func (w *world) prepare(at spot, s *Server) (addr string, err error) {
	addr, err = process.FreeAddr()
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	dir := w.folder(at)
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("one\ntwo\n"), 0o600)); err != nil {
		return "", err
	}
	w.turns[at] = new(sync.Mutex)
	words := append(slices.Clone(w.words), "{addr}", addr, "{port}", port, "{dir}", dir)
	pipe := strings.NewReplacer(words...).Replace(strings.Join(s.Backs["stdio"].Argv, " "))
	r := strings.NewReplacer(append(words, "{stdio}", pipe)...)
	made := served{Env: make(map[string]string), Timeouts: patience}
	for i, arg := range s.Backs[at.back].Argv {
		if i == 0 {
			made.Command = r.Replace(arg)
			continue
		}
		made.Args = append(made.Args, r.Replace(arg))
	}
	for k, v := range s.Backs[at.back].Env {
		made.Env[k] = r.Replace(v)
	}
	w.spots[at] = made
	return addr, nil
}

func (w *world) folder(at spot) string { return filepath.Join(w.dir, at.String()) }

func environ(env map[string]string) (out []string) {
	for _, k := range slices.Sorted(maps.Keys(env)) {
		out = append(out, k+"="+env[k])
	}
	return out
}

// startBridge writes the one configuration, JSON being YAML, and starts mcpbridge.
func (w *world) startBridge(ctx context.Context) error {
	listen, err := process.FreeAddr()
	if err != nil {
		return err
	}
	admin, err := process.FreeAddr()
	if err != nil {
		return err
	}
	w.listen, w.admin = listen, admin
	servers := make(map[string]served)
	for at, s := range w.spots {
		servers[at.String()] = s
	}
	text, err := json.MarshalIndent(map[string]any{"listen": listen, "admin": admin, "servers": servers}, "", "  ")
	if err != nil {
		return err
	}
	config := filepath.Join(w.dir, "mcpbridge.yaml")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return err
	}
	if w.bridge, err = process.Start("mcpbridge", nil, w.fill("{bin}/mcpbridge"), "serve", "-c", config); err != nil {
		return err
	}
	return w.bridge.Ready(ctx, "http://"+admin+"/readyz", 200)
}

func (w *world) fill(s string) string { return strings.NewReplacer(w.words...).Replace(s) }

// stop ends everything, and looks for what was left.
func (w *world) stop() error {
	var errs []error
	if w.bridge != nil {
		errs = append(errs, w.bridge.Stop(time.Minute))
	}
	for _, some := range []map[spot]*record.Recorder{w.fronts, w.backs} {
		for _, r := range some {
			r.Close()
		}
	}
	for _, p := range w.servers {
		errs = append(errs, p.Stop(time.Minute))
	}
	left, err := process.WithMark(w.dir)
	if len(left) > 0 {
		err = fmt.Errorf("left behind: %q", left)
	}
	return errors.Join(append(errs, err)...)
}

// target is where a client finds a cell's server.
func (w *world) target(c Cell) remote.Target {
	at := spot{c.Server, c.Back}
	to := remote.Target{Transport: c.Front, Capabilities: json.RawMessage("{}")}
	switch c.Front {
	case "http":
		to.URL = w.fronts[at].URL + "/mcp/" + at.String()
	case "sse":
		to.URL = w.fronts[at].URL + "/sse/" + at.String()
	case "ws":
		to.URL = "ws://" + w.listen + "/mcp/" + at.String()
	case "stdio":
		to.Argv = w.wrapped(at)
	}
	return to
}

// wrapped is the command that serves a spot on its pipes.
func (w *world) wrapped(at spot) []string {
	s := w.spots[at]
	logs := []string{"MCPBRIDGE_LOG__LEVEL=info", "sh", "-c", `exec "$@" 2>>` + w.wrapLog(at), "sh"}
	argv := process.WithCache(append(append(environ(s.Env), logs...), w.fill("{bin}/mcpbridge"), "wrap")...)
	if s.URL != "" {
		return append(argv, s.URL)
	}
	return append(append(argv, "--", s.Command), s.Args...)
}
