package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/remember"
)

const proved = "auth: {tokens: [{name: ada, token: s3cret-0123456789}]}\n"

// asked sends a request to an admin address, with a token unless that is empty.
func asked(t *testing.T, method, url, token, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

const editNote = `{"server":"a","tool":"edit_note","arguments":{"name":"todo","text":"x"}}`

// adminFile returns the file of the token that serve has made.
func adminFile(dir, admin string) string {
	u, _ := url.Parse(admin)
	return filepath.Join(dir, "admin-"+u.Port()+".token")
}

// Where clients prove who they are, the admin address of the same gateway calls no tool
// without a token either. Its user's commands have it, and a link opens the page once.
func TestHardeningAdminWantsAToken(t *testing.T) {
	home := t.TempDir()
	environ := []string{"XDG_STATE_HOME=" + home, "LocalAppData=" + home, "HOME=" + home}
	path := configFile(t, proved+"servers:\n  a: {builtin: notebook}\n  b: {builtin: notebook, policy: {default: deny, rules: [{allow: {principals: [admin], methods: [tools/list]}}]}}\n")
	s := serve(t, environ, path)
	for _, to := range []string{"POST /api/call", "GET /api/state", "GET /api/tools?server=a", "POST /reload", "POST /api/link", "GET /debug/pprof/heap", "GET /api/live"} {
		method, to, _ := strings.Cut(to, " ")
		if res, text := asked(t, method, s.Admin+to, "", editNote); res.StatusCode != 401 || !strings.Contains(text, "mcpbridge admin") {
			t.Errorf("%s %s without a credential = %s %s, want 401 and what to do", method, to, res.Status, text)
		}
	}
	for _, to := range []string{"/healthz", "/readyz", "/metrics"} { // once both servers were tried
		bridgetest.Eventually(t, to+" without a credential", func() bool {
			res, _ := asked(t, "GET", s.Admin+to, "", "")
			return res.StatusCode == 200
		})
	}
	file := adminFile(remember.StateDir(environ), s.Admin)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	token := string(text)
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("the file of the token has the mode %v, %v", info.Mode(), err)
	}
	if res, text := asked(t, "POST", s.Admin+"/api/call", token, editNote); res.StatusCode != 200 || !strings.Contains(text, `"result"`) {
		t.Errorf("a call with the token = %s %s", res.Status, text)
	}
	// What it may call is what the policy says of admin.
	if _, text := asked(t, "GET", s.Admin+"/api/tools?server=b", token, ""); !strings.Contains(text, `"result"`) {
		t.Errorf("tools that admin may list: %s", text)
	}
	if _, text := asked(t, "POST", s.Admin+"/api/call", token, strings.Replace(editNote, `"a"`, `"b"`, 1)); !strings.Contains(text, "policy") || strings.Contains(text, `"result"`) {
		t.Errorf("a tool that admin may not call: %s", text)
	}
	for _, args := range [][]string{{"--admin", s.Admin}, {"-c", path, "--admin", strings.TrimPrefix(s.Admin, "http://")}} {
		if got := runCommand(t.Context(), environ, append([]string{"top", "--json"}, args...)...); got.code != 0 || !strings.Contains(got.out, `"name": "a"`) {
			t.Errorf("top %q = %+v", args, got)
		}
	}
	testLink(t, s, environ)
	if got := runCommand(t.Context(), nil, "top", "--admin", s.Admin); got.code != exitFailure || !strings.Contains(got.err, "as the user that it runs as") {
		t.Errorf("top of another user = %+v, want what to do", got)
	}
	s.stop()
	if _, err := os.Stat(file); err == nil || strings.Contains(s.log.String(), token) {
		t.Errorf("%s is there still, or the log has the token:\n%s", file, s.log)
	}
}

// testLink opens the page by a link that mcpbridge admin prints.
func testLink(t *testing.T, s *running, environ []string) {
	t.Helper()
	got := runCommand(t.Context(), environ, "admin", "--admin", s.Admin)
	page, code, ok := strings.Cut(strings.TrimSpace(got.out), "#")
	if got.code != 0 || !ok || page != s.Admin+"/login" {
		t.Fatalf("admin = %+v, want a link", got)
	}
	res, text := asked(t, "POST", page, "", `{"code":"`+code+`"}`)
	if res.StatusCode != 200 || len(res.Cookies()) != 1 || !strings.Contains(text, `"key"`) {
		t.Errorf("the link = %s %s, want a session", res.Status, text)
	}
	if res, text := asked(t, "POST", page, "", `{"code":"`+code+`"}`); res.StatusCode != 401 {
		t.Errorf("the link again = %s %s, want 401", res.Status, text)
	}
}

// A link of a gateway that asks for no token is its page; a socket has none.
func TestAdminCommand(t *testing.T) {
	s := serve(t, nil)
	if got := runCommand(t.Context(), nil, "admin", "--admin", s.Admin); got.code != 0 || got.out != s.Admin+"/\n" {
		t.Errorf("admin = %+v, want the page", got)
	}
	if got := runCommand(t.Context(), nil, "admin", "--json", "--admin", s.Admin); got.code != 0 || !json.Valid([]byte(got.out)) {
		t.Errorf("admin --json = %+v", got)
	}
	if got := runCommand(t.Context(), nil, "admin", "--admin", "unix:/x"); got.code != exitUsage || !strings.Contains(got.err, "mcpbridge top") {
		t.Errorf("admin of a socket = %+v", got)
	}
}

// tail follows a gateway whose clients prove who they are, for the same user.
func TestTailReadsTheToken(t *testing.T) {
	home := t.TempDir()
	path := configFile(t, "state_dir: "+home+"\n"+proved+"servers: {a: {builtin: notebook}}\n")
	s := serve(t, nil, path)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs bridgetest.Log
	p := process{args: []string{"mcpbridge", "tail", "-c", path, "--admin", strings.TrimPrefix(s.Admin, "http://")}, stdout: &out, stderr: &errs}
	ended := make(chan error)
	go func() { ended <- p.run(ctx) }()
	bridgetest.Eventually(t, "tail shows a call", func() bool {
		runCommand(t.Context(), nil, "call", s.Endpoints[0].URL, "-H", "Authorization: Bearer s3cret-0123456789", "edit_note", "name=todo", "text=x")
		return strings.Contains(out.String(), "tools/call  edit_note  ok")
	})
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("tail ended with %v, %s", err, errs.String())
	}
}

// A reload after which clients prove who they are closes the admin address, and one after
// which they do so no longer does not open it.
func TestHardeningReloadBringsAuth(t *testing.T) {
	home := t.TempDir()
	text := "state_dir: " + home + "\nservers: {a: {builtin: notebook}}\n"
	r := serveFile(t, text)
	if res, text := asked(t, "POST", r.admin("/api/call"), "", editNote); res.StatusCode != 200 {
		t.Fatalf("a call where clients are anonymous = %s %s", res.Status, text)
	}
	r.write(proved + text)
	bridgetest.Eventually(t, "admin wants a token", func() bool {
		res, _ := asked(t, "POST", r.admin("/api/call"), "", editNote)
		return res.StatusCode == 401
	})
	var token []byte
	bridgetest.Eventually(t, "the token is stored", func() (ok bool) { // the address is closed before
		token, _ = os.ReadFile(adminFile(home, r.Admin))
		return len(token) > 0
	})
	r.write(text)
	if res, body := asked(t, "POST", r.admin("/reload"), string(token), ""); res.StatusCode != 200 {
		t.Fatalf("a reload with the token = %s %s", res.Status, body)
	}
	if res, _ := asked(t, "POST", r.admin("/api/call"), "", editNote); res.StatusCode != 401 {
		t.Errorf("a call once nothing says who clients are = %s, want 401 still", res.Status)
	}
}

// Where a token can't be stored, or the socket or admin_token keeps others off, none is made.
func TestAdminTokenIsNotMade(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, where := range map[string]string{"no folder": "", "a folder that can't be": "state_dir: " + file + "\n"} {
		s := serve(t, nil, configFile(t, where+proved+"servers: {a: {builtin: notebook}}\n"))
		if res, _ := asked(t, "POST", s.Admin+"/api/call", "", editNote); res.StatusCode != 401 || !strings.Contains(s.log.String(), "set admin_token, or state_dir") {
			t.Errorf("%s: a call = %s, want 401, and a line in\n%s", name, res.Status, s.log)
		}
	}
	for _, key := range []string{"admin_token: the-admin-token-1", "allow_anonymous: false"} {
		auth := proved
		if !strings.HasPrefix(key, "admin") {
			auth = "" // nobody proves anything
		}
		home := t.TempDir()
		serve(t, nil, configFile(t, key+"\nstate_dir: "+home+"\n"+auth+"servers: {a: {builtin: notebook}}\n"))
		if files, _ := filepath.Glob(filepath.Join(home, "admin-*")); len(files) > 0 {
			t.Errorf("with %s there is %q", key, files)
		}
	}
}

// What a command writes to its standard error is kept only where messages are shown, without
// secrets, and for as long as it is served.
func TestLinesOfCommands(t *testing.T) {
	const broken = `  b: {command: sh, args: ["-c", "echo no module $SOME_KEY >&2; exit 1"], env: {SOME_KEY: the-secret-of-b}}` + "\n"
	r := serveFile(t, "admin_bodies: true\nservers:\n  a: {builtin: notebook}\n"+broken)
	lines := func() string {
		_, text := asked(t, "GET", r.admin("/api/servers/b/lines"), "", "")
		return text
	}
	bridgetest.Eventually(t, "its line is there", func() bool { return strings.Contains(lines(), `"text":"no module [hidden]"`) })
	r.write("admin_bodies: true\nservers:\n  a: {builtin: notebook}\n")
	bridgetest.Eventually(t, "it is not served", func() bool {
		res, _ := asked(t, "GET", r.admin("/api/servers/b"), "", "")
		return res.StatusCode == 404
	})
	s := serve(t, nil, configFile(t, "servers:\n"+broken))
	bridgetest.Eventually(t, "it is down", func() bool {
		_, text := asked(t, "GET", s.Admin+"/api/servers/b", "", "")
		return strings.Contains(text, "no module")
	})
	if _, text := asked(t, "GET", s.Admin+"/api/servers/b/lines", "", ""); text != `{"lines":[]}`+"\n" {
		t.Errorf("without admin_bodies the lines are %s", text)
	}
}
