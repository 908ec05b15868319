package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A lockedServer is a modern server that wants a login, and the authorization server that
// issues its tokens, where everybody who asks is let in.
type lockedServer struct {
	*httptest.Server
	issued  atomic.Int64 // the token with this number is valid
	revoked atomic.Bool
}

func newLockedServer(t *testing.T) *lockedServer {
	return startLockedServer(t, (*httptest.Server).Start)
}

func startLockedServer(t *testing.T, start func(*httptest.Server)) *lockedServer {
	s := new(lockedServer)
	mux := http.NewServeMux()
	s.Server = httptest.NewUnstartedServer(mux)
	start(s.Server)
	t.Cleanup(s.Close)
	answer := func(path string, f func(q url.Values) any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			_ = r.ParseForm() // JSON has none
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(f(r.Form)) // the client may be gone
		})
	}
	answer("/.well-known/oauth-protected-resource/mcp", func(url.Values) any {
		return map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.URL}}
	})
	answer("/.well-known/oauth-authorization-server", func(url.Values) any {
		return map[string]any{"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "registration_endpoint": s.URL + "/register",
			"revocation_endpoint": s.URL + "/revoke", "code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"}}
	})
	answer("/register", func(url.Values) any { return map[string]any{"client_id": "c1"} })
	answer("/token", func(url.Values) any {
		n := s.issued.Add(1)
		return map[string]any{"access_token": fmt.Sprintf("access-%d", n), "refresh_token": "refresh", "token_type": "Bearer", "expires_in": 3600}
	})
	answer("/revoke", func(q url.Values) any { s.revoked.Store(q.Get("token") == "refresh"); return nil })
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {"x"}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("/mcp", s.serve)
	return s
}

func (s *lockedServer) serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != fmt.Sprintf("Bearer access-%d", s.issued.Load()) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	body, _ := io.ReadAll(r.Body)
	m, _ := wire.Parse(body, wire.Options{}) // the gateway's
	result := `{"resultType":"complete","content":[{"type":"text","text":"done"}],"tools":[{"name":"x","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}`
	if m.Method == spec.MethodDiscover {
		result = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// A browser follows the address that login prints.
type browser struct {
	bridgetest.Log
	t      *testing.T
	client http.Client
}

var loginAddress = regexp.MustCompile(`(?m)^https?://127\S+/authorize\?\S+$`)

func (b *browser) Write(p []byte) (int, error) {
	if to := loginAddress.Find(p); to != nil {
		go func() {
			resp, err := b.client.Get(string(to))
			if err != nil {
				b.t.Error(err)
				return
			}
			resp.Body.Close()
		}()
	}
	return b.Log.Write(p)
}

// A login is used by all commands, and by serve where the configuration says whose it is,
// until logout. Nothing that is printed has a token.
func TestLogin(t *testing.T) {
	s := newLockedServer(t)
	dir := t.TempDir()
	environ := []string{"MCPBRIDGE_STATE_DIR=" + dir, "MCPBRIDGE_KEYRING=false"}
	at := s.URL + "/mcp"
	if got := runCommand(t.Context(), environ, "call", at, "x"); got.code != 1 || !strings.Contains(got.err, "401") {
		t.Fatalf("call before the login = %+v, want a refusal", got)
	}
	out := &browser{t: t}
	p := process{args: []string{"mcpbridge", "login", at, "--no-browser"}, environ: environ, stdout: out, stderr: out}
	if code := exitCode(p.run(t.Context()), out); code != 0 || !strings.Contains(out.String(), "Logged in to "+at) || strings.Contains(out.String(), "access-") {
		t.Fatalf("login = %d %s", code, out)
	}
	if got := runCommand(t.Context(), environ, "call", at, "x"); got.code != 0 || !strings.Contains(got.out, "done") {
		t.Errorf("call = %+v, want a result", got)
	}
	if got := runCommand(t.Context(), environ, "probe", at); got.code != 0 || !strings.Contains(got.out, "2026-07-28") {
		t.Errorf("probe = %+v, want a modern server", got)
	}
	path := configFile(t, "servers: {locked: {url: '"+at+"', upstream_auth: {oauth: {principal: anonymous}}}}")
	running := serve(t, environ, path)
	s.issued.Add(10) // so that it has to refresh
	if got := runCommand(t.Context(), environ, "call", running.Endpoints[0].URL, "x"); got.code != 0 || !strings.Contains(got.out, "done") {
		t.Errorf("call through serve = %+v, want a result; log: %s", got, running.log)
	}
	if got := runCommand(t.Context(), environ, "logout", at, "--json"); got.code != 0 || !s.revoked.Load() || got.out != "{\n  \"server\": \""+at+"\",\n  \"revoked\": true\n}\n" {
		t.Errorf("logout = %+v, revoked %v", got, s.revoked.Load())
	}
	time.Sleep(2 * time.Second) // after which serve looks
	if got := runCommand(t.Context(), environ, "call", running.Endpoints[0].URL, "x"); got.code != 1 || !strings.Contains(got.err, "run mcpbridge login locked -c FILE") {
		t.Errorf("call through serve after logout = %+v, want to be told how to log in", got)
	}
	if running.stop(); strings.Contains(running.log.String(), "access-") {
		t.Errorf("the log has a token: %s", running.log)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "logins", "*.json")); len(files) != 0 {
		t.Errorf("files after logout: %v", files)
	}
	if got := runCommand(t.Context(), environ, "logout", at); got.code != 1 || !strings.Contains(got.err, "there is no stored login") {
		t.Errorf("second logout = %+v", got)
	}
	running = serve(t, environ, path)
	if got := runCommand(t.Context(), environ, "call", running.Endpoints[0].URL, "x"); got.code != 1 || !strings.Contains(got.err, "run mcpbridge login locked -c FILE") {
		t.Errorf("call without a login = %+v, want to be told how to log in", got)
	}
	running.stop()
}

// A server that wants no login is told apart from one that does not say where to log in.
func TestLoginWhereNoneIsWanted(t *testing.T) {
	for _, tt := range []struct {
		status, code int
		want         string
	}{
		{http.StatusOK, 0, " wants no login: it answers without one (HTTP 200), and does not say where to log in. Nothing was stored.\n"},
		{http.StatusBadRequest, 0, " wants no login: it answers without one (HTTP 400), and does not say where to log in. Nothing was stored.\n"},
		{http.StatusUnauthorized, exitFailure, ": the server does not say who issues tokens for it: "},
		{http.StatusForbidden, exitFailure, ": the server does not say who issues tokens for it: "},
		{http.StatusBadGateway, exitFailure, ": the server does not say who issues tokens for it: "},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/mcp" {
				http.NotFound(w, r)
				return
			}
			w.WriteHeader(tt.status)
		}))
		dir := t.TempDir()
		got := runCommand(t.Context(), []string{"MCPBRIDGE_STATE_DIR=" + dir, "MCPBRIDGE_KEYRING=false"}, "login", srv.URL+"/mcp", "--no-browser")
		srv.Close()
		if got.code != tt.code || !strings.Contains(got.out+got.err, srv.URL+"/mcp"+tt.want) {
			t.Errorf("login where %d is the answer = %+v, want %d and %q", tt.status, got, tt.code, tt.want)
		}
	}
	s := newLockedServer(t) // which lets in whoever comes, and has metadata all the same
	s.Config.Handler = openTo(s.Config.Handler)
	out := &browser{t: t}
	p := process{args: []string{"mcpbridge", "login", s.URL + "/mcp", "--no-browser"}, environ: []string{"MCPBRIDGE_STATE_DIR=" + t.TempDir(), "MCPBRIDGE_KEYRING=false"}, stdout: out, stderr: out}
	if code := exitCode(p.run(t.Context()), out); code != 0 || !strings.Contains(out.String(), "Logged in to ") {
		t.Errorf("login where it is optional = %d %s, want a login", code, out)
	}
}

// openTo answers requests to /mcp without a credential, too.
func openTo(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mcp" && r.Header.Get("Authorization") == "" {
			w.WriteHeader(http.StatusOK)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func TestLoginUsage(t *testing.T) {
	path := configFile(t, "servers: {book: {builtin: notebook}, wiki: {url: 'https://wiki.example/mcp', upstream_auth: {static: {token: x}}}}")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"login"}, "which server?"},
		{[]string{"login", "https://x.example/mcp", "y"}, "one argument too many"},
		{[]string{"login", "book", "-c", path}, "has no URL"},
		{[]string{"login", "wiki", "-c", path}, "gets its credentials otherwise"},
		{[]string{"login", "https://x.example/mcp", "--redirect-host", "example.com"}, "127.0.0.1 or localhost only"},
		{[]string{"login", "https://x.example/mcp", "--port", "70000"}, "no port"},
		{[]string{"logout", "wiki", "-c", path}, "gets its credentials otherwise"},
		{[]string{"login", "other", "-c", path}, "no server of"},
	} {
		if got := runCommand(t.Context(), nil, tt.args...); got.code != 2 || !strings.Contains(got.err, tt.want) {
			t.Errorf("%v = %+v, want 2 and %q", tt.args, got, tt.want)
		}
	}
}

// Whoever uses the admin page logs in to a server, and out of it: the page shows where, and a
// browser goes there.
func TestLoginAtTheAdminPage(t *testing.T) {
	s := newLockedServer(t)
	environ := []string{"MCPBRIDGE_STATE_DIR=" + t.TempDir(), "MCPBRIDGE_KEYRING=false"}
	running := serve(t, environ, configFile(t, "admin: 127.0.0.1:0\nservers:\n  locked: {url: '"+s.URL+"/mcp', upstream_auth: {oauth: {principal: anonymous}}}\n  open: {url: '"+s.URL+"/mcp'}"))
	post := func(path string) (int, string) {
		res, text := asked(t, "POST", running.Admin+"/api/servers/"+path, "", "{}")
		return res.StatusCode, text
	}
	if code, text := post("open/login"); code != 503 || !strings.Contains(text, "no stored login") {
		t.Errorf("a login where none is stored = %d %s", code, text)
	}
	if code, text := post("locked/logout"); code != 503 {
		t.Errorf("a logout without a login = %d %s", code, text)
	}
	for range 2 { // the second one ends the first
		if code, text := post("locked/login"); code != 200 || !strings.Contains(text, s.URL+"/authorize?") {
			t.Fatalf("login = %d %s", code, text)
		}
	}
	_, text := post("locked/login")
	var at struct{ URL string }
	if err := json.Unmarshal([]byte(text), &at); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(at.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	call := func(code int, want string) {
		t.Helper()
		var got ran
		for end := time.Now().Add(bridgetest.Patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if got = runCommand(t.Context(), environ, "call", running.Endpoints[0].URL, "x"); got.code == code && strings.Contains(got.out+got.err, want) {
				return
			}
		}
		t.Errorf("call = %+v, want %q; log: %s", got, want, running.log)
	}
	call(0, "done")
	if code, text := post("locked/logout"); code != 200 || text != `{"revoked":true}`+"\n" || !s.revoked.Load() {
		t.Errorf("logout = %d %s", code, text)
	}
	call(1, "run mcpbridge login locked -c FILE")
	if log := running.log.String(); !strings.Contains(log, "somebody has logged in to the server from the admin page") || strings.Contains(log, "access-") {
		t.Errorf("the log: %s", log)
	}
}

// What is said of a login that can't be used is what can be typed: with the file, in quotes where
// its path has spaces. A server of the command line is in no file.
func TestLoginIsAdvisedWithItsFile(t *testing.T) {
	s := newLockedServer(t)
	dir := filepath.Join(t.TempDir(), "my files")
	environ := []string{"MCPBRIDGE_STATE_DIR=" + dir, "MCPBRIDGE_KEYRING=false"}
	out := &browser{t: t}
	p := process{args: []string{"mcpbridge", "login", s.URL + "/mcp", "--no-browser"}, environ: environ, stdout: out, stderr: out}
	if code := exitCode(p.run(t.Context()), out); code != 0 {
		t.Fatalf("login = %d %s", code, out)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "logins", "*.login.json"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("logins: %v, %v", kept, err)
	}
	text, err := os.ReadFile(kept[0])
	if err != nil {
		t.Fatal(err)
	}
	over := regexp.MustCompile(`"refresh_token": ?"refresh",?`).ReplaceAll(text, nil)
	over = regexp.MustCompile(`"expires": ?"\d{4}`).ReplaceAll(over, []byte(`"expires":"2001`))
	if err := os.WriteFile(kept[0], over, 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "c.yaml")
	if err := os.WriteFile(path, []byte("servers: {locked: {url: '"+s.URL+"/mcp'}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"run mcpbridge login locked -c '" + path + "'": {"ls", "-c", path, "locked"},
		"run mcpbridge login " + s.URL + "/mcp":        {"ls", s.URL + "/mcp"},
	} {
		if got := runCommand(t.Context(), environ, args...); got.code != 1 || !strings.HasSuffix(got.err, "; "+want+"\n") {
			t.Errorf("%q = %+v, want %s", args, got, want)
		}
	}
}

// A server of a private authority is logged in to with --cacert, as others ask it.
func TestLoginTrustsAnAuthority(t *testing.T) {
	s := startLockedServer(t, (*httptest.Server).StartTLS)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{"MCPBRIDGE_STATE_DIR=" + t.TempDir(), "MCPBRIDGE_KEYRING=false"}
	if got := runCommand(t.Context(), environ, "login", s.URL+"/mcp", "--no-browser"); got.code != 1 || !strings.Contains(got.err, "unknown authority") || !strings.Contains(got.err, "--cacert") {
		t.Errorf("login without the authority = %+v, want to be told of --cacert", got)
	}
	out := &browser{t: t, client: *s.Client()}
	p := process{args: []string{"mcpbridge", "login", s.URL + "/mcp", "--no-browser", "--cacert", ca}, environ: environ, stdout: out, stderr: out}
	if code := exitCode(p.run(t.Context()), out); code != 0 || !strings.Contains(out.String(), "Logged in to "+s.URL) {
		t.Errorf("login = %d %s", code, out)
	}
	if got := runCommand(t.Context(), environ, "login", "x", "-c", configFile(t, "servers: {x: {url: 'https://127.0.0.1:1/mcp'}}"), "--cacert", ca); got.code != exitUsage || !strings.Contains(got.err, "tls: {ca: …") {
		t.Errorf("login of a server of a file = %+v, want that tls is in the file", got)
	}
}
