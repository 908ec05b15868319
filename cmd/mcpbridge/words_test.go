package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/argv"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
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
	ctx, cancel := context.WithTimeout(t.Context(), bridgetest.Patience)
	defer cancel()
	var out, log bridgetest.Log
	p := process{args: []string{"mcpbridge", "serve", "--listen", "127.0.0.1:0"}, stdout: &out, stderr: &log}
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx) }()
	bridgetest.Eventually(t, "served", func() bool { return strings.Contains(out.String(), "/readyz") || len(ended) > 0 })
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

// A log's first line says in plain words what is wrong, or what the server speaks; what
// it answered is behind that.
func TestFirstLineOfTheLog(t *testing.T) {
	page := (&backtest.OddServer{Kind: "text/html", Body: "<h1>It works</h1>"}).Start(t)
	missing := (&backtest.OddServer{Status: 404, Kind: "text/html", Body: "<h1>Not Found</h1>"}).Start(t)
	secret := (&backtest.OddServer{Status: 401, Kind: "text/plain"}).Start(t)
	login := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://id.example/x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(login.Close)
	broken := (&backtest.OddServer{Status: 502, Kind: "text/plain"}).Start(t)
	file := configFile(t, "servers:\n  files: {command: nosuch}\n  notes: {builtin: notebook, disabled: true}\n")
	for _, tt := range []struct {
		name string
		args []string
		want string // from the level on
	}{
		{"a missing command in a file", []string{file}, `"WARN","msg":"server can't start, trying again","upstream":"files","error":"starting server files: exec: \"nosuch\": executable file not found in $PATH; give the path of a program that can be run"}`},
		{"echo hello", []string{"--", "echo", "hello"}, `"WARN","msg":"server is not an MCP server, trying again","upstream":"echo","error":"it ended; it wrote \"hello\" to its standard output, where only messages belong; does the command run, and speak MCP on its standard output?"}`},
		{"a command that fails", []string{"--", "sh", "-c", "echo no key >&2; exit 3"}, `"WARN","msg":"server does not keep running, trying again","upstream":"sh","error":"it ended: exit status 3; its last lines on standard error: \"no key\"; does the command run, and speak MCP on its standard output?"}`},
		{"a web page", []string{page}, `"WARN","msg":"server is not an MCP server, trying again","upstream":"127.0.0.1","era":"legacy","error":"initialize: it answered with Content-Type \"text/html\""}`},
		{"a 404", []string{missing}, `"WARN","msg":"server is not an MCP server, trying again","upstream":"127.0.0.1","era":"legacy","error":"initialize: HTTP 404 Not Found; HTTP+SSE failed, too: opening its event stream: HTTP 405 Method Not Allowed"}`},
		{"a 401", []string{secret}, `"WARN","msg":"server wants credentials, trying again","upstream":"127.0.0.1","error":"it answered server/discover with HTTP 401 Unauthorized; check the credentials in the server's headers"}`},
		{"a 401 of who says where to log in", []string{login.URL}, `"WARN","msg":"server wants credentials, trying again","upstream":"127.0.0.1","error":"it answered server/discover with HTTP 401 Unauthorized; check the credentials in the server's headers; or log in: mcpbridge login ` + login.URL + `, and give the server upstream_auth: {oauth: {shared_identity: true}}"}`},
		{"a 502", []string{broken}, `"WARN","msg":"server answers with errors, trying again","upstream":"127.0.0.1","error":"it answered server/discover and initialize with HTTP 502 Bad Gateway; it fails on every request: read its log"}`},
		{"nobody", []string{nobodyURL}, `"WARN","msg":"server can't be reached, trying again","upstream":"127.0.0.1","error":"dial tcp 127.0.0.1:1: connect: connection refused; nothing listens there: check that it runs, and the port"}`},
		{"a server of the older era", []string{"--", os.Args[0], "odd", "answer " + backtest.SaysUnknown}, `"INFO","msg":"server speaks 2025-11-25 and earlier (sessions)","upstream":"` + argv.Name(os.Args[:1]) + `","era":"legacy","reason":"it refused server/discover: Method not found (code -32601)"}`},
		{"a server of the newer era", []string{"--", os.Args[0], "modern-notebook-on-stdio"}, `"INFO","msg":"server speaks 2026-07-28 (no sessions)","upstream":"` + argv.Name(os.Args[:1]) + `","era":"modern","reason":"it answered server/discover"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, []string{"GORACE=atexit_sleep_ms=0", "MCPBRIDGE_REMEMBER=false"}, tt.args...)
			bridgetest.Eventually(t, "logged", func() bool { return strings.Contains(s.log.String(), "\n") })
			if _, line, _ := strings.Cut(firstLine(s.log.String()), `"level":`); line != tt.want {
				t.Errorf("the first line is\n%s\nwant\n%s", line, tt.want)
			}
		})
	}
}

// What a person asks once is answered by one line that says what is wrong.
func TestFirstLineOfCall(t *testing.T) {
	page := (&backtest.OddServer{Kind: "text/html", Body: "<h1>It works</h1>"}).Start(t)
	missing := (&backtest.OddServer{Status: 404, Kind: "text/html", Body: "<h1>Not Found</h1>"}).Start(t)
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"echo hello", []string{"--", "echo", "hello"}, `echo hello is not an MCP server: it ended; it wrote "hello" to its standard output, where only messages belong; does the command run, and speak MCP on its standard output?`},
		{"a web page", []string{page}, page + ` is not an MCP server: it answered with Content-Type "text/html"; opening a session failed: initialize: it answered with Content-Type "text/html"; is it an MCP server, and the path of its URL right?`},
		{"a 404", []string{missing}, missing + ` is not an MCP server: it answered server/discover with HTTP 404 Not Found; opening a session failed: initialize: HTTP 404 Not Found; HTTP+SSE failed, too: opening its event stream: HTTP 405 Method Not Allowed; is the path right? Many servers are at /mcp`},
		{"nobody", []string{nobodyURL}, nobodyURL + ` can't be reached: dial tcp 127.0.0.1:1: connect: connection refused; nothing listens there: check that it runs, and the port`},
	} {
		for _, command := range []string{"call", "probe", "ls"} {
			t.Run(tt.name+" by "+command, func(t *testing.T) {
				got := runCommand(t.Context(), nil, append([]string{command}, tt.args...)...)
				if want := "mcpbridge: " + tt.want + "\n"; got.code != exitFailure || got.err != want {
					t.Errorf("%s = %d, %s, want %s", command, got.code, got.err, want)
				}
			})
		}
	}
}

// An HTTP error has what the server says of it, and a redirect its target without what is secret.
func TestWordsOfHTTPErrors(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "https://ada:pw@docs.example.com/mcp?key=secret", http.StatusTemporaryRedirect)
		case "/forbidden":
			http.Error(w, "ada is not in the group", http.StatusForbidden)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"error": "the database is down"}`)
		}
	}))
	t.Cleanup(s.Close)
	for _, tt := range []struct{ path, want string }{
		{"/moved", `redirects to another URL: it answered server/discover with HTTP 307 Temporary Redirect; redirects are not followed: configure the URL it leads to, https://docs.example.com/mcp`},
		{"/forbidden", `refuses access: it answered server/discover with HTTP 403 Forbidden: "ada is not in the group"; ` +
			`do the credentials allow it? Give others: --header 'Authorization: Bearer …'`},
		{"/broken", `answers with errors: it answered server/discover and initialize with HTTP 500 Internal Server Error: "the database is down"; it fails on every request: read its log`},
	} {
		for _, command := range []string{"ls", "probe"} {
			if got, want := runCommand(t.Context(), nil, command, "--timeout", "20s", s.URL+tt.path), "mcpbridge: "+s.URL+tt.path+" "+tt.want+"\n"; got.code != exitFailure || got.err != want {
				t.Errorf("%s of %s = %d, %s, want %s", command, tt.path, got.code, got.err, want)
			}
		}
	}
}

// What a server prints besides messages is told of at once, also if it works then.
func TestStrayOutputIsTold(t *testing.T) {
	const told = `mcpbridge: sh wrote "hello" to its standard output, where only messages belong; the line is skipped` + "\n"
	for _, tt := range []struct {
		name, script, want string
		args               []string
	}{
		{"a banner", "echo hello; exec " + os.Args[0] + " modern-notebook-on-stdio", told, []string{"ls"}},
		{"text alone", "echo hello; exec sleep 60", told + `mcpbridge: sh -c echo hello; exec sleep 60 does not answer: it has not read its first request within timeouts.connect; ` +
			`it wrote "hello" to its standard output, where only messages belong; does the command run, and speak MCP on its standard output?` + "\n", []string{"probe", "--timeout", "3s"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := runCommand(t.Context(), []string{"GORACE=atexit_sleep_ms=0", "PATH=" + os.Getenv("PATH")}, append(tt.args, "--", "sh", "-c", tt.script)...)
			if got.err != tt.want {
				t.Errorf("it said\n%swant\n%s", got.err, tt.want)
			}
		})
	}
}

// A desktop client keeps the log of wrap: it has what is wrong, and the rest if asked for.
func TestWrapLogsWarnings(t *testing.T) {
	for _, tt := range []struct {
		args, env []string
		want      bool
	}{
		{nil, nil, false},
		{[]string{"-v"}, nil, true},
		{[]string{"--log-level", "info"}, nil, true},
		{[]string{"-v", "--log-level", "error"}, nil, false},
		{nil, []string{"MCPBRIDGE_LOG__LEVEL=info"}, true},
	} {
		w := wrap(t, tt.env, append(tt.args, "--", os.Args[0], "notebook-on-stdio")...)
		w.edit("1", "milk")
		w.want(`"id":1,"result"`)
		_ = w.in.Close()
		if err := w.end(); err != nil {
			t.Errorf("wrap ended with %v, want 0; it logged %s", err, w.log)
		}
		if text := w.log.String(); strings.Contains(text, `"name":"edit_note"`) != tt.want || !tt.want && text != "" {
			t.Errorf("wrap %q with %q logged %q, want requests: %v", tt.args, tt.env, text, tt.want)
		}
	}
}
