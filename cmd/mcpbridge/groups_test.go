package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// groupedNotebooks are a notebook of each era, and groups of both.
const groupedNotebooks = `servers:
  a: {builtin: notebook, tools: {deny: [enable_search], rename: {edit_note: write}}}
  b: {builtin: modern-notebook, prefix: bb}
groups:
  team: {servers: [a, b]}
  bare: {servers: [b, a], prefix: never, prefer: {summarize: a}}
`

// Commands that take a server take a group of a file, by the names that clients of it see.
func TestG18CommandsTakeGroups(t *testing.T) {
	file := configFile(t, groupedNotebooks)
	for _, tt := range []struct {
		args   []string
		code   int
		has    string // of output and errors
		hasNot string
	}{
		{[]string{"ls", "-c", file, "team"}, 0, "a__write ", "enable_search\n  a__"},
		{[]string{"ls", "-c", file, "team"}, 0, "bb__edit_note ", ""},
		{[]string{"ls", file}, 0, "team  group of a as a__…, b as bb__…\n", ""},
		{[]string{"ls", file, "--json"}, 0, `"prefix": "bb"`, ""},
		{[]string{"call", "-c", file, "team", "a__write", "name=x", "text=y"}, 0, "saved", ""},
		{[]string{"call", "-c", file, "team", "bb__edit_note", "name=x", "text=y"}, 0, "saved", ""},
		{[]string{"call", "-c", file, "team", "write", "name=x"}, exitFailure, `has no tool "write"; there are: a__write`, ""},
		{[]string{"call", "-c", file, "bare", "edit_note", "name=x", "text=y"}, 0, "saved", ""},
		{[]string{"prompt", "-c", file, "team", "bb__summarize", "name=todo"}, 0, "buy milk", ""},
		{[]string{"read", "-c", file, "team", "note://todo"}, 0, "buy milk", ""},
		{[]string{"call", "-c", file, "team", "-H", "A: b"}, exitUsage, "team is no URL and gets no headers", ""},
		{[]string{"call", "-c", file, "none"}, exitUsage, `is called "none"; there are: a, b, bare, team`, ""},
		{[]string{"pin", "-c", file, "team"}, exitUsage, "team is a group; name one of its servers: a, b", ""},
		{[]string{"login", "-c", file, "team"}, exitUsage, "team is a group; name one of its servers: a, b", ""},
		{[]string{"probe", "-c", file, "team"}, 0, "a\nWorks: clients of 2025-11-25", ""},
		{[]string{"probe", "-c", file, "team"}, 0, "\nb\nWorks: clients of 2026-07-28", ""},
		{[]string{"probe", "-c", file, "team", "--json"}, 0, `"era": "modern"`, ""},
		{[]string{"probe", "-c", file, "b"}, 0, "Works: clients of 2026-07-28", "clients of 2025-11-25 and earlier get all"},
		{[]string{"probe", "-c", file, "none"}, exitUsage, "no server or group", ""},
		{[]string{"probe", "-c", file, "team", "-H", "A: b"}, exitUsage, "headers of team stand in the file", ""},
		{[]string{"probe", "-c", file, "team", "--as", "all"}, exitUsage, "name one of a, b", ""},
	} {
		got := runCommand(t.Context(), nil, tt.args...)
		if text := got.out + got.err; got.code != tt.code || !strings.Contains(text, tt.has) || tt.hasNot != "" && strings.Contains(text, tt.hasNot) {
			t.Errorf("%q = %d %s, want %d, %q and not %q", tt.args, got.code, text, tt.code, tt.has, tt.hasNot)
		}
	}
}

// check --connect asks the members of groups for their own names, of what is hidden, too.
func TestG18CheckListsNames(t *testing.T) {
	file := configFile(t, groupedNotebooks)
	got := runCommand(t.Context(), nil, "check", "-c", file, "--connect")
	text := regexp.MustCompile(` +`).ReplaceAllString(got.out, " ")
	for _, want := range []string{
		"\nGROUP ENDPOINT SERVERS\nbare http://127.0.0.1:2526/mcp/bare b, a\n",
		"\nGROUP team KIND SERVER OWN NAME\na__write tool a edit_note\nbb__edit_note tool b edit_note\n",
		"\nHIDDEN IN team KIND SERVER WHY\nenable_search tool a tools of a hides it\nnote://journal resource b a has it, too, and is before b\n",
	} {
		if got.code != 0 || !strings.Contains(text, want) {
			t.Errorf("check --connect = %d %s%s\nwant in it\n%s", got.code, text, got.err, want)
		}
	}
}

// Servers that take a connection and answer nothing hold up neither the others of a group, nor the end.
func TestG10WrapDoesNotWaitForLogins(t *testing.T) {
	over := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer silent.Close()
	defer close(over)
	file := configFile(t, fmt.Sprintf("servers:\n  here: {builtin: notebook}\n  far: {url: %q}\n  further: {url: %q}\n", silent.URL+"/a", silent.URL+"/b"))
	w := wrap(t, nil, "--all", file)
	began := time.Now()
	w.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"0"}}}`)
	w.want(`"protocolVersion":"2025-11-25"`)
	if took := time.Since(began); took > 20*time.Second { // 2 on an idle machine; the two are asked for 15 each
		t.Errorf("initialize took %v", took)
	}
	_ = w.in.Close()
	if err := w.end(); err != nil {
		t.Errorf("wrap ended with %v; it logged %s", err, w.log)
	}
}

// wrap serves a group of a file, and all servers of a file as one, to the only client.
func TestG18WrapAGroup(t *testing.T) {
	file := configFile(t, "auth: {tokens: [{name: alice, token: 0123456789abcdef0123456789abcdef}]}\n"+groupedNotebooks+"log: {level: error}\n")
	host := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(host, []byte(`{"mcpServers": {"x y": {"command": "`+os.Args[0]+`", "args": ["notebook-on-stdio"]}, "z": {"command": "`+os.Args[0]+`", "args": ["modern-notebook-on-stdio"]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args  []string
		title string
		names []string
	}{
		{[]string{"team", "-c", file}, "team", []string{"a__write", "bb__edit_note", "bb__enable_search"}},
		{[]string{"-c", file, "bare"}, "bare", []string{"edit_note", "enable_search", "write"}},
		{[]string{"--all", file}, "all", []string{"a__write", "bb__edit_note", "bb__enable_search"}},
		{[]string{"--all", host}, "all", []string{"x-y__edit_note", "x-y__enable_search", "z__edit_note", "z__enable_search"}},
		{[]string{"b", "-c", file}, "", []string{"edit_note", "enable_search"}}, // a server by itself
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			w := wrap(t, nil, tt.args...)
			w.send(modernRequest("1", "tools/list", ""))
			var want []string
			for _, name := range tt.names {
				want = append(want, `"name":"`+name+`"`)
			}
			w.want(want...)
			w.send(modernRequest("2", "server/discover", ""))
			if tt.title == "" {
				w.want(`"Notebook"`)
			} else {
				w.want(`"title":"` + tt.title + `"`)
			}
		})
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"wrap", "-c", file, "none"}, `is called "none"; there are: a, b, bare, team`},
		{[]string{"wrap", "-c", file}, "want the NAME of one group or server of"},
		{[]string{"wrap", "--all"}, "which file?"},
		{[]string{"serve", "--all"}, "which file? Write serve --all FILE"},
		{[]string{"serve", "--all", "http://127.0.0.1:1"}, "which file? Write serve --all FILE"},
	} {
		if got := runCommand(t.Context(), nil, tt.args...); got.code != exitUsage || !strings.Contains(got.err, tt.want) {
			t.Errorf("%q = %d %s, want %s", tt.args, got.code, got.err, tt.want)
		}
	}
}

// serve --all serves a group of all servers at /mcp, beside them.
func TestG18ServeAll(t *testing.T) {
	s := serve(t, nil, "--all", configFile(t, "servers: {a: {builtin: notebook}, b: {builtin: modern-notebook}}\n"))
	if len(s.Endpoints) != 3 || s.Endpoints[2].Name != "all" || !strings.HasSuffix(s.Endpoints[2].URL, "/mcp") {
		t.Fatalf("endpoints = %+v", s.Endpoints)
	}
	for _, url := range []string{s.Endpoints[2].URL, s.Endpoints[2].URL + "/all", strings.Replace(s.Endpoints[2].URL, "http:", "ws:", 1), strings.TrimSuffix(s.Endpoints[2].URL, "/mcp") + "/sse"} {
		if got := runCommand(t.Context(), nil, "call", url); got.code != 0 || !strings.Contains(got.out, "a__edit_note ") || !strings.Contains(got.out, "b__edit_note ") {
			t.Errorf("call %s = %+v", url, got)
		}
	}
	if got := runCommand(t.Context(), nil, "call", s.Endpoints[0].URL); got.code != 0 || !strings.HasPrefix(got.out, "edit_note ") {
		t.Errorf("call of a server = %+v", got)
	}
	if code, body := get(t, s.Admin+"/readyz"); code != 200 || !strings.Contains(body, `"name":"all"`) {
		t.Errorf("/readyz = %d %s", code, body)
	}
}
