package userlogin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/trust/login"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// value returns whose token the requests of a principal are sent with; "" if a login is wanted.
func (r *rig) value(p mcp.Principal) string {
	r.t.Helper()
	value, err := r.docs.Authorization(r.t.Context(), upstream.Behalf{Principal: p})
	of := (*upstream.CredentialError)(nil)
	if errors.As(err, &of) && of.Login && of.Caller {
		return ""
	}
	if err != nil {
		r.t.Fatalf("Authorization for %s: %v", p, err)
	}
	return r.at.of(strings.TrimPrefix(value, "Bearer "))
}

// Two users, in each way to prove who they are: each one's requests have his own token.
func TestEachHasHisOwnLogin(t *testing.T) {
	r := newRig(t, InDir(filepath.Join(t.TempDir(), "logins")))
	for _, tt := range []struct {
		p    mcp.Principal
		user string
		way  []string
	}{
		{r.principal("alice"), "alice", []string{wayIssuer}},
		{"carol", "carol", []string{wayToken, "token", "static-carol"}},
		{r.principal("bob"), "bob", []string{wayIssuer}},
	} {
		if got := r.value(tt.p); got != "" {
			t.Errorf("before: requests of %s have the token of %s", tt.p, got)
		}
		done := newBrowser(t, tt.user).logIn(r.docs.Link(tt.p), tt.way[0], tt.way[1:]...)
		done.wantStatus(t, string(tt.p), http.StatusOK)
		if got := r.value(tt.p); got != tt.user {
			t.Errorf("requests of %s have the token of %q", tt.p, got)
		}
	}
	if r.value(r.principal("alice")) != "alice" {
		t.Error("a later login has replaced that of alice")
	}
	if n := r.at.count("register"); n != 1 {
		t.Errorf("%d clients were registered at the server's issuer, want one for all", n)
	}
	if value, err := r.docs.Authorization(t.Context(), upstream.Behalf{}); value != "" || err != nil {
		t.Errorf("the gateway's own requests have %q, %v, want no header", value, err)
	}
	for _, p := range []mcp.Principal{"", mcp.Anonymous} {
		if _, err := r.docs.Authorization(t.Context(), upstream.Behalf{Principal: p, Identity: &mcp.Identity{}}); err == nil {
			t.Errorf("requests of %q have a token", p)
		}
	}
}

// A has his link opened by B, in whatever way B proves who he is: B is refused, and nothing of his
// is kept for A (CWE-346).
func TestLinkOfAnother(t *testing.T) {
	r := newRig(t, InDir(filepath.Join(t.TempDir(), "logins")))
	alice := r.principal("alice")
	link := r.docs.Link(alice)
	for name, way := range map[string][]string{"issuer": {wayIssuer}, "token": {wayToken, "token", "static-bob"}} {
		got := newBrowser(t, "bob").logIn(link, way[0], way[1:]...)
		got.wantStatus(t, name, http.StatusForbidden)
		for _, at := range got.way {
			if strings.HasPrefix(at, r.at.URL) {
				t.Errorf("%s: bob was sent to the server's issuer: %s", name, at)
			}
		}
		if strings.Contains(got.text, "alice") {
			t.Errorf("%s: bob is told whose link it is: %s", name, got.text)
		}
	}
	if all, _, err := r.logins.List(t.Context()); len(all) != 0 || err != nil || r.value(alice) != "" {
		t.Errorf("kept: %v, %v", all, err)
	}
	if got := r.events(); len(got) != 2 || !strings.HasPrefix(got[0], "refused "+string(alice)) {
		t.Errorf("noted %q, want two refusals", got)
	}
	newBrowser(t, "alice").logIn(link, wayIssuer).wantStatus(t, "alice herself", http.StatusOK)
}

// The URL of the authorization server, which A has got by proving who he is, is of no use in the
// browser of B, nor are B's code and state in that of A without his cookie.
func TestAnswerInAnotherBrowser(t *testing.T) {
	r := newRig(t, InDir(filepath.Join(t.TempDir(), "logins")))
	alice := r.principal("alice")
	a, b := newBrowser(t, "alice"), newBrowser(t, "bob")
	page := a.open(r.docs.Link(alice))
	a.http.Transport = stopAt{r.at.URL + "/authorize"}
	stopped := a.send(page.form(wayToken, "token", "static-"+string(alice)))
	authorize := stopped.way[len(stopped.way)-1]
	if !strings.HasPrefix(authorize, r.at.URL+"/authorize") {
		t.Fatalf("alice was led by %q, want to the server's issuer", stopped.way)
	}
	b.open(authorize).wantStatus(t, "alice's request in bob's browser", http.StatusForbidden)
	if r.value(alice) != "" {
		t.Error("alice's calls have a token of bob")
	}
	u, _ := url.Parse(authorize)
	state := u.Query().Get("state")
	for name, q := range map[string]string{
		"no state": "code=x", "another state": "code=x&state=" + state + "x", "two states": "code=x&state=" + state + "&state=" + state,
		"another issuer": "code=x&iss=https://evil.example&state=" + state, "no issuer": "code=x&state=" + state,
	} {
		if got := newBrowser(t, "alice").open(r.URL + returnPath + "?" + q); got.status == http.StatusOK {
			t.Errorf("%s, in a new browser: %d", name, got.status)
		}
		if got := a.open(r.URL + returnPath + "?" + q); got.status == http.StatusOK || r.value(alice) != "" {
			t.Errorf("%s, in alice's browser: %d %s", name, got.status, got.text)
		}
	}
}

// stopAt answers a URL by itself.
type stopAt struct{ prefix string }

func (s stopAt) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.URL.String(), s.prefix) {
		return &http.Response{StatusCode: http.StatusTeapot, Body: http.NoBody, Header: http.Header{}, Request: r}, nil
	}
	return http.DefaultTransport.RoundTrip(r)
}

// A form counts only if it was shown to the same browser, and is sent by these pages (CWE-352). A
// token in a URL does not count at all.
func TestForgedForms(t *testing.T) {
	r := newRig(t, InDir(filepath.Join(t.TempDir(), "logins")))
	alice := r.principal("alice")
	b := newBrowser(t, "alice")
	shown := b.open(r.docs.Link(alice))
	other := newBrowser(t, "alice").open(r.docs.Link(alice))
	proof := []string{"token", "static-" + string(alice)}
	for name, req := range map[string]*http.Request{
		"no word":           shown.form(wayToken, append(proof, "word", "")...),
		"a word of another": shown.form(wayToken, append(proof, "word", wordOf.FindStringSubmatch(other.text)[1])...),
		"another origin":    with(shown.form(wayToken, proof...), "Origin", "https://evil.example"),
		"no origin":         with(shown.form(wayToken, proof...), "Origin", "null"),
		"another site":      with(shown.form(wayToken, proof...), "Sec-Fetch-Site", "cross-site"),
		"another browser":   other.form(wayToken, append(proof, "word", wordOf.FindStringSubmatch(shown.text)[1])...),
	} {
		from := b
		if name == "another browser" {
			from = newBrowser(t, "alice")
		}
		from.send(req).wantStatus(t, name, http.StatusForbidden)
	}
	u := r.docs.Link(alice)
	for _, in := range []string{"?token=static-" + url.QueryEscape(string(alice)) + "&way=token", "?access_token=static-x"} {
		if got := b.open(u + in); got.status != http.StatusOK || len(got.way) != 1 {
			t.Errorf("a token in the URL: %d, led by %q, want the page", got.status, got.way)
		}
	}
	if r.value(alice) != "" {
		t.Error("a forged form has made a login")
	}
}

func with(r *http.Request, name, value string) *http.Request {
	r.Header.Set(name, value)
	return r
}

// Links are good as they were given, for ten minutes, and cookies are no links.
func TestForgedLinks(t *testing.T) {
	r := newRig(t, InDir(filepath.Join(t.TempDir(), "logins")))
	b := newBrowser(t, "alice")
	good := r.docs.Link("alice")
	old := r.logins.linkURL(&link{Server: "docs", Principal: "alice", Ends: time.Now().Unix()})
	cut := strings.LastIndexByte(good, '/') + 1
	stranger, _ := New(Options{Place: InDir(t.TempDir()), Keys: []string{key + "2"}, Public: r.URL})
	shown := b.open(good)
	for name, to := range map[string]string{
		"old": old, "cut": good[:len(good)-1], "longer": good + "A", "altered": good[:cut] + other(good[cut]) + good[cut+1:], "empty": r.URL + Path,
		"of another key": stranger.linkURL(&link{Server: "docs", Principal: "alice", Ends: time.Now().Add(time.Hour).Unix()}),
		"a cookie":       r.URL + Path + strings.TrimPrefix(strings.Split(shown.header.Get("Set-Cookie"), ";")[0], "mcpbridge-login-"+idOf(good[cut:])+"="),
	} {
		b.open(to).wantStatus(t, name, http.StatusGone)
	}
	b.open(r.logins.linkURL(&link{Server: "gone", Principal: "alice", Ends: time.Now().Add(time.Hour).Unix()})).wantStatus(t, "of a server that is gone", http.StatusNotFound)
	for name, want := range map[string]string{"Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'", "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff"} {
		if got := shown.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if c := shown.header.Get("Set-Cookie"); !strings.Contains(c, "HttpOnly") || !strings.Contains(c, "SameSite=Lax") || !strings.Contains(c, "Max-Age=") {
		t.Errorf("the cookie is %s", c)
	}
	r.logins.opts.Public = "https://mcp.example.com"
	if c := r.logins.cookie("1"); !c.Secure || !strings.HasPrefix(c.Name, "__Host-") || c.Path != "/" || c.Domain != "" {
		t.Errorf("under https the cookie is %+v", c)
	}
}

// other returns a letter that is not c.
func other(c byte) string {
	if c == 'A' {
		return "B"
	}
	return "A"
}

// A refused login keeps nothing, and the link is still good.
func TestDeniedLogin(t *testing.T) {
	r := newRig(t, InDir(filepath.Join(t.TempDir(), "logins")))
	alice := r.principal("alice")
	b, link := newBrowser(t, "alice"), r.docs.Link(alice)
	r.at.denies = true
	b.logIn(link, wayIssuer).wantStatus(t, "denied", http.StatusForbidden)
	if r.value(alice) != "" {
		t.Error("a login was kept")
	}
	r.at.denies = false
	b.logIn(link, wayIssuer).wantStatus(t, "later", http.StatusOK)
}

// What is kept tells nobody without the key anything, and can't be given to somebody else.
func TestKeptLoginsAreSealed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logins")
	r := newRig(t, InDir(dir))
	alice, bob := r.principal("alice"), r.principal("bob")
	newBrowser(t, "alice").logIn(r.docs.Link(alice), wayIssuer).wantStatus(t, "alice", http.StatusOK)
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		info, _ := os.Stat(file)
		if err != nil || strings.Contains(string(text), "alice") || strings.Contains(string(text), "token") || info.Mode().Perm() != 0o600 {
			t.Errorf("%s, of mode %v: %q, %v", file, info.Mode(), text, err)
		}
	}
	place := InDir(dir)
	record, err := place.Kept(t.Context(), keyOf("docs", alice))
	if err != nil {
		t.Fatal(err)
	}
	for name, forged := range map[string][]byte{"as it is": record, "under bob's key": append([]byte(keyOf("docs", bob)), record[keyLen:]...)} {
		if err := place.Keep(t.Context(), keyOf("docs", bob), forged); err != nil {
			t.Fatal(err)
		}
		if got := r.value(bob); got != "" {
			t.Errorf("alice's record, %s: bob's requests have the token of %s", name, got)
		}
	}
	other := r.logins.Open(ServerOptions{Name: "docs", Flow: login.WebFlow{HTTP: r.docs.opts.Flow.HTTP, URL: "http://127.0.0.1:1/other"}})
	defer other.Close()
	if value, err := other.Authorization(t.Context(), upstream.Behalf{Principal: alice}); err == nil {
		t.Errorf("another URL of the same name gets %s", value)
	}
	if err := r.logins.Replace([]string{key + " new", key}); err != nil || r.value(alice) != "alice" {
		t.Errorf("with a new key before the old one: %v, %q", err, r.value(alice))
	}
	_ = r.logins.Replace([]string{key + " new"})
	r.docs.Forget(alice)
	if got := r.value(alice); got != "" {
		t.Errorf("without the key: %q", got)
	}
	if all, unread, err := r.logins.List(t.Context()); len(all) != 0 || unread != 2 || err != nil {
		t.Errorf("List without the key = %v, %d unread, %v", all, unread, err)
	}
	for _, keys := range [][]string{nil, {"short"}} {
		if CheckKeys(keys) == nil {
			t.Errorf("the keys %q are fine", keys)
		}
	}
}

// A token that has expired is refreshed once, for all requests; one that the server refuses, too.
// Only a final refusal asks for a login again.
func TestRefresh(t *testing.T) {
	r := newRig(t, InDir(filepath.Join(t.TempDir(), "logins")))
	alice := r.principal("alice")
	r.at.life = 1
	newBrowser(t, "alice").logIn(r.docs.Link(alice), wayIssuer).wantStatus(t, "alice", http.StatusOK)
	r.at.mu.Lock()
	r.at.life = 3600
	r.at.mu.Unlock()
	time.Sleep(1100 * time.Millisecond)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if got := r.value(alice); got != "alice" {
				t.Errorf("the token is of %q", got)
			}
		})
	}
	all.Wait()
	if n := r.at.count("refresh_token"); n != 1 {
		t.Errorf("it was refreshed %d times, want once", n)
	}
	value, _ := r.docs.Authorization(t.Context(), upstream.Behalf{Principal: alice})
	again, err := r.docs.Renew(t.Context(), upstream.CredentialRefusal{Behalf: upstream.Behalf{Principal: alice}, Value: value, Status: 401, Attempt: 1})
	if err != nil || again == value {
		t.Errorf("Renew = %q, %v, want another token", again, err)
	}
	r.at.mu.Lock()
	clear(r.at.users)
	r.at.mu.Unlock()
	of := (*upstream.CredentialError)(nil)
	_, err = r.docs.Renew(t.Context(), upstream.CredentialRefusal{Behalf: upstream.Behalf{Principal: alice}, Value: again, Status: 401, Attempt: 1})
	if !errors.As(err, &of) || !of.Login || !of.Caller {
		t.Errorf("after a final refusal: %v, want a login to be wanted", err)
	}
}

// A user who makes room for another one is counted, and the request that has his token refreshed
// meanwhile is not cut off.
func TestMoreUsersThanInMemory(t *testing.T) {
	r := newRig(t, InDir(filepath.Join(t.TempDir(), "logins")))
	var full atomic.Int32
	r.docs.opts.Full = func() { full.Add(1) }
	newBrowser(t, "carol").logIn(r.docs.Link("carol"), wayToken, "token", "static-carol").wantStatus(t, "carol", http.StatusOK)
	value, _ := r.docs.Authorization(t.Context(), upstream.Behalf{Principal: "carol"})
	asked, answer := make(chan struct{}), make(chan struct{})
	r.at.onToken = func() { close(asked); <-answer }
	done := make(chan error)
	go func() {
		_, err := r.docs.Renew(t.Context(), upstream.CredentialRefusal{Behalf: upstream.Behalf{Principal: "carol"}, Value: value, Status: 401, Attempt: 1})
		done <- err
	}()
	<-asked
	for n := range maxUsers + 500 {
		r.docs.Missing(t.Context(), mcp.Principal(fmt.Sprint("user", n)))
	}
	close(answer)
	if err := <-done; err != nil {
		t.Errorf("Renew = %v, want it to go on", err)
	}
	if n := full.Load(); n != 501 {
		t.Errorf("%d users have made room, want 501", n)
	}
	r.at.onToken = nil
	if got := r.value("carol"); got != "carol" {
		t.Errorf("later requests of carol have the token of %q", got)
	}
	if len(r.docs.leaving) != 0 {
		t.Errorf("%d users are still about to leave", len(r.docs.leaving))
	}
}

// An authorization server that has lost its clients is registered at once more, for all principals,
// when it says so: to a refresh, or to the code of a login that was begun before.
//
// Spec: RFC 6749, 5.2.
func TestForgottenClientRegistersAnew(t *testing.T) {
	for _, tt := range []struct {
		name string
		find func(r *rig, alice mcp.Principal)
	}{
		{"refresh", func(r *rig, alice mcp.Principal) {
			value, _ := r.docs.Authorization(t.Context(), upstream.Behalf{Principal: alice})
			r.at.forget()
			_, err := r.docs.Renew(t.Context(), upstream.CredentialRefusal{Behalf: upstream.Behalf{Principal: alice}, Value: value, Status: 401, Attempt: 1})
			if of := (*upstream.CredentialError)(nil); !errors.As(err, &of) || !of.Login {
				t.Errorf("Renew = %v, want a login to be wanted", err)
			}
		}},
		{"code", func(r *rig, alice mcp.Principal) {
			r.at.onCode = r.at.forgetLocked
			newBrowser(t, "alice").logIn(r.docs.Link(alice), wayIssuer).wantStatus(t, "at a server that forgets", http.StatusBadGateway)
			r.at.onCode = nil
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, InDir(filepath.Join(t.TempDir(), "logins")))
			alice, bob := r.principal("alice"), r.principal("bob")
			newBrowser(t, "alice").logIn(r.docs.Link(alice), wayIssuer).wantStatus(t, "alice", http.StatusOK)
			tt.find(r, alice)
			newBrowser(t, "bob").logIn(r.docs.Link(bob), wayIssuer).wantStatus(t, "bob", http.StatusOK)
			newBrowser(t, "alice").logIn(r.docs.Link(alice), wayIssuer).wantStatus(t, "alice again", http.StatusOK)
			if n := r.at.count("register"); n != 2 || r.value(alice) != "alice" || r.value(bob) != "bob" {
				t.Errorf("%d registrations, and requests with the tokens of %q and %q; want two, and each one's own", n, r.value(alice), r.value(bob))
			}
		})
	}
}

// An authorization server that has lost its clients may send nobody back: after an hour in which
// nobody has come, it is registered at once more, and not sooner.
func TestSilentIssuerRegistersAnew(t *testing.T) {
	r := newRig(t, InDir(filepath.Join(t.TempDir(), "logins")))
	alice, kept := r.principal("alice"), clients{r.logins}
	client := func() *login.Client {
		t.Helper()
		c, err := kept.Client(t.Context(), r.at.URL)
		if c == nil || err != nil {
			t.Fatalf("Client = %v, %v, want one", c, err)
		}
		return c
	}
	logIn := func(what string, status int) {
		t.Helper()
		newBrowser(t, "alice").logIn(r.docs.Link(alice), wayIssuer).wantStatus(t, what, status)
	}
	logIn("first", http.StatusOK)
	if c := client(); !c.Asked.IsZero() {
		t.Errorf("client = %+v, want nobody to be waited for", c)
	}
	r.at.forget()
	logIn("forgotten", http.StatusBadRequest)
	logIn("forgotten, again", http.StatusBadRequest)
	c := client()
	if c.Asked.IsZero() || r.at.count("register") != 1 {
		t.Fatalf("client = %+v, %d registrations, want the first one, and to be waiting", c, r.at.count("register"))
	}
	c.Asked = time.Now().Add(-2 * time.Hour)
	if err := kept.KeepClient(t.Context(), r.at.URL, c); err != nil {
		t.Fatal(err)
	}
	logIn("after an hour", http.StatusOK)
	if n := r.at.count("register"); n != 2 || r.value(alice) != "alice" {
		t.Errorf("%d registrations, and requests with the token of %q; want two, and alice's", n, r.value(alice))
	}
}

// A noticing place tells of locks of clients.
type noticing struct {
	Place
	locking func()
}

func (n noticing) Lock(ctx context.Context, name string) (unlock func(), err error) {
	if strings.HasPrefix(name, clientKey) {
		n.locking()
	}
	return n.Place.Lock(ctx, name)
}

// Two users log in before a client is registered at the server's authorization server: it is
// registered once, and both come back as the client that they were sent with.
func TestTwoLogInAtOnce(t *testing.T) {
	var registers, locks atomic.Int32
	second, both := make(chan struct{}), sync.Once{}
	count := func(n *atomic.Int32) {
		if n.Add(1) == 2 {
			both.Do(func() { close(second) })
		}
	}
	r := newRig(t, noticing{InDir(filepath.Join(t.TempDir(), "logins")), func() { count(&locks) }})
	r.at.onAsked = func() { // until the other one registers, or waits
		count(&registers)
		<-second
	}
	var all sync.WaitGroup
	for _, who := range []string{"carol", "dave"} {
		all.Go(func() {
			newBrowser(t, who).logIn(r.docs.Link(mcp.Principal(who)), wayToken, "token", "static-"+who).wantStatus(t, who, http.StatusOK)
		})
	}
	all.Wait()
	if n := r.at.count("register"); n != 1 || r.value("carol") != "carol" || r.value("dave") != "dave" {
		t.Errorf("%d clients were registered, and requests have the tokens of %q and %q; want one, and each one's own", n, r.value("carol"), r.value("dave"))
	}
}

// Scopes that the server asks for are in the next link, and are asked for.
func TestStepUp(t *testing.T) {
	r := newRig(t, InDir(filepath.Join(t.TempDir(), "logins")))
	alice := r.principal("alice")
	newBrowser(t, "alice").logIn(r.docs.Link(alice), wayIssuer).wantStatus(t, "alice", http.StatusOK)
	value, _ := r.docs.Authorization(t.Context(), upstream.Behalf{Principal: alice})
	h := http.Header{"Www-Authenticate": {`Bearer error="insufficient_scope", scope="write admin"`}}
	_, err := r.docs.Renew(t.Context(), upstream.CredentialRefusal{Behalf: upstream.Behalf{Principal: alice}, Value: value, Status: 403, Header: h, Attempt: 1})
	if of := (*upstream.CredentialError)(nil); !errors.As(err, &of) || !of.Login {
		t.Fatalf("Renew = %v, want a login to be wanted", err)
	}
	got := newBrowser(t, "alice").logIn(r.docs.Link(alice), wayIssuer)
	got.wantStatus(t, "again", http.StatusOK)
	if !strings.Contains(strings.Join(got.way, " "), "scope=write+admin") {
		t.Errorf("asked by %q, want for the scopes", got.way)
	}
}

// One logout ends one login, here and at the issuer.
func TestEnd(t *testing.T) {
	r := newRig(t, InDir(filepath.Join(t.TempDir(), "logins")))
	alice, bob := r.principal("alice"), r.principal("bob")
	for user, p := range map[string]mcp.Principal{"alice": alice, "bob": bob} {
		newBrowser(t, user).logIn(r.docs.Link(p), wayIssuer).wantStatus(t, user, http.StatusOK)
	}
	if all, unread, err := r.logins.List(t.Context()); len(all) != 2 || unread != 0 || err != nil || all[0].Principal != alice || all[0].Issuer != r.at.URL || !all[0].Refreshed {
		t.Fatalf("List = %+v, %d, %v", all, unread, err)
	}
	for _, server := range []string{"other", "docs", ""} {
		ended, err := r.logins.End(t.Context(), server, alice)
		if want := server == "docs"; err != nil || (len(ended) == 1) != want || want && !ended[0].Revoked {
			t.Errorf("End at %q = %+v, %v", server, ended, err)
		}
	}
	r.docs.Forget(alice)
	if got, other := r.value(alice), r.value(bob); got != "" || other != "bob" {
		t.Errorf("after it alice has the token of %q, and bob that of %q", got, other)
	}
	if len(r.at.revoked) != 1 || r.at.revoked[0] != "alice" {
		t.Errorf("revoked: %q, want alice's", r.at.revoked)
	}
}

// Await ends with the login, and not before.
func TestAwait(t *testing.T) {
	r := newRig(t, InDir(filepath.Join(t.TempDir(), "logins")))
	alice := r.principal("alice")
	began := time.Now()
	if r.docs.Await(t.Context(), alice, 300*time.Millisecond); time.Since(began) < 300*time.Millisecond {
		t.Error("it did not wait")
	}
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	done := make(chan struct{})
	go func() { r.docs.Await(ctx, alice, time.Minute); close(done) }()
	newBrowser(t, "alice").logIn(r.docs.Link(alice), wayIssuer).wantStatus(t, "alice", http.StatusOK)
	<-done
	if ctx.Err() != nil || r.value(alice) != "alice" {
		t.Errorf("it has waited in vain: %v", ctx.Err())
	}
}

// A certificate of the connection proves who the browser's user is, as it does for clients; where
// there is none, nothing of that is shown.
func TestCertificateProves(t *testing.T) {
	r := newRig(t, InDir(filepath.Join(t.TempDir(), "logins")))
	holder := "alice"
	pages := NewPages(r.logins, map[string]*Door{"docs": {
		Server: r.docs, ByCertificate: func(q *http.Request) bool { return q.Header.Get("Authorization") == "" },
		Authenticate: func(q *http.Request) (mcp.Principal, error) { return mcp.Principal("mtls:" + holder), nil },
	}})
	ask := func(req *http.Request, certified bool) *httptest.ResponseRecorder {
		if req.TLS = nil; certified {
			req.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{}}}}
		}
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, req)
		return w
	}
	link := r.docs.Link("mtls:alice")
	shown := ask(httptest.NewRequest(http.MethodGet, link, nil), true)
	if !strings.Contains(shown.Body.String(), "certificate of this browser") || strings.Contains(shown.Body.String(), `name="token"`) {
		t.Errorf("the page is %s, want the way by certificate alone", shown.Body)
	}
	if other := ask(httptest.NewRequest(http.MethodGet, link, nil), false); strings.Contains(other.Body.String(), "certificate of this browser") {
		t.Errorf("without a certificate the page is %s", other.Body)
	}
	form := url.Values{"way": {wayCertificate}, "word": {wordOf.FindStringSubmatch(shown.Body.String())[1]}}.Encode()
	send := func(certified bool) *httptest.ResponseRecorder {
		req := httptest.NewRequest(http.MethodPost, link, strings.NewReader(form))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Cookie", strings.Split(shown.Header().Get("Set-Cookie"), ";")[0])
		return ask(req, certified)
	}
	if got := send(true); got.Code != http.StatusSeeOther || !strings.HasPrefix(got.Header().Get("Location"), r.at.URL+"/authorize") {
		t.Errorf("with the certificate: %d to %s, want to the server's issuer", got.Code, got.Header().Get("Location"))
	}
	if got := send(false); got.Code != http.StatusBadRequest {
		t.Errorf("without one: %d", got.Code)
	}
	holder = "bob"
	if got := send(true); got.Code != http.StatusForbidden {
		t.Errorf("with that of another: %d, want 403", got.Code)
	}
}
