package remember

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// executable creates a file that os/exec would run, with a fixed time.
func executable(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	touch(t, path, time.Unix(1e9, 0))
	return path
}

func touch(t *testing.T, path string, at time.Time) {
	t.Helper()
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func keyOf(t *testing.T, s Server) Key {
	t.Helper()
	k, err := s.Key()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// The key depends on everything that may change the description, but not on its spelling.
func TestKey(t *testing.T) {
	dir := t.TempDir()
	base := func() Server {
		return Server{
			Command: executable(t, dir, "server.exe"), Args: []string{"a", "b"}, Env: []string{"A=1", "B=2"}, Dir: dir,
			Capabilities: json.RawMessage(`{"roots":{},"sampling":{"n":1}}`), Principal: "ada",
		}
	}
	want := keyOf(t, base())
	for _, tt := range []struct {
		name   string
		change func(*Server)
		same   bool
	}{
		{"nothing", func(*Server) {}, true},
		{"another program", func(s *Server) { s.Command = executable(t, dir, "other.exe") }, false},
		{"a newer program", func(s *Server) { touch(t, s.Command, time.Unix(1e9, 1000)) }, false},
		{"a longer program", func(s *Server) {
			if err := os.WriteFile(s.Command, []byte("#!/bin/sh\n\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			touch(t, s.Command, time.Unix(1e9, 0))
		}, false},
		{"another argument", func(s *Server) { s.Args[1] = "c" }, false},
		{"arguments joined", func(s *Server) { s.Args = []string{"ab"} }, false},
		{"arguments split elsewhere", func(s *Server) { s.Args = []string{"ab", ""} }, false},
		{"an empty argument", func(s *Server) { s.Args = append(s.Args, "") }, false},
		{"an argument that is an entry of the environment", func(s *Server) { s.Args, s.Env = append(s.Args, "A=1"), s.Env[1:] }, false},
		{"another variable", func(s *Server) { s.Env[0] = "A=2" }, false},
		{"a value with a line break", func(s *Server) { s.Env = []string{"A=1\nB=2"} }, false},
		{"variables in another order", func(s *Server) { slices.Reverse(s.Env) }, true},
		{"a variable replaced by itself", func(s *Server) { s.Env = []string{"A=0", "B=2", "A=1"} }, true},
		{"a variable replaced by another", func(s *Server) { s.Env = []string{"A=1", "B=2", "A=0"} }, false},
		{"another folder", func(s *Server) { s.Dir = t.TempDir() }, false},
		{"capabilities in another order", func(s *Server) { s.Capabilities = json.RawMessage("{ \"sampling\": {\"n\":1},\n\"roots\": {} }") }, true},
		{"another capability", func(s *Server) { s.Capabilities = json.RawMessage(`{"roots":{}}`) }, false},
		{"a number beyond float64", func(s *Server) {
			s.Capabilities = json.RawMessage(`{"roots":{},"sampling":{"n":1.00000000000000000001}}`)
		}, false},
		{"another principal", func(s *Server) { s.Principal = "bob" }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := base()
			tt.change(&s)
			if got := keyOf(t, s) == want; got != tt.same {
				t.Errorf("the key is the same: %v, want %v", got, tt.same)
			}
		})
	}
	none, empty := base(), base()
	none.Capabilities, empty.Capabilities = nil, json.RawMessage("{}")
	if keyOf(t, none) != keyOf(t, empty) {
		t.Error("no capabilities and an empty object make different keys")
	}
}

// The key is that of the program that os/exec would run.
func TestKeyProgram(t *testing.T) {
	dir := t.TempDir()
	executable(t, dir, "server.exe")
	t.Setenv("PATH", dir)
	bare := keyOf(t, Server{Command: "server.exe", Dir: dir})
	relative := keyOf(t, Server{Command: "." + string(filepath.Separator) + "server.exe", Dir: dir})
	if bare == relative {
		t.Error("two commands have one key")
	}
	t.Chdir(dir)
	if keyOf(t, Server{Command: "server.exe"}) != bare {
		t.Error("the working directory is another one where it is not named")
	}
	if k, err := (Server{Command: "no-such-server"}).Key(); err == nil || k != (Key{}) {
		t.Errorf("Key of no program = %v, %v, want an error", k, err)
	}
}
