package auth

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// A keycloak is Keycloak with the realm of docs/issuers.md: the client scope mcp:use writes the
// endpoint as the audience of tokens, and the scope elsewhere another endpoint.
type keycloak struct {
	t    *testing.T
	base string
	http *http.Client
}

const (
	realm = "company"
	// startTime is what a JVM may take on a busy machine.
	startTime = 10 * time.Minute
)

// newKeycloak starts Keycloak, with its data in memory.
func newKeycloak(t *testing.T) *keycloak {
	t.Helper()
	script := peer("bin/keycloak/bin/kc.sh")
	if _, err := os.Stat(script); errors.Is(err, fs.ErrNotExist) {
		t.Skip("Keycloak is not here: it needs a JDK and mvn, see interop/build")
	}
	_, port, _ := strings.Cut(rig.FreeAddr(t), ":")
	p, err := process.Start("keycloak", []string{"KC_BOOTSTRAP_ADMIN_USERNAME=admin", "KC_BOOTSTRAP_ADMIN_PASSWORD=admin"},
		"bash", script, "start-dev", "--db", "dev-mem", "--http-host", "127.0.0.1", "--http-port", port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("Keycloak wrote:\n%s", p.Log())
		}
	})
	k := &keycloak{t, "http://127.0.0.1:" + port, &http.Client{Timeout: time.Minute}}
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	if err := p.Ready(ctx, k.base+"/realms/master", http.StatusOK); err != nil {
		t.Fatal(err)
	}
	k.set("POST", "/admin/realms", map[string]any{"realm": realm, "enabled": true, "sslRequired": "none", "roles": map[string]any{"realm": []any{map[string]any{"name": "reader"}}}})
	for name, audience := range map[string]string{"mcp:use": resource, "elsewhere": "https://mcp.example.com/mcp/other"} {
		k.set("POST", "/admin/realms/company/client-scopes", map[string]any{
			"name": name, "protocol": "openid-connect", "attributes": map[string]any{"include.in.token.scope": "true"},
			"protocolMappers": []any{map[string]any{
				"name": "audience", "protocol": "openid-connect", "protocolMapper": "oidc-audience-mapper",
				"config": map[string]any{"included.custom.audience": audience, "access.token.claim": "true", "id.token.claim": "false"},
			}},
		})
	}
	for name, typed := range map[string]string{"editor": "false", "typed": "true"} {
		k.set("POST", "/admin/realms/company/clients", map[string]any{
			"clientId": name, "publicClient": true, "standardFlowEnabled": true, "redirectUris": []any{redirectURI},
			"defaultClientScopes": []any{"basic", "roles", "profile", "acr", "web-origins"}, "optionalClientScopes": []any{"mcp:use", "elsewhere"},
			"attributes": map[string]any{"access.token.header.type.rfc9068": typed, "pkce.code.challenge.method": "S256"},
		})
	}
	for _, name := range []string{"ada", "bob"} {
		k.set("POST", "/admin/realms/company/users", map[string]any{
			"username": name, "enabled": true, "email": name + "@example.com", "emailVerified": true, "firstName": name, "lastName": name,
			"credentials": []any{map[string]any{"type": "password", "value": "pw-" + name}},
		})
	}
	k.grantReader("ada")
	return k
}

// redirectURI is where nobody listens: the code is taken from the redirect.
const redirectURI = "http://127.0.0.1:1/callback"

// grantReader gives a user the role reader.
func (k *keycloak) grantReader(user string) {
	var users []struct{ ID string }
	k.decode(k.admin("GET", "/admin/realms/company/users?exact=true&username="+user, nil), &users)
	var role map[string]any
	k.decode(k.admin("GET", "/admin/realms/company/roles/reader", nil), &role)
	k.set("POST", "/admin/realms/company/users/"+users[0].ID+"/role-mappings/realm", []any{role})
}

// admin sends a request of the administrator.
func (k *keycloak) admin(method, path string, body any) []byte {
	k.t.Helper()
	var got struct {
		Token string `json:"access_token"`
	}
	k.decode(k.form("/realms/master", url.Values{"grant_type": {"password"}, "client_id": {"admin-cli"}, "username": {"admin"}, "password": {"admin"}}), &got)
	text, err := json.Marshal(body)
	if err != nil {
		k.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(k.t.Context(), method, k.base+path, bytes.NewReader(text))
	if err != nil {
		k.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+got.Token)
	req.Header.Set("Content-Type", "application/json")
	return k.do(req)
}

func (k *keycloak) set(method, path string, body any) { k.t.Helper(); k.admin(method, path, body) }

// form posts to the token endpoint of a realm.
func (k *keycloak) form(realm string, values url.Values) []byte {
	k.t.Helper()
	req, err := http.NewRequestWithContext(k.t.Context(), "POST", k.base+realm+"/protocol/openid-connect/token", strings.NewReader(values.Encode()))
	if err != nil {
		k.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return k.do(req)
}

func (k *keycloak) do(req *http.Request) []byte {
	k.t.Helper()
	res, err := k.http.Do(req)
	if err != nil {
		k.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		k.t.Fatalf("%s %s = %d %s, %v", req.Method, req.URL, res.StatusCode, text, err)
	}
	return text
}

func (k *keycloak) decode(text []byte, into any) {
	k.t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		k.t.Fatalf("%v in %s", err, text)
	}
}

var loginForm = regexp.MustCompile(`action="([^"]+)"`)

// login has a user log in with a browser, for a client, and returns what the client gets.
func (k *keycloak) login(client, user, scope string) (got tokens) {
	k.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		k.t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	const verifier = "a-verifier-that-is-long-enough-for-the-specification"
	sum := sha256.Sum256([]byte(verifier))
	query := url.Values{"response_type": {"code"}, "client_id": {client}, "redirect_uri": {redirectURI}, "scope": {scope}, "state": {"s"},
		"code_challenge_method": {"S256"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}}
	res, err := browser.Get(k.base + "/realms/company/protocol/openid-connect/auth?" + query.Encode())
	if err != nil {
		k.t.Fatal(err)
	}
	page := read(k.t, res)
	action := loginForm.FindSubmatch(page.body)
	if action == nil {
		k.t.Fatalf("the page is %d %s", page.status, page.body)
	}
	if res, err = browser.PostForm(html.UnescapeString(string(action[1])), url.Values{"username": {user}, "password": {"pw-" + user}}); err != nil {
		k.t.Fatal(err)
	}
	defer res.Body.Close()
	to, err := res.Location()
	if err != nil || to.Query().Get("code") == "" {
		k.t.Fatalf("the login ends with %d at %v, %v", res.StatusCode, to, err)
	}
	k.decode(k.form("/realms/company", url.Values{"grant_type": {"authorization_code"}, "client_id": {client}, "redirect_uri": {redirectURI},
		"code": {to.Query().Get("code")}, "code_verifier": {verifier}}), &got)
	return got
}

// keyText is the public key of the realm, as people know it: a forger's secret.
func (k *keycloak) keyText() []byte {
	var of struct {
		Key string `json:"public_key"`
	}
	req, err := http.NewRequestWithContext(k.t.Context(), "GET", k.base+"/realms/company", nil)
	if err != nil {
		k.t.Fatal(err)
	}
	k.decode(k.do(req), &of)
	return []byte("-----BEGIN PUBLIC KEY-----\n" + of.Key + "\n-----END PUBLIC KEY-----\n")
}

// Keycloak's tokens are let in by the lines of docs/issuers.md, and by the role that they have below
// realm_access; nothing else that it issues is, nor is a forgery.
func TestTokensOfKeycloak(t *testing.T) {
	k := newKeycloak(t)
	var page recipe
	for _, r := range recipes(t) {
		if r.name == "Keycloak" {
			page = r
		}
	}
	lines := strings.Replace(page.config, page.issuer, k.base+"/realms/company", 1)
	if lines == page.config {
		t.Fatalf("the page has %s, want Keycloak's lines", page.config)
	}
	server := newServer(t)
	b := newBridge(t, lines+fmt.Sprintf(`servers:
  files: {url: %q}
  roles: {url: %q, auth: {jwt: {issuer: %q, audience: [%q], types: [JWT]}}, policy: {default: deny, rules: [{allow: {claims: {realm_access.roles: [reader]}}}]}}
`, server, server, k.base+"/realms/company", resource))
	rfc9068 := newBridge(t, strings.Replace(lines, "    types: [at+jwt, JWT]\n", "", 1)+fmt.Sprintf("servers: {files: {url: %q}}\n", server))
	ada, bob, typed := k.login("editor", "ada", "openid mcp:use"), k.login("editor", "bob", "openid mcp:use"), k.login("typed", "ada", "openid mcp:use")
	if said := claims(t, ada.Access); said["aud"] == nil || said["typ"] != "Bearer" || said["sub"] == nil || said["iss"] != k.base+"/realms/company" {
		t.Fatalf("the token is %v, want one as the page shows it", said)
	}
	status := func(b *bridge, server, token string) int {
		return read(t, post(t, b.endpoint(server), token, "tools/list", "")).status
	}
	for _, tt := range []struct {
		name string
		got  int
		want int
	}{
		{"the access token", status(b, "files", ada.Access), 200},
		{"one of the other header type, by both", status(b, "files", typed.Access), 200},
		{"that one where types has no JWT", status(rfc9068, "files", typed.Access), 200},
		{"the usual one where types has no JWT", status(rfc9068, "files", ada.Access), 401},
		{"an ID token", status(b, "files", ada.ID), 401},
		{"a refresh token", status(b, "files", ada.Refresh), 401},
		{"one for another endpoint", status(b, "files", k.login("editor", "ada", "openid elsewhere").Access), 401},
		{"one without an audience", status(b, "files", k.login("editor", "ada", "openid").Access), 401},
	} {
		if tt.got != tt.want {
			t.Errorf("%s = %d, want %d", tt.name, tt.got, tt.want)
		}
	}
	for who, token := range map[string]string{"ada": ada.Access, "bob": bob.Access} {
		got := read(t, post(t, b.endpoint("roles"), token, "tools/list", ""))
		if empty := bytes.Contains(got.body, []byte(`"tools":[]`)); got.status != 200 || empty != (who == "bob") {
			t.Errorf("%s lists %d %s, want tools for readers alone", who, got.status, got.body)
		}
	}
	for name, token := range forgedOf(ada.Access, bob.Access, k.keyText()) {
		if got := status(b, "files", token); got != 401 {
			t.Errorf("%s = %d, want 401", name, got)
		}
	}
	refreshed := tokens{}
	k.decode(k.form("/realms/company", url.Values{"grant_type": {"refresh_token"}, "client_id": {"editor"}, "refresh_token": {ada.Refresh}}), &refreshed)
	if got := status(b, "files", refreshed.Access); got != 200 || refreshed.Access == ada.Access {
		t.Errorf("the refreshed token = %d, want 200", got)
	}
}

// forgedOf returns tokens that are made of two real ones, or signed with what is public.
func forgedOf(one, two string, public []byte) map[string]string {
	encode := base64.RawURLEncoding.EncodeToString
	a, b := strings.Split(one, "."), strings.Split(two, ".")
	mac := hmac.New(sha256.New, public)
	hs := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + a[1]
	_, _ = mac.Write([]byte(hs)) // never fails
	payload, _ := base64.RawURLEncoding.DecodeString(a[1])
	longer := regexp.MustCompile(`"exp":\d+`).ReplaceAll(payload, []byte(`"exp":9999999999`))
	return map[string]string{
		"the signature of another token": a[0] + "." + a[1] + "." + b[2],
		"the claims of another token":    a[0] + "." + b[1] + "." + a[2],
		"no signature":                   a[0] + "." + a[1] + ".",
		"alg none":                       encode([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + a[1] + ".",
		"signed with the public key":     hs + "." + encode(mac.Sum(nil)),
		"one that lives longer":          a[0] + "." + encode(longer) + "." + a[2],
	}
}
