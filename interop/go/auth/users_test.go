package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
	"github.com/mcpbridge/mcpbridge/interop/internal/steer"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// locked are servers of SDKs that want a login of each user, of an issuer, and say of each call
// whose token it came with.
var locked = []struct {
	name  string
	start func(t testing.TB, as *issuer) (url string)
}{
	{"typescript", func(t testing.TB, as *issuer) string { return newProtected(t, as) }},
	{"fastmcp", newFastmcp},
}

func newFastmcp(t testing.TB, as *issuer) (url string) {
	t.Helper()
	addr := rig.FreeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	start(t, addr, nil, peer("bin/python-fastmcp/bin/python"), peer("python/fastmcp_protected.py"), port, as.url)
	return "http://" + addr + "/mcp"
}

// perPrincipal is the configuration of mcpbridge before a server at which each user logs in, as
// one of either era. Clients are those of another issuer.
func perPrincipal(clients *issuer, behind string) string {
	return fmt.Sprintf(`
public_url: "{base}"
login_keys: [a key of sixteen characters and more]
auth: {jwt: {issuer: %[1]q, algorithms: [RS256], scopes: ["mcp:use"]}}
servers:
  modern: {url: %[2]q, era: modern, upstream_auth: &users {oauth: {per: principal}}}
  legacy: {url: %[2]q, era: legacy, upstream_auth: *users}
`, clients.url, behind)
}

// visitPage opens a page in a browser in which a user is logged in at the issuers, and submits the
// first form that he is shown, until there is none.
func visitPage(link, user string) (status int, page string, err error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return 0, "", err
	}
	browser := &http.Client{Jar: jar, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequest(http.MethodGet, link, nil)
	for range 30 {
		if err != nil {
			return 0, "", err
		}
		req.Header.Set("X-User", user)
		res, err2 := browser.Do(req)
		if err2 != nil {
			return 0, "", err2
		}
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
		_ = res.Body.Close()
		next, err2 := res.Location()
		switch {
		case err2 == nil:
			req, err = http.NewRequest(http.MethodGet, next.String(), nil)
		case strings.Contains(string(text), "<form"):
			first, _, _ := strings.Cut(string(text), "</form>")
			req, err = submit(req, res.StatusCode, first)
		default:
			return res.StatusCode, string(text), nil
		}
	}
	return 0, "", errors.New("the way of the browser does not end")
}

// visit is visitPage that has to lead to a login.
func visit(link, user string) error {
	status, page, err := visitPage(link, user)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the page of the login: %d %s", status, page)
	}
	return err
}

var linkForm = regexp.MustCompile(`http://127\.0\.0\.1:\d+/login/[A-Za-z0-9_-]+`)

// linkIn returns the link to a page in what a client was told.
func linkIn(told any) string {
	text, _ := json.Marshal(told)
	return linkForm.FindString(html.UnescapeString(string(text)))
}

var who = map[string]any{"name": "whoami", "arguments": map[string]any{}}

// holderOf returns what the server says of the token that a client's call came with.
func holderOf(t *testing.T, s *steer.Client) (of holder) {
	t.Helper()
	var got called
	request(t, s, "tools/call", who, &got)
	if len(got.Content) != 1 || json.Unmarshal([]byte(got.Content[0].Text), &of) != nil {
		t.Fatalf("whoami answered %+v", got)
	}
	return of
}

// takesURLs is to, for a client that opens pages.
func takesURLs(url string, l *remote.Login) *remote.Target {
	out := to(url, l)
	out.Capabilities = json.RawMessage(`{"elicitation":{"url":{}}}`)
	return out
}

// callAndVisit calls whoami with a client whose user has no login at the server. First another
// user opens the link, and then the client's own does.
func callAndVisit(t *testing.T, s *steer.Client, user, other string) {
	t.Helper()
	s.Expect(map[string]json.RawMessage{"elicitation/create": json.RawMessage(`{"action":"accept"}`)})
	visits := func(link string) error {
		if status, page, err := visitPage(link, other); err != nil || status != http.StatusForbidden {
			return fmt.Errorf("%s opens the link of %s: %d %s, %v; want 403", other, user, status, page, err)
		}
		return visit(link, user)
	}
	asked := make(chan error, 1)
	go func() { // ends with the question, or without one
		q, ok := s.Asked.Take(time.Minute)
		if !ok {
			asked <- errors.New("nobody was asked")
			return
		}
		asked <- visits(linkIn(q))
	}()
	var got called
	err := try(t.Context(), s, "tools/call", who, &got)
	if refused := (*remote.Error)(nil); errors.As(err, &refused) { // of a legacy client
		if refused.Code != -32042 && refused.Code != -32603 {
			t.Fatalf("the call: %v", err)
		}
		if err := visits(linkIn([]any{refused.Data, refused.Message})); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatalf("the call: %v", err)
	}
	if err := <-asked; err != nil {
		t.Fatal(err)
	}
}

// logout ends the logins of a user at a server of mcpbridge, by the admin address.
func (b *bridge) logout(t testing.TB, principal, server string) (ended int) {
	t.Helper()
	body, _ := json.Marshal(map[string]string{"principal": principal, "server": server})
	res, err := http.DefaultClient.Do(b.admins(t, http.MethodPost, "/api/logout", string(body)))
	if err != nil {
		t.Fatal(err)
	}
	var told struct{ Ended []struct{ Revoked bool } }
	got := read(t, res)
	if err := json.Unmarshal(got.body, &told); err != nil {
		t.Fatalf("logout: %d %s", got.status, got.body)
	}
	for _, e := range told.Ended {
		if !e.Revoked {
			t.Errorf("the login of %s was not revoked: %s", principal, got.body)
		}
	}
	return len(told.Ended)
}

const adminToken = "admin-0123456789abcdef"

func (b *bridge) admins(t testing.TB, method, path, body string) *http.Request {
	req, err := http.NewRequest(method, b.admin+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+adminToken)
	req.Header.Set("Content-Type", "application/json")
	return req
}

// TestUsersLogIn has two users, with two clients of each era, at servers of two SDKs that want a
// login of each of them: the client leads its user to the page, whom another one can't stand in
// for, and each call comes with its user's token. One logout ends one login.
func TestUsersLogIn(t *testing.T) {
	takeTurn(t)
	b := newBrowser(t)
	ids, as := newIssuer(t), newIssuer(t)
	for _, server := range locked {
		behind := server.start(t, as)
		bridge := newBridge(t, fmt.Sprintf("state_dir: %q\nadmin_token: %s\n", t.TempDir(), adminToken)+perPrincipal(ids, behind))
		for _, c := range []client{eras[0], eras[4], eras[1], eras[3]} { // legacy, legacy, modern, modern
			for _, era := range []string{"modern", "legacy"} {
				t.Run(server.name+" "+era+" "+c.name, func(t *testing.T) {
					url := bridge.endpoint(era)
					sessions := make(map[string]*steer.Client)
					for user, other := range map[string]string{"alice": "bob", "bob": "alice"} {
						s := c.begin(t)
						sessions[user] = s
						request(t, s, "initialize", takesURLs(url, &remote.Login{Browser: b.as(user), Redirect: redirect}), nil)
						callAndVisit(t, s, user, other)
					}
					for range 2 {
						for user, s := range sessions {
							if of := holderOf(t, s); of.Sub != user || of.Aud != behind {
								t.Errorf("%s's call came with a token of %+v", user, of)
							}
						}
					}
					if n := bridge.logout(t, ids.url+" alice", era); n != 1 {
						t.Errorf("%d logins of alice were ended, want one", n)
					}
					if of := holderOf(t, sessions["bob"]); of.Sub != "bob" {
						t.Errorf("after alice's logout bob's call came with a token of %+v", of)
					}
					s := c.begin(t)
					request(t, s, "initialize", to(url, &remote.Login{Browser: b.as("alice"), Redirect: redirect}), nil)
					if err := try(t.Context(), s, "tools/call", who, nil); err == nil || linkIn(err.Error()) == "" {
						t.Errorf("alice's call after her logout: %v, want a link in words", err)
					}
					bridge.logout(t, ids.url+" bob", era)
				})
			}
		}
		for _, h := range came(t, behind) {
			if h.Sub != "" && (h.Aud != behind || h.Sub != "alice" && h.Sub != "bob") {
				t.Errorf("the server was sent a token of %+v", h)
			}
		}
		if logs := bridge.Log(); strings.Contains(logs, "/login/ey") || linkForm.MatchString(logs) {
			t.Errorf("the log of mcpbridge has a link:\n%s", logs)
		}
	}
}

// TestUserLogsInAtExamples has a user log in at the servers that SDKs bring as examples of
// protected ones, with authorization servers of their own.
func TestUserLogsInAtExamples(t *testing.T) {
	takeTurn(t)
	b, ids := newBrowser(t), newIssuer(t)
	for _, e := range examples[1:] {
		t.Run(e.name, func(t *testing.T) {
			bridge := newBridge(t, fmt.Sprintf("state_dir: %q\nadmin_token: %s\n", t.TempDir(), adminToken)+perPrincipal(ids, e.start(t)))
			s := eras[4].begin(t)
			request(t, s, "initialize", to(bridge.endpoint("legacy"), &remote.Login{Browser: b.as("alice"), Redirect: redirect}), nil)
			err := try(t.Context(), s, "tools/call", e.call, nil)
			if err == nil || linkIn(err.Error()) == "" {
				t.Fatalf("the call without a login: %v, want a link", err)
			}
			if err := visit(linkIn(err.Error()), "alice"); err != nil {
				t.Fatal(err)
			}
			var got called
			request(t, s, "tools/call", e.call, &got)
			e.judge(t, &got)
		})
	}
}
