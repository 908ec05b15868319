package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

func TestU04FlagsOfWrapEndAtTheCommand(t *testing.T) {
	flags := newWrapCommand(process{}).Flags()
	for _, tt := range []struct{ typed, want string }{
		{"wrap npx -y foo", "wrap -- npx -y foo"},
		{"wrap -v --name n npx -y foo -- --bar", "wrap -v --name n -- npx -y foo -- --bar"},
		{"wrap --log-level=debug npx --log-level x", "wrap --log-level=debug -- npx --log-level x"},
		{"wrap -- npx -y", "wrap -- npx -y"},
		{"wrap https://h/mcp -v", "wrap https://h/mcp -v"},
		{"wrap --install cursor files --dry-run", "wrap --install cursor files --dry-run"},
		{"wrap --uninstall=cursor files", "wrap --uninstall=cursor files"},
		{"wrap servers.yaml -v", "wrap servers.yaml -v"},
		{"wrap --no-such-flag npx", "wrap --no-such-flag npx"},
		{"serve npx -y", "serve npx -y"},
		{"wrap", "wrap"},
	} {
		typed := append([]string{"mcpbridge"}, strings.Fields(tt.typed)...)
		if got := strings.Join(dashed(typed, flags)[1:], " "); got != tt.want {
			t.Errorf("dashed(%s) = %s, want %s", tt.typed, got, tt.want)
		}
	}
}

// A command of the command line gets what mcpbridge has, but for what configures mcpbridge; one
// of a file gets a small environment, unless it says otherwise.
func TestU04EnvironmentOfACommand(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "c.yaml")
	text := "servers:\n" +
		"  small: {command: x, env: {MINE: '${SECRET}'}}\n" +
		"  whole: {command: x, env: {MINE: '${SECRET}'}, inherit_env: true}\n" +
		"  docs: {url: 'http://h', headers: {A: '${OTHER}'}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{"HOME=/h", "TOKEN=t", "EMPTY=", "MCPBRIDGE_DRAIN=1s", "SECRET=s", "OTHER=o", "=C:=x"}
	got := runCommand(t.Context(), environ, "check", file)
	for _, want := range []string{"\nsmall   HOME, MINE, STARTED_BY_MCPBRIDGE\n", "\nwhole   EMPTY, HOME, MINE, STARTED_BY_MCPBRIDGE, TOKEN\n"} {
		if got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("check = %d, %s%s, want %q in it", got.code, got.out, got.err, want)
		}
	}
}

// All commands with a server on the command line start it with the same environment.
func TestU04EnvironmentOfACommandOfTheCommandLine(t *testing.T) {
	if os.PathSeparator == '\\' {
		t.Skip("it needs a shell")
	}
	environ := []string{"PATH=" + os.Getenv("PATH"), "TOKEN=t", "MCPBRIDGE_SERVERS__DUMP__ENV__MINE=m"}
	for _, command := range [][]string{{"probe", "--timeout", "20s"}, {"call"}, {"serve"}, {"wrap"}} {
		t.Run(command[0], func(t *testing.T) {
			t.Parallel()
			dump := filepath.Join(t.TempDir(), "env")
			script := filepath.Join(t.TempDir(), "dump")
			if err := os.WriteFile(script, []byte("#!/bin/sh\nenv > \"$1.part\"; mv \"$1.part\" \"$1\"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			args := append(slices.Clone(command), "--", script, dump)
			switch command[0] {
			case "serve":
				s := serve(t, environ, args[1:]...)
				defer s.stop()
				awaitFile(t, dump)
			case "wrap":
				wrap(t, environ, args[2:]...) // which needs no --
				awaitFile(t, dump)
			default:
				runCommand(t.Context(), environ, args...) // which fails: it is no server
			}
			text, err := os.ReadFile(dump)
			if err != nil {
				t.Fatal(err)
			}
			for line, want := range map[string]bool{"\nTOKEN=t\n": true, "\nMINE=m\n": true, "\nMCPBRIDGE_": false} {
				if got := strings.Contains("\n"+string(text), line); got != want {
					t.Errorf("the environment has %q: %v, want %v, in\n%s", line, got, want, text)
				}
			}
		})
	}
}

func awaitFile(t *testing.T, path string) {
	t.Helper()
	bridgetest.Eventually(t, path, func() bool {
		_, err := os.Stat(path)
		return err == nil
	})
}
