package firststart

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// A stand is one command behind mcpbridge, which remembers what it learns of it in a
// cache folder of the stand's own.
type stand struct {
	t       *testing.T
	dir     string // of all files; it stands in the command, and marks the processes of this stand
	starts  string // file: a line for each start of the command
	command []string
}

// newStand makes a stand whose command is what of makes of the file for its starts
// and the folder. Nothing of it may be left when the test ends.
func newStand(t *testing.T, of func(starts, dir string) []string) *stand {
	t.Helper()
	s := &stand{t: t, dir: t.TempDir()}
	s.starts = filepath.Join(s.dir, "starts")
	s.command = of(s.starts, s.dir)
	t.Cleanup(s.nothingLeft)
	return s
}

// started counts the starts of the command.
func (s *stand) started() int {
	text, err := os.ReadFile(s.starts)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Fatal(err)
	}
	return bytes.Count(text, []byte("\n"))
}

// nothingLeft gives processes the time that the end of a pipe may take.
func (s *stand) nothingLeft() {
	rig.Until(s.t, 30*time.Second, "no process is left", func() string {
		left, err := process.WithMark(s.dir)
		if err == nil && len(left) == 0 {
			return ""
		}
		return fmt.Sprintf("left behind: %q, %v", left, err)
	})
}

func (s *stand) env() string { return "XDG_CACHE_HOME=" + filepath.Join(s.dir, "cache") }

// direct is the way of a client that starts the command itself.
func (s *stand) direct() remote.Target { return remote.Target{Transport: "stdio", Argv: s.command} }

// wrap is the way through mcpbridge wrap. Clients pass few variables on.
func (s *stand) wrap() remote.Target {
	argv := append([]string{"/usr/bin/env", s.env(), fill("{bridge}"), "wrap", "--"}, s.command...)
	return remote.Target{Transport: "stdio", Argv: argv}
}

// A serving is mcpbridge serve before a stand's command.
type serving struct {
	*process.Process
	to    remote.Target
	began time.Time
}

// serve starts mcpbridge serve and returns when it listens, whatever the command is
// at. Whoever gets it stops it.
func (s *stand) serve() *serving {
	s.t.Helper()
	return s.run("command", append([]string{"--"}, s.command...)...)
}

// serveWith is serve with keys for the server in the configuration.
func (s *stand) serveWith(keys map[string]any) *serving {
	s.t.Helper()
	keys["command"], keys["args"] = s.command[0], s.command[1:]
	text, err := json.Marshal(map[string]any{"servers": map[string]any{"command": keys}})
	if err != nil {
		s.t.Fatal(err)
	}
	file := filepath.Join(s.dir, "mcpbridge.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return s.run("command", "-c", file)
}

// run starts serve with what it is to serve.
func (s *stand) run(name string, what ...string) *serving {
	s.t.Helper()
	if what[0] == "--" {
		what = append([]string{"--name", name}, what...)
	}
	listen := rig.FreeAddr(s.t)
	argv := append([]string{fill("{bridge}"), "serve", "--listen", listen, "--admin", "off"}, what...)
	v := &serving{to: remote.Target{Transport: "http", URL: "http://" + listen + "/mcp/" + name}, began: time.Now()}
	var err error
	if v.Process, err = process.Start("mcpbridge", []string{s.env()}, argv...); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), process.StartTime)
	defer cancel()
	if err := v.Ready(ctx, v.to.URL, 0); err != nil {
		v.Kill()
		s.t.Fatal(err)
	}
	return v
}

// stop ends it, which it does by itself.
func (v *serving) stop(t *testing.T) {
	t.Helper()
	if err := v.Stop(time.Minute); err != nil {
		t.Error(err)
	}
}
