package login

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// failing runs a login that has to fail, and checks that no token was asked for and none
// is stored.
func failing(t *testing.T, r *rig, f *Flow, why string) {
	t.Helper()
	_, err := f.Run(testContext(t), r.challenge())
	wantError(t, err, why)
	if n := len(r.forms()); n != 0 {
		t.Errorf("%d requests for a token, want none", n)
	}
	if _, err := f.Store.Load(r.url()); !errors.Is(err, ErrNoLogin) {
		t.Errorf("Load = %v, want ErrNoLogin", err)
	}
}

// Mix-up: an authorization server that the attacker controls has the browser bring the
// code of an honest one, which would be sent to the attacker's token endpoint.
//
// Spec: RFC 9207, 1; 2026-07-28, basic/authorization, Authorization Response Validation.
func TestRefusesAnswerOfAnotherIssuer(t *testing.T) {
	for _, tt := range []struct {
		name  string
		sends bool
		iss   func(issuer string) []string
	}{
		{"another", true, func(string) []string { return []string{"https://honest.example"} }},
		{"another, though it says it sends none", false, func(string) []string { return []string{"https://honest.example"} }},
		{"none, though it says it sends one", true, func(string) []string { return nil }},
		{"a slash more", true, func(i string) []string { return []string{i + "/"} }},
		{"another case", true, func(i string) []string { return []string{strings.ToUpper(i)} }},
		{"empty", false, func(string) []string { return []string{""} }},
		{"two", true, func(i string) []string { return []string{i, "https://honest.example"} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.meta["authorization_response_iss_parameter_supported"] = tt.sends
			r.redirect = func(_ *url.URL, q url.Values) { q["iss"] = tt.iss(r.as.URL) }
			failing(t, r, r.flow(), "was not used")
		})
	}
}

// What an answer of a foreign issuer says went wrong is not shown: it may be there to
// mislead.
func TestShowsNoErrorOfAnotherIssuer(t *testing.T) {
	r := newRig(t)
	r.redirect = func(_ *url.URL, q url.Values) {
		q.Del("code")
		q.Set("iss", "https://evil.example")
		q.Set("error", "access_denied")
		q.Set("error_description", "call 555-1234 and tell your password")
	}
	f := r.flow()
	_, err := f.Run(testContext(t), r.challenge())
	if err == nil || strings.Contains(err.Error(), "555") || strings.Contains(err.Error(), "denied") {
		t.Errorf("error = %v, want one that repeats nothing of the answer", err)
	}
}

// Login CSRF: a page sends the browser to the callback with the attacker's code. Only the
// answer with the state of the request counts; others don't end the login either.
func TestIgnoresAnswersWithForgedState(t *testing.T) {
	r := newRig(t)
	f := r.flow()
	f.Browse = func(to string) error {
		u, _ := url.Parse(to)
		back, state := u.Query().Get("redirect_uri"), u.Query().Get("state")
		for _, q := range []string{"", "code=evil", "code=evil&state=", "code=evil&state=" + state[:len(state)-1], "code=evil&state=" + strings.ToLower(state),
			"code=evil&state=" + state + "&state=x", "error=access_denied&state=x", "state=x&state=" + state + "&code=evil"} {
			resp, err := http.Get(back + "?" + q)
			if err != nil {
				return err
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusBadRequest {
				t.Errorf("%q was answered with %d, want 400", q, resp.StatusCode)
			}
		}
		return r.browse(to)
	}
	if _, err := f.Run(testContext(t), r.challenge()); err != nil {
		t.Fatal(err)
	}
	if code := r.forms()[0].Get("code"); code != "code-1" {
		t.Errorf("the code %q was used", code)
	}
}

// The callback takes one answer, at one path, by one method, and under its own name: a
// page that another name leads to (DNS rebinding) gets nothing done.
func TestCallbackIsNarrow(t *testing.T) {
	back, err := listenAt(hostAddress, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer back.close()
	back.expect(expected{state: "s", issuer: "https://as.example"})
	if !strings.HasPrefix(back.redirectURI(), "http://127.0.0.1:") {
		t.Fatalf("redirect URI %s, want one on loopback", back.redirectURI())
	}
	root := strings.TrimSuffix(back.redirectURI(), callbackPath)
	for _, tt := range []struct {
		method, path, host string
		want               int
	}{
		{"GET", "/callback?state=s&code=c", "evil.example", http.StatusMisdirectedRequest},
		{"GET", "/callback?state=s&code=c", "localhost", http.StatusMisdirectedRequest},
		{"POST", "/callback?state=s&code=c", "", http.StatusMethodNotAllowed},
		{"GET", "/?state=s&code=c", "", http.StatusNotFound},
		{"GET", "/callback?state=s&code=c", "", http.StatusOK},
		{"GET", "/callback?state=s&code=other", "", http.StatusBadRequest},
	} {
		req, _ := http.NewRequest(tt.method, root+tt.path, nil)
		if tt.host != "" {
			req.Host = tt.host
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tt.want || strings.Contains(string(text), "code=") {
			t.Errorf("%s %s of %q = %d %q, want %d", tt.method, tt.path, tt.host, resp.StatusCode, text, tt.want)
		}
		if resp.Header.Get("Referrer-Policy") != "no-referrer" || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("header %v lets the code leak", resp.Header)
		}
	}
	if code, err := back.await(testContext(t), nil); code != "c" || err != nil {
		t.Errorf("await = %q, %v, want the first answer's code", code, err)
	}
}

// A metadata document that claims to be another issuer's would have tokens and codes sent
// to the attacker in that name.
//
// Spec: RFC 8414, 3.3.
func TestRefusesMetadataOfAnotherIssuer(t *testing.T) {
	for _, issuer := range []any{"https://honest.example", nil, ""} {
		r := newRig(t)
		r.meta["issuer"] = issuer
		failing(t, r, r.flow(), "of another issuer")
	}
	r := newRig(t)
	r.meta["issuer"] = r.as.URL + "/"
	failing(t, r, r.flow(), "of another issuer")
}

// Endpoints inside, of other schemes, or in the open. The browser must not be led to a URL
// that starts a program, either.
func TestRefusesEndpointsThatPointInside(t *testing.T) {
	for _, endpoint := range []string{"authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"} {
		for _, to := range []string{"http://169.254.169.254/x", "https://10.0.0.1/x", "file:///etc/passwd", "javascript:alert(1)", "-oProxyCommand=x", "calculator:", "http://as.example/x", "/relative"} {
			r := newRig(t)
			r.meta[endpoint] = to
			f := r.flow()
			f.Browse = func(u string) error { t.Errorf("%s = %s: the browser was sent to %s", endpoint, to, u); return nil }
			failing(t, r, f, "reading the metadata of the authorization server")
		}
	}
}

// The server's metadata leads to an issuer, or to a document, inside.
func TestRefusesIssuersThatPointInside(t *testing.T) {
	for _, issuer := range []string{"https://10.0.0.1", "http://169.254.169.254", "https://192.168.1.1:8443/realms/x", "http://internal.example", "file:///etc"} {
		r := newRig(t)
		r.prm["authorization_servers"] = []string{issuer}
		failing(t, r, r.flow(), "authorization server")
	}
	r := newRig(t)
	_, err := r.flow().Run(testContext(t), Challenge{ResourceMetadata: "https://10.0.0.1/metadata"})
	wantError(t, err, "private")
}

// Without PKCE a code that is stolen on its way is as good as the login.
//
// Spec: 2026-07-28, basic/authorization/security-considerations, Authorization Code
// Protection.
func TestRefusesServersWithoutPKCE(t *testing.T) {
	for _, methods := range []any{nil, []string{}, []string{"plain"}, []string{"s256"}} {
		r := newRig(t)
		r.meta["code_challenge_methods_supported"] = methods
		f := r.flow()
		f.Browse = func(string) error { t.Error("the browser was sent away"); return nil }
		failing(t, r, f, "PKCE")
	}
}

// What is assumed of an authorization server is assumed of that one, if it says nothing. One
// that says what it supports is believed, and a server can't name another one.
func TestAssumesPKCEOfOneIssuer(t *testing.T) {
	assuming := func(r *rig, of string) (*Flow, *[]string) {
		f, told := r.flow(), &[]string{}
		f.AssumePKCE = of
		f.Tell = func(text string) { *told = append(*told, text) }
		return f, told
	}
	r := newRig(t)
	r.meta["code_challenge_methods_supported"] = nil
	f, told := assuming(r, r.as.URL)
	if _, err := f.Run(testContext(t), r.challenge()); err != nil {
		t.Fatalf("at the issuer = %v", err)
	}
	if len(*told) != 1 || !strings.Contains((*told)[0], r.as.URL) || !strings.Contains((*told)[0], "the specification forbids") {
		t.Errorf("told %q, want what is assumed", *told)
	}
	if form := r.forms()[0]; form.Get("code_verifier") == "" {
		t.Error("the login is without PKCE")
	}
	for _, q := range r.codes {
		if q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" {
			t.Errorf("the browser is sent with %v, want a challenge", q)
		}
	}
	for _, methods := range []any{[]string{}, []string{"plain"}, []string{"s256"}} {
		r := newRig(t)
		r.meta["code_challenge_methods_supported"] = methods
		f, _ := assuming(r, r.as.URL)
		f.Browse = func(string) error { t.Error("the browser was sent away"); return nil }
		failing(t, r, f, "PKCE")
	}
	r = newRig(t)
	r.meta["code_challenge_methods_supported"] = nil
	f, _ = assuming(r, "https://login.microsoftonline.com/a/v2.0")
	f.Browse = func(string) error { t.Error("the browser was sent away"); return nil }
	failing(t, r, f, "PKCE")
	r = newRig(t)
	f, told = assuming(r, r.as.URL)
	if _, err := f.Run(testContext(t), r.challenge()); err != nil || len(*told) != 0 {
		t.Errorf("at one that says S256 = %v, told %q, want nothing", err, *told)
	}
}

// Audience confusion: a server names the resource of another, so that the token which it
// gets is good there.
//
// Spec: RFC 9728, 3.3, 7.3.
func TestRefusesMetadataOfAnotherResource(t *testing.T) {
	for _, tt := range []struct {
		name     string
		resource func(r *rig) any
	}{
		{"another host", func(*rig) any { return "https://bank.example/mcp" }},
		{"another path", func(r *rig) any { return r.rs.URL + "/other" }},
		{"below it", func(r *rig) any { return r.url() + "/below" }},
		{"a prefix that is no segment", func(r *rig) any { return r.rs.URL + "/m" }},
		{"the origin, which does not say so itself", func(r *rig) any { return r.rs.URL }},
		{"another scheme", func(r *rig) any { return strings.Replace(r.url(), "http", "https", 1) }},
		{"another port", func(*rig) any { return "http://127.0.0.1:1/mcp" }},
		{"with a user", func(r *rig) any { return strings.Replace(r.url(), "://", "://bank.example@", 1) }},
		{"none", func(*rig) any { return nil }},
		{"not a URL", func(*rig) any { return "mcp" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.prm["resource"] = tt.resource(r)
			failing(t, r, r.flow(), "reading the metadata that the server names")
		})
	}
}

// The other resource may well exist, and say so itself.
func TestRefusesAnotherResourceThatExists(t *testing.T) {
	r, bank := newRig(t), newRig(t)
	r.prm["resource"] = bank.url()
	failing(t, r, r.flow(), "about another resource")
}

// A document about the whole origin counts if the origin itself has it at its well-known
// place, and not if one of the servers there makes it up.
func TestOriginMaySpeakForItsServers(t *testing.T) {
	r := newRig(t)
	r.prm["resource"] = r.rs.URL
	mux := r.rs.Config.Handler.(*http.ServeMux)
	mux.HandleFunc("/.well-known/oauth-protected-resource", r.resource)
	l, err := r.flow().Run(testContext(t), r.challenge())
	if err != nil || l.Resource != r.rs.URL {
		t.Errorf("login = %+v, %v, want one for the origin", l, err)
	}
}

// Metadata that redirects could lead inside, or have somebody else answer.
func TestFollowsNoRedirects(t *testing.T) {
	r := newRig(t)
	r.as.Config.Handler = http.RedirectHandler("http://127.0.0.1:1/", http.StatusFound)
	failing(t, r, r.flow(), "redirect")
	r = newRig(t)
	r.rs.Config.Handler = http.RedirectHandler("http://127.0.0.1:1/", http.StatusFound)
	failing(t, r, r.flow(), "redirect")
}

// A token endpoint that redirects would have the code and the secret sent elsewhere.
func TestSendsNoSecretAfterRedirect(t *testing.T) {
	r := newRig(t)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		text, _ := io.ReadAll(req.Body)
		t.Errorf("was sent %q", text)
	}))
	defer elsewhere.Close()
	r.onToken = func(w http.ResponseWriter, _ url.Values) bool {
		w.Header().Set("Location", elsewhere.URL)
		w.WriteHeader(http.StatusPermanentRedirect)
		return true
	}
	_, err := r.flow().Run(testContext(t), r.challenge())
	wantError(t, err, "redirect")
}

// Huge and slow documents end with an error in bounded time and memory.
func TestBoundsMetadata(t *testing.T) {
	r := newRig(t)
	r.meta["x"] = strings.Repeat("x", 2<<20)
	failing(t, r, r.flow(), "larger than")
	r = newRig(t)
	r.prm["x"] = strings.Repeat("x", 2<<20)
	failing(t, r, r.flow(), "larger than")
	r = newRig(t)
	r.rs.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() })
	f := r.flow()
	f.Wait = 500 * time.Millisecond
	failing(t, r, f, "nobody has logged in within")
}

// Tokens that would forge headers, or that the server could not read, are not used.
func TestRefusesOddTokens(t *testing.T) {
	for name, answer := range map[string]string{
		"a line break":     `{"access_token":"a\r\nX-Admin: 1","token_type":"Bearer"}`,
		"a space":          `{"access_token":"a b","token_type":"Bearer"}`,
		"another type":     `{"access_token":"a","token_type":"DPoP"}`,
		"no type":          `{"access_token":"a"}`,
		"no token":         `{"token_type":"Bearer"}`,
		"too long":         fmt.Sprintf(`{"access_token":%q,"token_type":"Bearer"}`, strings.Repeat("a", maxToken+1)),
		"a page":           `<html>`,
		"an error with OK": `{"error":"invalid_request","access_token":"a","token_type":"Bearer"}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.onToken = func(w http.ResponseWriter, _ url.Values) bool {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, answer)
				return true
			}
			f := r.flow()
			if l, err := f.Run(testContext(t), r.challenge()); err == nil {
				t.Errorf("login = %+v, want an error", l)
			}
			if _, err := f.Store.Load(r.url()); !errors.Is(err, ErrNoLogin) {
				t.Errorf("Load = %v, want ErrNoLogin", err)
			}
		})
	}
}

// What an authorization server says must not bring our secrets into logs.
func TestErrorsRepeatNoSecret(t *testing.T) {
	r := newRig(t)
	r.onToken = func(w http.ResponseWriter, form url.Values) bool {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":"invalid_client\u001b[31m","error_description":"%s %s %s"}`, form.Get("client_secret"), form.Get("subject_token"), "\\u001b]0;x")
		return true
	}
	r.meta["token_endpoint_auth_methods_supported"] = []string{authPost}
	e, err := TokenExchange(r.issuer())
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Authorization(testContext(t), upstream.Behalf{Principal: "ada", Identity: identity("ada", "token-of-ada")})
	if err == nil || strings.Contains(err.Error(), "a secret") || strings.Contains(err.Error(), "token-of-ada") || strings.ContainsRune(err.Error(), '\x1b') {
		t.Errorf("error = %v, want one without secrets and control characters", err)
	}
}

// Confused deputy: a caller gets the gateway to use another's token. One that has none, or
// whose token has expired, gets none; a token of few rights is not exchanged for one of
// many that the same principal once had.
func TestExchangeIsTheCallersOwn(t *testing.T) {
	r := newRig(t)
	e, err := TokenExchange(r.issuer())
	if err != nil {
		t.Fatal(err)
	}
	strong, weak := identity("ada", "strong"), identity("ada", "weak")
	e.Saw(strong)
	first, err := e.Authorization(testContext(t), upstream.Behalf{Principal: "ada", Identity: strong})
	if err != nil {
		t.Fatal(err)
	}
	second, err := e.Authorization(testContext(t), upstream.Behalf{Principal: "ada", Identity: weak})
	if err != nil || second == first || r.forms()[1].Get("subject_token") != "weak" {
		t.Errorf("the weak token was exchanged for %q (%v), as the strong one was", second, err)
	}
	for _, b := range []upstream.Behalf{{Principal: "eve"}, {Principal: "eve", Identity: &mcp.Identity{Principal: "eve"}}, {Principal: mcp.Anonymous}} {
		if value, err := e.Authorization(testContext(t), b); err == nil {
			t.Errorf("%+v got %q", b, value)
		}
	}
	old := identity("bob", "token of bob")
	old.Expires = time.Now().Add(-time.Second)
	e.Saw(old)
	if value, err := e.Authorization(testContext(t), upstream.Behalf{Principal: "bob", Identity: old}); err == nil {
		t.Errorf("an expired token was exchanged for %q", value)
	}
	short := identity("carol", "token of carol")
	short.Expires = time.Now().Add(time.Minute)
	h, err := e.holder(upstream.Behalf{Principal: "carol", Identity: short})
	if err == nil {
		_, err = h.value(testContext(t))
	}
	if err != nil || h.now.Load().Expires.After(short.Expires) {
		t.Errorf("%v: the exchanged token outlives the caller's", err)
	}
}

// An authorization server that hands the caller's own token back would have it passed on,
// which the specification forbids.
func TestExchangeRefusesTheSameToken(t *testing.T) {
	r := newRig(t)
	r.onToken = func(w http.ResponseWriter, form url.Values) bool {
		writeJSON(w, map[string]any{"access_token": form.Get("subject_token"), "token_type": "Bearer", "expires_in": 60})
		return true
	}
	e, err := TokenExchange(r.issuer())
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Authorization(testContext(t), upstream.Behalf{Principal: "ada", Identity: identity("ada", "token-of-ada")})
	wantError(t, err, "the caller's own token")
}

// A refresh that the client who caused it does not wait for is not cut off: the
// authorization server may have rotated the refresh token already.
func TestRefreshOutlivesItsRequest(t *testing.T) {
	r := newRig(t)
	s := storedOf(t, r, r.flow())
	asked := make(chan struct{})
	r.onToken = func(http.ResponseWriter, url.Values) bool {
		close(asked)
		time.Sleep(200 * time.Millisecond)
		return false
	}
	ctx, cancel := context.WithCancel(testContext(t))
	go func() { <-asked; cancel() }()
	_, _ = s.Renew(ctx, refusal(http.StatusUnauthorized, "Bearer access-1", "", 1))
	if l, err := s.Keeper.Load(testContext(t)); err != nil || l.Token.RefreshToken != "refresh-2" {
		t.Errorf("stored: %+v, %v, want the rotated token", l, err)
	}
}

// An answer to initialize or a stream may hold a challenge of any length and form.
func FuzzReadChallenge(f *testing.F) {
	for _, seed := range []string{`Bearer`, `Bearer scope="a b", error=x`, `Basic realm="x, Bearer scope=\"y\"", Bearer scope=z`, `Bearer a=`, `Bearer "`, `DPoP x=y,Bearer resource_metadata="https://x/"`, "Bearer scope=\x00", ",,,", "token68=="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := ReadChallenge(http.Header{"Www-Authenticate": {text}})
		if len(c.Scope)+len(c.Error)+len(c.ResourceMetadata) > len(text) {
			t.Errorf("ReadChallenge(%q) = %+v, more than the text", text, c)
		}
	})
}

func TestReadChallenge(t *testing.T) {
	for _, tt := range []struct {
		in   []string
		want Challenge
	}{
		{nil, Challenge{}},
		{[]string{`Bearer`}, Challenge{}},
		{[]string{`Bearer resource_metadata="https://x/y", scope="a b"`}, Challenge{Scope: "a b", ResourceMetadata: "https://x/y"}},
		{[]string{`bearer Error = "insufficient_scope" ,scope=a`}, Challenge{Error: "insufficient_scope", Scope: "a"}},
		{[]string{`Basic realm="Bearer scope=\"evil\""`, `Bearer scope="good"`}, Challenge{Scope: "good"}},
		{[]string{`Basic dXNlcjpwYXNz==, Bearer scope=x`}, Challenge{Scope: "x"}},
		{[]string{`DPoP algs="ES256", Bearer error="invalid_token", Basic realm=x`}, Challenge{Error: "invalid_token"}},
		{[]string{`Bearer scope="first", scope="second"`}, Challenge{Scope: "first"}},
		{[]string{`Bearer scope="unterminated`}, Challenge{}},
		{[]string{`Bearer scope="` + strings.Repeat("a", maxChallenge) + `"`}, Challenge{}},
	} {
		if got := ReadChallenge(http.Header{"Www-Authenticate": tt.in}); got != tt.want {
			t.Errorf("ReadChallenge(%q) = %+v, want %+v", tt.in, got, tt.want)
		}
	}
}
