package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// callWith calls a tool of a modern server with a token of mcpbridge.
func callWith(t *testing.T, at, token string) string {
	t.Helper()
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader(call))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "x", "Authorization": "Bearer " + token} {
		req.Header.Set(name, value)
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
	return string(text)
}

var (
	linkIn = regexp.MustCompile(`http://[^ "]+/login/[A-Za-z0-9_-]+`)
	wordIn = regexp.MustCompile(`name="word" value="([^"]+)"`)
)

// openLogin opens a link, and proves by a token who its user is.
func openLogin(t *testing.T, link, token string) (status int, text string) {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar}
	read := func(res *http.Response, err error) (int, string) {
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		page, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(page)
	}
	status, text = read(browser.Get(link))
	word := wordIn.FindStringSubmatch(text)
	if word == nil {
		return status, text
	}
	return read(browser.PostForm(link, url.Values{"way": {"token"}, "token": {token}, "word": {word[1]}}))
}

// A user logs in by the link that his client was given, his calls are sent with his login, and
// logout ends it.
func TestUserLogsIn(t *testing.T) {
	s := newLockedServer(t)
	at := bridgetest.FreeAddr(t)
	environ := []string{"HOME=" + t.TempDir(), "LocalAppData=" + t.TempDir()}
	path := configFile(t, fmt.Sprintf(`
public_url: http://%s
state_dir: %q
login_keys: [a key of sixteen characters and more]
admin_token: admin-0123456789abcdef
auth: {tokens: [{name: ada, token: ada-0123456789abcdef}, {name: bob, token: bob-0123456789abcdef}]}
servers:
  docs: {url: %s/mcp, era: modern, upstream_auth: {oauth: {per: principal}}}
`, at, t.TempDir(), s.URL))
	run := serve(t, environ, "--listen", at, path)
	endpoint := "http://" + at + "/mcp/docs"
	link := linkIn.FindString(callWith(t, endpoint, "ada-0123456789abcdef"))
	if link == "" {
		t.Fatalf("ada's call = %s, want a link", callWith(t, endpoint, "ada-0123456789abcdef"))
	}
	if status, text := openLogin(t, link, "bob-0123456789abcdef"); status != http.StatusForbidden || s.issued.Load() != 0 {
		t.Errorf("bob opens ada's link: %d %s", status, text)
	}
	if status, text := openLogin(t, link, "ada-0123456789abcdef"); status != http.StatusOK {
		t.Fatalf("ada opens her link: %d %s", status, text)
	}
	if got := callWith(t, endpoint, "ada-0123456789abcdef"); !strings.Contains(got, `"done"`) {
		t.Errorf("ada's call after it = %s", got)
	}
	if got := callWith(t, endpoint, "bob-0123456789abcdef"); linkIn.FindString(got) == "" {
		t.Errorf("bob's call = %s, want a link", got)
	}
	if _, text := asked(t, "GET", run.Admin+"/api/logins", "admin-0123456789abcdef", ""); !strings.Contains(text, `"principal":"ada"`) || strings.Contains(text, "access-") || strings.Contains(text, "refresh\"") {
		t.Errorf("/api/logins = %s", text)
	}
	if res, text := asked(t, "POST", run.Admin+"/api/logout", "", `{"principal":"ada"}`); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("/api/logout without the token = %d %s", res.StatusCode, text)
	}
	out := func(args ...string) ran {
		return runCommand(t.Context(), environ, append([]string{"logout", "--admin", run.Admin, "--token", "admin-0123456789abcdef", "--principal"}, args...)...)
	}
	if got := out("bob"); got.code != 1 || !strings.Contains(got.err, `"bob" has no login at any server`) {
		t.Errorf("logout of bob = %+v", got)
	}
	var ended []struct {
		Server, Principal string
		Revoked           bool
	}
	if got := out("ada", "docs", "--json"); json.Unmarshal([]byte(got.out), &ended) != nil || len(ended) != 1 || !ended[0].Revoked || ended[0].Server != "docs" || !s.revoked.Load() {
		t.Errorf("logout of ada = %+v", got)
	}
	if got := callWith(t, endpoint, "ada-0123456789abcdef"); linkIn.FindString(got) == "" {
		t.Errorf("ada's call after the logout = %s", got)
	}
	if logs := run.log.String(); strings.Contains(logs, "access-") || strings.Contains(logs, "/login/") || strings.Contains(logs, "0123456789abcdef") {
		t.Errorf("the log has what is secret: %s", logs)
	}
}
