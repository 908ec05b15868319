package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/client"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && children[os.Args[1]] != nil {
		os.Exit(children[os.Args[1]](os.Args[2:]))
	}
	code := bridgetest.Main(m)
	removeBinary()
	os.Exit(code)
}

func TestWrongUsage(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"unknown flag", []string{"serve", "--lisen", "x"}, "mcpbridge: unknown flag: --lisen; see mcpbridge serve --help"},
		{"unknown command", []string{"sevre"}, "mcpbridge: unknown command \"sevre\"; did you mean serve?"},
		{"serve a file and a URL", []string{"serve", "-c", "f.yaml", "http://h"}, "mcpbridge: a file and a server are both given; write the server into f.yaml, or leave -c out"},
		{"serve a word", []string{"serve", "npx"}, "mcpbridge: a command stands after --; write: mcpbridge serve -- npx"},
		{"serve a command without dashes", []string{"serve", "npx", "-y", "foo"}, "mcpbridge: a command stands after --; write: mcpbridge serve -- npx -y foo"},
		{"serve a command without dashes and flags", []string{"serve", "npx", "foo"}, "mcpbridge: a command stands after --; write: mcpbridge serve -- npx foo"},
		{"serve a command without dashes after a flag", []string{"serve", "--listen", "127.0.0.1:0", "npx", "-y", "my foo"}, "mcpbridge: a command stands after --; write: mcpbridge serve --listen 127.0.0.1:0 -- npx -y 'my foo'"},
		{"serve one word of several", []string{"serve", "--", "npx -y foo"}, "mcpbridge: the command and its arguments have to be separate words; write: mcpbridge serve -- npx -y foo"},
		{"probe one word of several", []string{"probe", "--timeout=1s", "--", "npx -y foo", "a b"}, "mcpbridge: the command and its arguments have to be separate words; write: mcpbridge probe --timeout=1s -- npx -y foo 'a b'"},
		{"serve no such file", []string{"serve", "foo.yaml"}, "mcpbridge: there is no file foo.yaml; give its path, as in mcpbridge serve ~/foo.yaml"},
		{"listen on all networks", []string{"serve", "--listen", ":8080"}, `mcpbridge: --listen: ":8080" can be reached from other machines, and nothing says who clients are; write a token that mcpbridge token makes below auth, or 127.0.0.1:8080 here, or set allow_anonymous: true`},
		{"listen on a port", []string{"serve", "--listen", "8080"}, `mcpbridge: --listen: "8080" is not an address; write host:port, as in 127.0.0.1:8080`},
		{"serve no command", []string{"serve", "--"}, "mcpbridge: want a URL, or -- and a command with its arguments; see mcpbridge serve --help"},
		{"wrap nothing", []string{"wrap"}, "mcpbridge: want a URL, or -- and a command with its arguments; see mcpbridge wrap --help"},
		{"wrap without files", []string{"wrap", "--log-level", "error", "http://127.0.0.1:1"}, "mcpbridge: standard input and output are not files"},
		{"version of something", []string{"version", "serve"}, `mcpbridge: version takes no arguments; leave "serve" out`},
		{"healthcheck of two files", []string{"healthcheck", "-c", "f.yaml", "g.yaml"}, `mcpbridge: one file is enough; leave "g.yaml" out`},
		{"healthcheck of nothing", []string{"healthcheck", "--admin", "off"}, "mcpbridge: admin is off; set it to an address, as in 127.0.0.1:2527"},
		{"check two files", []string{"check", "-c", "f.yaml", "g.yaml"}, "mcpbridge: two files are given, f.yaml and g.yaml; leave one out"},
		{"check nothing", []string{"check"}, "mcpbridge: which file? Write check FILE, as in check config.yaml"},
		{"probe nothing", []string{"probe"}, "mcpbridge: want a URL, or -- and a command with its arguments; see mcpbridge probe --help"},
		{"probe with half a header", []string{"probe", "-H", "s3cret", "http://h"}, "mcpbridge: --header wants NAME: VALUE, as in 'Authorization: Bearer TOKEN'"},
		{"probe with a header of its own", []string{"probe", "-H", "Host: x", "http://h"}, `mcpbridge: command line: servers.h.headers.Host: is set by mcpbridge itself; remove it`},
		{"probe a command with a header", []string{"probe", "-H", "A: b", "--", "x"}, "mcpbridge: a command gets no headers; leave --header out, or give a URL"},
		{"probe as nobody over a WebSocket", []string{"probe", "--as", "go-sdk", "ws://h"}, "mcpbridge: --as plays clients of Streamable HTTP; give an http URL instead of ws://h, or leave --as out"},
		{"probe for less than no time", []string{"probe", "--timeout", "-1s", "http://h"}, "mcpbridge: --timeout -1s is negative; leave it out for 10s (a URL) or 60s (a command)"},
		{"listen nowhere", []string{"listen"}, "mcpbridge: which server? Give its URL, its NAME with -c FILE, or -- and a command; see mcpbridge listen --help"},
		{"listen to a word", []string{"listen", "http://h", "note://todo"}, `mcpbridge: "note://todo" is too much; write --resource note://todo to follow a resource`},
		{"read nothing", []string{"read", "http://h"}, "mcpbridge: want the URI of a resource; see what there is with mcpbridge ls"},
		{"prompt for nothing", []string{"prompt", "http://h"}, "mcpbridge: want the name of a prompt; see what there is with mcpbridge ls"},
		{"call a command with a header", []string{"call", "-H", "A: b", "--", "x"}, "mcpbridge: a command gets no headers; leave --header out, or give a URL"},
		{"call a command of a file", []string{"call", "-c", "f", "--", "x"}, "mcpbridge: a file and a command are both given; leave one out"},
		{"call no command", []string{"call", "x", "--"}, "mcpbridge: which server? Give its URL, its NAME with -c FILE, or -- and a command; see mcpbridge call --help"},
		{"listen to nothing", []string{"listen", "http://h"}, "mcpbridge: nothing to listen to; add --tools, --prompts, --resources or --resource URI"},
		{"call no URL", []string{"call", "localhost:2526"}, "mcpbridge: \"localhost:2526\" is the address of a server, but no URL; write one such as http://localhost:2526/mcp"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := runCommand(t.Context(), nil, tt.args...)
			code := exitUsage
			if tt.name == "wrap without files" { // there is nothing wrong with its words
				code = exitFailure
			}
			if strings.TrimSpace(got.err) != tt.want || got.code != code || got.out != "" {
				t.Errorf("%q = %d, %q, %q, want %d and the error %q", tt.args, got.code, got.out, got.err, code, tt.want)
			}
		})
	}
}

// Each command shows how it is used.
func TestHelpHasExamples(t *testing.T) {
	for _, command := range []string{"serve", "wrap", "check", "probe", "listen", "call", "read", "prompt", "ls", "healthcheck", "version"} {
		got := runCommand(t.Context(), nil, command, "--help")
		if _, examples, _ := strings.Cut(got.out, "Examples:\n"); !strings.HasPrefix(examples, "  mcpbridge "+command) || got.code != 0 {
			t.Errorf("%s --help = %d %s, want examples", command, got.code, got.out)
		}
	}
}

func TestExitCode(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code int
	}{
		{nil, 0}, {errors.New("x"), exitFailure}, {usageError("x"), exitUsage}, {&exitError{exitLost, client.ErrLost}, exitLost},
	} {
		if got := exitCode(tt.err, &bridgetest.Log{}); got != tt.code {
			t.Errorf("exitCode(%v) = %d, want %d", tt.err, got, tt.code)
		}
	}
}

func TestVersion(t *testing.T) {
	got := runCommand(t.Context(), nil, "version")
	for _, want := range []string{"mcpbridge ", "clients of revision 2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05\n", "servers of revision 2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05\n"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("version = %q, want %q in it", got.out, want)
		}
	}
	if got := runCommand(t.Context(), nil, "version", "--json"); !strings.Contains(got.out, `"2026-07-28"`) || got.out[0] != '{' {
		t.Errorf("version --json = %q", got.out)
	}
}

func TestSelf(t *testing.T) {
	for arg, want := range map[string]string{
		"./bin/mcpbridge":                     "./bin/mcpbridge",
		"/opt/my tools/mcpbridge":             output.ShellWord("/opt/my tools/mcpbridge"),
		"/tmp/go-build12/b001/exe/mcpbridge":  "go run ./cmd/mcpbridge",
		"/root/.cache/go-build/x-d/mcpbridge": "go run ./cmd/mcpbridge",
	} {
		if got := (process{args: []string{arg}}).self(); got != want {
			t.Errorf("self() of %q = %q, want %q", arg, got, want)
		}
	}
}

// What package gateway says of itself is not said twice.
func TestNameOfTheProgramOnce(t *testing.T) {
	path := configFile(t, "audit: "+filepath.Join(t.TempDir(), "none", "audit.log")+"\nlisten: 127.0.0.1:0\nadmin: off\nservers: {notebook: {builtin: notebook}}\n")
	got := runCommand(t.Context(), nil, "serve", "-c", path)
	if got.code != exitFailure || !strings.HasPrefix(got.err, "mcpbridge: opening the audit log: ") {
		t.Errorf("serve = %+v, want an error that begins with mcpbridge once", got)
	}
}
