package main

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/trust/pin"
)

func TestPin(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "audit")
	path := configFile(t, "state_dir: "+dir+"\naudit: {file: "+log+", required: true}\nservers: {book: {builtin: notebook, pin: refuse, policy: {default: deny}}}")
	run := func(code int, parts string, args ...string) {
		t.Helper()
		got := runCommand(t.Context(), nil, append([]string{"pin"}, args...)...)
		if got.code != code || !strings.Contains(got.out+got.err, parts) {
			t.Errorf("pin %v = %d, %q, %q, want %d and %q", args, got.code, got.out, got.err, code, parts)
		}
	}
	run(1, "new      edit_note", "book", "-c", path)
	run(0, "tools accepted: 1", "book", "-c", path, "--accept", "edit_note")
	run(1, "new      enable_search", "book", "-c", path)
	run(0, "tools accepted: 2", "book", "-c", path, "--accept")
	run(0, "nothing differs", "book", "-c", path)
	run(2, "which server?", "book")
	run(2, "no server of", "other", "-c", path)

	f, _, err := pin.Folder(dir).Load(t.Context(), "book")
	if err != nil || !f.Complete {
		t.Fatalf("Load = %+v, %v, want a complete list", f, err)
	}
	if text, err := os.ReadFile(log); err != nil || strings.Count(string(text), `"server":"book","method":"pin"`) != 2 {
		t.Errorf("the audit log is %s, %v, want a line for each tool", text, err)
	}
	if matches, _ := filepath.Glob(filepath.Join(dir, "pins", "*.*.*")); len(matches) != 0 {
		t.Errorf("the folder has %v, want no file that was not done", matches)
	}
}

// Whoever runs mcpbridge is not one of its clients.
func TestCommandsHaveNoPolicy(t *testing.T) {
	audit := filepath.Join(t.TempDir(), "audit")
	path := configFile(t, "audit: "+audit+"\nservers: {book: {builtin: notebook, policy: {default: deny}, rate: {server: {per_second: 0.001}}}}")
	for _, args := range [][]string{{"call", "book", "edit_note", "name=a", "text=b", "-c", path}, {"ls", "book", "-c", path}} {
		if got := runCommand(t.Context(), nil, args...); got.code != 0 {
			t.Errorf("%v = %d %s %s", args, got.code, got.out, got.err)
		}
	}
	if found, _ := filepath.Glob(audit); found != nil {
		t.Error("they are recorded")
	}
}

// A tool is pinned at a configuration that wants tokens of clients, as it is without.
func TestPinUnderAuth(t *testing.T) {
	path := configFile(t, "state_dir: "+t.TempDir()+"\nauth: {tokens: [{name: alice, token: 0123456789abcdef0123456789abcdef}]}\nservers: {book: {builtin: notebook, pin: refuse}}")
	for _, args := range [][]string{{"--accept"}, nil} {
		if got := runCommand(t.Context(), nil, append([]string{"pin", "book", "-c", path}, args...)...); got.code != 0 {
			t.Errorf("pin %q = %+v", args, got)
		}
	}
}

// A server that is sent the token of each caller is asked with the token of whoever types the
// command. Errors say which server wants it, and never what it is.
func TestTokenOfTheCaller(t *testing.T) {
	var came atomic.Value
	behind, err := url.Parse(serve(t, nil).Endpoints[0].URL)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		if token := r.In.Header.Get("Authorization"); token != "" { // the gateway's own questions have none
			came.Store(token)
		}
		r.SetURL(&url.URL{Scheme: behind.Scheme, Host: behind.Host})
	}})
	defer srv.Close()
	at := srv.URL + behind.Path
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte("s3cret-of-alice\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := configFile(t, "state_dir: "+dir+"\nauth: {jwt: {issuer: 'https://id.example.com'}}\npublic_url: https://mcp.example.com\nservers:\n  book: {builtin: notebook}\n  docs: {url: '"+at+"', era: modern, public_url: '"+at+"', upstream_auth: {passthrough: {same_resource: true}}}\n")
	for _, command := range []string{"call", "pin"} {
		args := []string{command, "docs", "-c", path}
		if command == "pin" {
			args = append(args, "--accept")
		}
		for _, token := range []string{"${MY_TOKEN}", "${file:" + file + "}"} {
			got := runCommand(t.Context(), []string{"MY_TOKEN=s3cret-of-alice"}, append(args, "--token", token)...)
			if came.Swap("") != "Bearer s3cret-of-alice" || got.code != 0 || strings.Contains(got.out+got.err, "s3cret") {
				t.Errorf("%s --token %s = %+v", command, token, got)
			}
		}
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"ls", "docs"}, "the token of its caller is missing: docs has upstream_auth.passthrough; give yours with --token '${NAME}'"},
		{[]string{"ls", "docs", "--token", "${NONE}"}, "--token: environment variable NONE is not set"},
		{[]string{"ls", "docs", "--token", "s3cret of alice"}, "--token: it is no token"},
		{[]string{"ls", "book", "--token", "s3cret"}, "book is sent no token of callers; leave --token out"},
	} {
		got := runCommand(t.Context(), nil, append(tt.args, "-c", path)...)
		if got.code != exitUsage || !strings.Contains(got.err, tt.want) || strings.Contains(got.err, "s3cret") {
			t.Errorf("%q = %+v, want %s", tt.args, got, tt.want)
		}
	}
}
