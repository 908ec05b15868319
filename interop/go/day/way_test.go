package day

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// A pair is a client at a server: which programs, and what is between them.
type pair struct {
	way            string // direct, wrap or serve
	client, server string // eras
	kind           string
	clients        int // who use its command beside each other
}

func (p pair) String() string {
	return fmt.Sprintf("%s/%s-%s/%s", p.way, p.client, p.server, p.kind)
}

// keeps reports whether a new session of this client finds what the last one left: over HTTP,
// where one of the sides knows no sessions, and the process serves whoever has the principal.
func (p pair) keeps() bool { return p.way == "serve" && (p.client == "modern" || p.server == "modern") }

// pairs returns all pairs. Over serve, both clients of a legacy tick server are at one
// endpoint.
func pairs() (all []pair) {
	for _, way := range []string{"direct", "wrap", "serve"} {
		for _, client := range []string{"legacy", "modern"} {
			for _, server := range []string{"legacy", "modern"} {
				for _, kind := range []string{"browser", "database", "tick"} {
					p := pair{way, client, server, kind, 1}
					if way == "serve" && server == "legacy" && kind == "tick" {
						p.clients = 2
					}
					if way != "direct" || client == "modern" || server == "legacy" { // this client has no word for that server
						all = append(all, p)
					}
				}
			}
		}
	}
	return all
}

var sdkOf = map[string]string{"legacy": "go161", "modern": "go180"}

// A stand is what the pairs of one test have in common: a folder, and one mcpbridge serve.
type stand struct {
	dir    string
	listen string
	serve  *process.Process
}

// name is that of the pair's endpoint, and of the folder of its server.
func (p pair) name() string {
	name := p.way + "-" + p.client + "-" + p.server + "-" + p.kind
	if p.clients > 1 {
		name = p.way + "-" + p.server + "-" + p.kind
	}
	return name
}

func (s *stand) folder(p pair) string { return filepath.Join(s.dir, p.name()) }

// command is that of the pair's server. Its folder marks the process.
func (s *stand) command(p pair) []string {
	return []string{bin("stateful-" + sdkOf[p.server]), "-kind", p.kind, "-dir", s.folder(p), "-clients", fmt.Sprint(p.clients), "-save", "800ms"}
}

// target says how the pair's client reaches the server.
func (s *stand) target(p pair) remote.Target {
	to := remote.Target{Capabilities: json.RawMessage(`{}`), Transport: "stdio"}
	switch p.way {
	case "direct":
		to.Argv = s.command(p)
	case "wrap":
		to.Argv = []string{"/usr/bin/env", "XDG_CACHE_HOME=" + filepath.Join(s.dir, "cache"), "MCPBRIDGE_LOG__LEVEL=debug"}
		if !full() {
			to.Argv = append(to.Argv, "MCPBRIDGE_SERVERS__S__IDLE="+idle.String())
		}
		to.Argv = append(append(to.Argv, bridge, "wrap", "--name", "s", "--"), s.command(p)...)
	case "serve":
		to.Transport, to.URL = "http", "http://"+s.listen+"/mcp/"+p.name()
	}
	return to
}

// idle is what the short form has for the key, so that pauses are longer.
const idle = time.Second

func newStand(t *testing.T) *stand {
	s := &stand{dir: t.TempDir(), listen: rig.FreeAddr(t)}
	servers := make(map[string]any)
	for _, p := range pairs() {
		if err := os.MkdirAll(s.folder(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if p.way == "serve" {
			c := s.command(p)
			servers[p.name()] = map[string]any{"command": c[0], "args": c[1:]}
			if !full() {
				servers[p.name()].(map[string]any)["idle"] = idle.String()
			}
		}
	}
	text, err := json.Marshal(map[string]any{"listen": s.listen, "admin": "off", "servers": servers})
	file := filepath.Join(s.dir, "mcpbridge.json")
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err == nil {
		s.serve, err = process.Start("mcpbridge", []string{"XDG_CACHE_HOME=" + filepath.Join(s.dir, "cache")}, bridge, "serve", "-c", file)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.serve.Ready(t.Context(), "http://"+s.listen, 0); err != nil {
		s.serve.Kill()
		t.Fatal(err)
	}
	return s
}

// end ends serve, and holds that no process is left, and that no client had two.
func (s *stand) end(t *testing.T) {
	if err := s.serve.Stop(time.Minute); err != nil {
		t.Error(err)
	}
	for _, p := range pairs() {
		if text, err := os.ReadFile(filepath.Join(s.folder(p), "overlap")); err == nil {
			t.Errorf("%v: more than %d processes at a time, started at:\n%s", p, p.clients, text)
		}
	}
	rig.Until(t, time.Minute, "no process is left", noneWith(s.dir))
}

// noneWith returns a complaint while processes have the mark.
func noneWith(mark string) func() string {
	return func() string {
		left, err := process.WithMark(mark)
		if err == nil && len(left) == 0 {
			return ""
		}
		return fmt.Sprintf("left behind: %q, %v", left, err)
	}
}
