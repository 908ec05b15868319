package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
)

// A named is a way to name one server of either era, by the words before and after those
// of the command.
type named struct {
	name          string
	before, after []string
}

// line is the command line of a command with words for a server.
func (n named) line(command string, words ...string) []string {
	return append(append(append([]string{command}, n.before...), words...), n.after...)
}

// everyWay returns the ways to name a notebook.
func everyWay(t *testing.T) []named {
	url := serve(t, nil).Endpoints[0].URL
	file := configFile(t, "servers:\n  old: {builtin: notebook}\n  new: {builtin: modern-notebook}\n  web: {url: '"+strings.Replace(url, "/mcp/", "/sse/", 1)+"'}\n")
	closed := configFile(t, "auth: {tokens: [{name: alice, token: 0123456789abcdef0123456789abcdef}]}\nservers:\n  old: {builtin: notebook}\n  new: {builtin: modern-notebook, auth: {tokens: [{name: bob, token: abcdef0123456789abcdef0123456789}]}}\n")
	return []named{
		{"a URL of 2026-07-28", []string{url}, nil},
		{"a URL of HTTP+SSE", []string{strings.Replace(url, "/mcp/", "/sse/", 1)}, nil},
		{"a WebSocket", []string{strings.Replace(url, "http:", "ws:", 1)}, nil},
		{"a name, older era", []string{"-c", file, "old"}, nil},
		{"a name, newer era", []string{"-c", file, "new"}, nil},
		{"a name, older era, where clients have tokens", []string{"-c", closed, "old"}, nil},
		{"a name, newer era, which has tokens of its own", []string{"-c", closed, "new"}, nil},
		{"a name, a URL", []string{"-c", file, "web"}, nil},
		{"a command, older era", nil, []string{"--", os.Args[0], "notebook-on-stdio"}},
		{"a command, newer era", nil, []string{"--", os.Args[0], "modern-notebook-on-stdio"}},
	}
}

// Whatever a server is and however it is named, it can be asked.
func TestAskingEveryServer(t *testing.T) {
	environ := []string{"GORACE=atexit_sleep_ms=0"}
	for _, way := range everyWay(t) {
		t.Run(way.name, func(t *testing.T) {
			run := func(command string, words ...string) ran {
				return runCommand(t.Context(), environ, way.line(command, words...)...)
			}
			if got := run("call"); got.code != 0 || !strings.HasPrefix(got.out, "edit_note                Replace a note's text, or add a note.\n") {
				t.Errorf("call = %+v, want the tools", got)
			}
			if got, want := run("call", "edit_note", "name=todo", "text=x"), (ran{"saved\n", "", 0}); got != want {
				t.Errorf("call = %+v, want %+v", got, want)
			}
			misspelt := ran{"", "mcpbridge: edit_note: unknown argument \"txt\"; did you mean \"text\"?\n", exitUsage}
			if got := run("call", "edit_note", "name=todo", "txt=x"); got != misspelt {
				t.Errorf("call = %+v, want %+v", got, misspelt)
			}
			if got := run("read", "note://todo"); got.code != 0 || got.err != "" || got.out == "" {
				t.Errorf("read = %+v, want the note", got)
			}
			if got := run("read", "note://todo", "--json"); got.code != 0 || !strings.Contains(got.out, `"uri":"note://todo"`) || !strings.HasPrefix(got.out, `{"jsonrpc":"2.0"`) {
				t.Errorf("read --json = %+v, want the response", got)
			}
			if got := run("read", "note://none"); got.code != exitFailure || !strings.HasPrefix(got.err, "mcpbridge: reading note://none of ") {
				t.Errorf("read = %+v, want an error", got)
			}
			if got := run("prompt", "summarize", "name=todo"); got.code != 0 || got.err != "" || !strings.HasPrefix(got.out, "user: ") {
				t.Errorf("prompt = %+v, want a message", got)
			}
			if got := run("prompt", "summarize", "name:=1"); got.code != exitUsage {
				t.Errorf("prompt = %+v, want wrong usage", got)
			}
			if got := run("ls"); got.code != 0 || !strings.Contains(got.out, "tools\n  edit_note ") || !strings.Contains(got.out, "resources\n  note://") {
				t.Errorf("ls = %+v, want tools and resources", got)
			}
			if got := run("ls", "--json"); got.code != 0 || !strings.Contains(got.out, `"resources": [`) {
				t.Errorf("ls --json = %+v", got)
			}
		})
	}
}

// Changes are followed whatever the server is; the end of listening ends what was started.
func TestListeningToEveryServer(t *testing.T) {
	for _, way := range everyWay(t) {
		t.Run(way.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), bridgetest.Patience)
			defer cancel()
			out := &bridgetest.Log{}
			args := way.line("listen", "--resource", "note://todo")
			p := process{args: append([]string{"mcpbridge"}, args...), environ: []string{"GORACE=atexit_sleep_ms=0"}, stdout: out, stderr: out}
			ended := make(chan error, 1)
			go func() { ended <- p.run(ctx) }()
			bridgetest.Eventually(t, "acknowledged", func() bool {
				return strings.Contains(out.String(), " acknowledged: note://todo\n") || len(ended) > 0
			})
			cancel()
			if err := <-ended; err != nil || !strings.HasSuffix(out.String(), " stopped listening\n") {
				t.Errorf("listen = %v, %s, want it acknowledged and stopped", err, out)
			}
		})
	}
}

// Headers are sent to a server of either era, and to no other place.
func TestAskingWithHeaders(t *testing.T) {
	for _, era := range []string{"modern", "legacy"} {
		behind := http.Handler(&backtest.OddServer{Greets: true, Body: backtest.SaysUnknown})
		if era == "modern" {
			behind = &script{answers: map[string]string{"tools/list": `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[]}}`}}
		}
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Api-Key") != "k" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			behind.ServeHTTP(w, r)
		}))
		defer srv.Close()
		if got, want := runCommand(t.Context(), nil, "call", srv.URL, "-H", "X-Api-Key: k"), (ran{}); got != want {
			t.Errorf("%s: call -H = %+v, want %+v", era, got, want)
		}
		want := "mcpbridge: " + srv.URL + " wants credentials: it answered server/discover with HTTP 401 Unauthorized; give it credentials: --header 'Authorization: Bearer …'\n"
		if got := runCommand(t.Context(), nil, "call", srv.URL); got.code != exitFailure || got.err != want {
			t.Errorf("%s: call = %+v, want %s", era, got, want)
		}
	}
}

// A file's servers are listed without asking them, and a name that is none is answered
// with those there are.
func TestListServers(t *testing.T) {
	file := configFile(t, "servers:\n  notes: {builtin: notebook}\n  docs: {url: 'https://docs.example.com/mcp?key=s3cret'}\n  off: {command: x, disabled: true}\n")
	for _, args := range [][]string{{"ls", "-c", file}, {"ls", file}} {
		got := runCommand(t.Context(), nil, args...)
		if lines := strings.Split(got.out, "\n"); got.code != 0 || len(lines) != 4 || lines[0] != "notes  builtin notebook" || lines[2] != "off    x  (disabled)" || strings.Contains(got.out, "s3cret") {
			t.Errorf("%q = %+v", args, got)
		}
	}
	if got := runCommand(t.Context(), nil, "ls", "-c", file, "--json"); got.code != 0 || !strings.HasPrefix(got.out, "[\n") {
		t.Errorf("ls --json = %+v", got)
	}
	got := runCommand(t.Context(), nil, "call", "-c", file, "nots")
	if want := "mcpbridge: no server of " + file + ` is called "nots"; there are: notes, docs, off` + "\n"; got.code != exitUsage || got.err != want {
		t.Errorf("call = %+v, want %s", got, want)
	}
}

// What the shell asks for when a person presses Tab.
func TestCompletion(t *testing.T) {
	servers := "servers:\n  notes: {builtin: notebook}\n  tool: {command: x}\n"
	file, grouped := configFile(t, servers), configFile(t, servers+"groups: {team: {servers: [notes, tool]}, some: {servers: [notes]}}\n")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"call", "-c", file, ""}, "notes\tbuiltin notebook\ntool\tx\n:4\n"},
		{[]string{"call", "-c", file, "notes", ""}, "edit_note\tReplace a note's text, or add a note.\nenable_search\tAdd the search tool.\n:4\n"},
		{[]string{"call", "-c", file, "tool", ""}, ":4\n"},
		{[]string{"read", "-c", file, "notes", "note://j"}, "note://journal\n:4\n"},
		{[]string{"listen", "-c", file, ""}, "notes\tbuiltin notebook\ntool\tx\n:4\n"},
		{[]string{"ls", "-c", file, ""}, "notes\tbuiltin notebook\ntool\tx\n:4\n"},
		{[]string{"call", "-c", grouped, ""}, "notes\tbuiltin notebook\ntool\tx\nsome\ta group of notes\nteam\ta group of notes, tool\n:4\n"},
		{[]string{"call", "-c", grouped, "some", ""}, "notes__edit_note\tReplace a note's text, or add a note.\nnotes__enable_search\tAdd the search tool.\n:4\n"},
		{[]string{"call", "-c", grouped, "team", ""}, ":4\n"},
	} {
		got := runCommand(t.Context(), nil, append([]string{"__complete"}, tt.args...)...)
		if got.code != 0 || got.out != tt.want {
			t.Errorf("completion of %q = %d, %q, want %q", tt.args, got.code, got.out, tt.want)
		}
	}
	if got := runCommand(t.Context(), nil, "completion", "ksh"); got.code != exitUsage || !strings.Contains(got.err, `"ksh" is no shell`) {
		t.Errorf("completion of another shell = %d, %q", got.code, got.err)
	}
	if got := runCommand(t.Context(), nil, "--help"); !strings.Contains(got.out, "\n  completion ") {
		t.Errorf("--help = %s, want completion in it", got.out)
	}
}
