package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// firstLine is the first line of a text.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// What is wrong with a command is the first line, before anything is served, wherever
// it was given.
func TestFirstLineOfAMissingCommand(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "server.js")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"serve", "wrap", "probe", "call", "listen", "read", "prompt", "ls"} {
		for _, tt := range []struct{ program, want string }{
			{"nosuch", `mcpbridge: can't start "nosuch": there is no such program in PATH; install it, or give its whole path`},
			{"/no/such", `mcpbridge: can't start "/no/such": there is no such file; give the path of a program that can be run`},
			{plain, `mcpbridge: can't start "` + plain + `": it is not a program that may be run; make it executable, or give the program that runs it, such as node or python`},
		} {
			args := []string{command, "--", tt.program, "arg"}
			switch command {
			case "listen":
				args = append([]string{command, "--tools"}, args[1:]...)
			case "read", "prompt":
				args = append([]string{command, "x"}, args[1:]...)
			}
			got := runCommand(t.Context(), nil, args...)
			if got.code != exitFailure || got.out != "" || got.err != tt.want+"\n" {
				t.Errorf("%q = %d, %q, %q, want %d and %s", args, got.code, got.out, got.err, exitFailure, tt.want)
			}
		}
	}
}

// A file can be given as it is.
func TestFilesWithoutAFlag(t *testing.T) {
	path := configFile(t, "servers: {notes: {builtin: notebook}}\n")
	if got := runCommand(t.Context(), nil, "check", path); got.code != 0 || firstLine(got.out) != path+" can be used." {
		t.Errorf("check FILE = %+v", got)
	}
	if s := serve(t, nil, path); len(s.Endpoints) != 1 || s.Endpoints[0].Name != "notes" {
		t.Errorf("serve FILE serves %+v, want the file's server", s.Endpoints)
	}
}

// A port that is taken is only the end if somebody chose it.
func TestBusyAdminPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:2527")
	if err == nil {
		defer func() { _ = l.Close() }()
	} // else something has it already
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var out, log buffer
	p := process{args: []string{"mcpbridge", "serve", "--listen", "127.0.0.1:0"}, stdout: &out, stderr: &log}
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx) }()
	eventually(t, "served", func() bool { return strings.Contains(out.String(), "/readyz") || len(ended) > 0 })
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	const want = `"level":"WARN","msg":"metrics and health are on another port: the usual one is in use","wanted":"127.0.0.1:2527","addr":"127.0.0.1:`
	if line := firstLine(log.String()); !strings.Contains(line, want) {
		t.Errorf("the first line is %s, want %s in it", line, want)
	}
	if strings.Contains(out.String(), "127.0.0.1:2527") {
		t.Errorf("it printed %s, want the other port", out.String())
	}
	got := runCommand(t.Context(), nil, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:2527")
	if got.code != exitFailure || !strings.HasPrefix(got.err, "mcpbridge: admin: listening on 127.0.0.1:2527: ") {
		t.Errorf("a busy port that was chosen: %+v, want an error", got)
	}
}
