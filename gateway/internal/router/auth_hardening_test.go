package router

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/issuertest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
)

type header = map[jose.HeaderKey]any

var accessToken = header{"typ": "at+jwt"}

// unsigned returns a token of parts that are written as they are.
func unsigned(head string, claims map[string]any, signature string) string {
	text, _ := json.Marshal(claims)
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(head)) + "." + encode(text) + "." + signature
}

// A forgedToken is one that nobody may get in with.
type forgedToken struct{ name, token string }

// forgedTokens returns tokens that the issuer has not signed for this endpoint, whatever they
// say. Each has a reason to be tried: RFC 8725, 2 lists most of them.
func (g *guardedRig) forgedTokens(t *testing.T) []forgedToken {
	t.Helper()
	own, rsaKey := g.issuer.Key(), issuertest.NewKey(t, "r1", "RS256")
	g.issuer.SetKeys(own, rsaKey)
	stranger := issuertest.New(t)
	claims := func(changes map[string]any) map[string]any { return g.issuer.Claims(resource, changes) }
	with := func(changes map[string]any) string { return issuertest.Sign(t, own, accessToken, claims(changes)) }
	headed := func(h header) string { return issuertest.Sign(t, own, h, claims(nil)) }
	hmac := func(secret []byte) string {
		s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: secret, KeyID: "r1"}}, (&jose.SignerOptions{}).WithType("at+jwt"))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(claims(nil))
		signed, _ := s.Sign(text)
		token, _ := signed.CompactSerialize()
		return token
	}
	der, _ := x509.MarshalPKIXPublicKey(rsaKey.Private.Public())
	now := time.Now()
	otherKey := issuertest.NewKey(t, own.ID, "ES256")
	return []forgedToken{
		{"for another endpoint of this gateway", with(map[string]any{"aud": "https://mcp.example.com/mcp/other"})},
		{"for the host and not the endpoint", with(map[string]any{"aud": "https://mcp.example.com"})},
		{"for an endpoint that begins alike", with(map[string]any{"aud": resource + "x"})},
		{"for the endpoint with a slash", with(map[string]any{"aud": resource + "/"})},
		{"for no audience", with(map[string]any{"aud": nil})},
		{"of another issuer", stranger.Token(resource, nil)},
		{"of another issuer under the name of this one", issuertest.Sign(t, stranger.Key(), accessToken, claims(nil))},
		{"of this key under the name of another issuer", with(map[string]any{"iss": stranger.URL})},
		{"of an issuer with a slash", with(map[string]any{"iss": g.issuer.URL + "/"})},
		{"of no issuer", with(map[string]any{"iss": nil})},
		{"of another key with the same id", issuertest.Sign(t, otherKey, accessToken, claims(nil))},
		{"of a key that does not exist", issuertest.Sign(t, issuertest.NewKey(t, "k9", "ES256"), accessToken, claims(nil))},
		{"expired", with(map[string]any{"exp": now.Add(-2 * time.Minute).Unix()})},
		{"that never expires", with(map[string]any{"exp": nil})},
		{"not valid yet", with(map[string]any{"nbf": now.Add(2 * time.Minute).Unix()})},
		{"from the future", with(map[string]any{"iat": now.Add(2 * time.Minute).Unix()})},
		{"of nobody", with(map[string]any{"sub": nil})},
		{"unsigned", unsigned(`{"alg":"none","typ":"at+jwt"}`, claims(nil), "")},
		{"unsigned, in another case", unsigned(`{"alg":"nOnE","typ":"at+jwt"}`, claims(nil), "")},
		{"without an algorithm", unsigned(`{"typ":"at+jwt","kid":"k1"}`, claims(nil), "AAAA")},
		{"with the signature left out", with(nil)[:strings.LastIndex(with(nil), ".")+1]},
		{"of which a claim was changed", tampered(with(nil), claims(map[string]any{"sub": "eve"}))},
		{"signed with the public key as a shared secret", hmac(der)},
		{"signed with the id of the key as a shared secret", hmac([]byte("r1r1r1r1r1r1r1r1r1r1r1r1r1r1r1r1"))},
		{"naming where its key is", headed(header{"typ": "at+jwt", "jku": stranger.URL + "/keys"})},
		{"naming where its certificate is", headed(header{"typ": "at+jwt", "x5u": stranger.URL + "/cert"})},
		{"bringing its key", issuertest.Sign(t, otherKey, header{"typ": "at+jwt", "jwk": jose.JSONWebKey{Key: otherKey.Private.Public()}}, claims(nil))},
		{"repeating its key", headed(header{"typ": "at+jwt", "jwk": jose.JSONWebKey{Key: own.Private.Public()}})},
		{"with an extension", headed(header{"typ": "at+jwt", "crit": []string{"x"}, "x": 1})},
		{"of another type", headed(header{"typ": "logout+jwt"})},
		{"of no type", headed(header{})},
		{"of the type of ID tokens", headed(header{"typ": "JWT"})},
		{"that is an ID token", with(map[string]any{"nonce": "n"})},
		{"that is a logout token", with(map[string]any{"events": map[string]any{}})},
		{"bound to a key of its client", with(map[string]any{"cnf": map[string]any{"jkt": "x"}})},
		{"with a name too long to keep", with(map[string]any{"sub": strings.Repeat("x", 2000)})},
		{"of a type that nobody has named", headed(header{"typ": "missing"})},
		{"of a type of one issuer's own", headed(header{"typ": "application/okta-internal-at+jwt"})},
		{"of a type that is no text", headed(header{"typ": 1})},
		{"of an empty type", headed(header{"typ": ""})},
		{"that says that it identifies", with(map[string]any{"token_use": "id"})},
		{"that says that it refreshes", with(map[string]any{"typ": "Refresh"})},
		{"for a client and not the endpoint", with(map[string]any{"aud": "6e74172b-be56-4843-9ff4-e66a39bb12e3"})},
		{"for the issuer", with(map[string]any{"aud": g.issuer.URL})},
		{"for two others", with(map[string]any{"aud": []string{"https://mcp.example.com/mcp/other", "account"}})},
		{"of two issuers", with(map[string]any{"iss": []string{g.issuer.URL, stranger.URL}})},
		{"that begins as a token of the configuration", "mcpb_" + with(nil)},
		{"of garbage", "garbage"},
		{"of garbage in three parts", "a.b.c"},
		{"with a claim of the wrong kind", with(map[string]any{"exp": "tomorrow"})},
		{"with a claim that overflows", with(map[string]any{"exp": json.RawMessage("1e300")})},
	}
}

// Tokens that were forged, or are for something else, open nothing.
func TestForgedTokens(t *testing.T) {
	t.Parallel()
	g := newGuardedRig(t, nil)
	g.refusesForged(t, nil)
}

// refusesForged sends a good token, and forged ones, but for those with the names in fine.
func (g *guardedRig) refusesForged(t *testing.T, fine map[string]bool) {
	t.Helper()
	forged := g.forgedTokens(t)
	if got := g.call(t, "Bearer "+issuertest.Sign(t, g.issuer.Key(), accessToken, g.issuer.Claims(resource, nil))); got.status != http.StatusOK {
		t.Fatalf("a good token = %d %s, want it accepted", got.status, got.body)
	}
	for _, tt := range forged {
		if fine[tt.name] {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			got := g.call(t, "Bearer "+tt.token)
			challenge := got.header.Get("WWW-Authenticate")
			if got.status != http.StatusUnauthorized || !strings.Contains(challenge, `error="invalid_token"`) {
				t.Errorf("answer = %d %q %s, want 401 that says the token is invalid", got.status, challenge, got.body)
			}
			if strings.Contains(got.body, "aud") || strings.Contains(g.logs.String(), tt.token) && len(tt.token) > 20 {
				t.Error("the client is told why, or the log has the token")
			}
		})
	}
	if n := len(g.peer.sent("tools/call")); n != 1 {
		t.Errorf("the server got %d calls, want the one with the good token", n)
	}
}

// None of them opens anything under any other key that says which tokens are accepted, but for
// those that the key is there to accept.
func TestForgedTokensUnderEachKey(t *testing.T) {
	t.Parallel()
	further := func(t *testing.T, i *issuertest.Issuer, change func(*auth.JWTOptions)) *auth.JWT {
		o := auth.JWTOptions{Issuer: i.URL, Client: fetch.New(fetch.Options{Near: []string{i.URL}})}
		if change != nil {
			change(&o)
		}
		j, err := auth.NewJWT(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(j.Close)
		return j
	}
	several := func(t *testing.T, all ...*auth.JWT) auth.Resource {
		s, err := auth.NewIssuers(all...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	lenient := func(o *auth.JWTOptions) {
		o.Audiences, o.Types = []string{"api://mcp", "https://mcp.example.com/mcp"}, []string{auth.AccessToken, "JWT", auth.Untyped}
	}
	for _, tt := range []struct {
		name   string
		change func(*auth.JWTOptions)
		also   func(*testing.T, *auth.JWT) auth.Authenticator // besides the issuer
		fine   []string
	}{
		{name: "audience", change: func(o *auth.JWTOptions) { o.Audiences = []string{"api://mcp", "https://mcp.example.com/mcp"} }},
		{name: "types: [at+jwt, JWT]", change: func(o *auth.JWTOptions) { o.Types = []string{auth.AccessToken, "JWT"} }, fine: []string{"of the type of ID tokens"}},
		{name: "types: [at+jwt, missing]", change: func(o *auth.JWTOptions) { o.Types = []string{auth.AccessToken, auth.Untyped} }, fine: []string{"of no type"}},
		{name: "all of them", change: lenient, fine: []string{"of the type of ID tokens", "of no type"}},
		{name: "another issuer that is lenient", also: func(t *testing.T, j *auth.JWT) auth.Authenticator {
			return several(t, j, further(t, issuertest.New(t), lenient))
		}},
		{name: "another issuer that is first", also: func(t *testing.T, j *auth.JWT) auth.Authenticator {
			return several(t, further(t, issuertest.New(t), lenient), j)
		}},
		{name: "another issuer that is asked about tokens", also: func(t *testing.T, j *auth.JWT) auth.Authenticator {
			return several(t, j, further(t, issuertest.New(t), func(o *auth.JWTOptions) {
				o.Introspection = &auth.Introspection{ClientID: "gateway", ClientSecret: "secret"}
			}))
		}},
		{name: "tokens and mtls", also: func(t *testing.T, j *auth.JWT) auth.Authenticator {
			tokens, err := auth.NewTokens([]auth.StaticToken{{Name: "ada", Token: "a-token-of-the-configuration"}})
			if err != nil {
				t.Fatal(err)
			}
			return auth.NewWays(auth.WaysOptions{Tokens: tokens, Issuers: j, MTLS: &auth.MTLS{}})
		}},
		{name: "everything", change: lenient, fine: []string{"of the type of ID tokens", "of no type"}, also: func(t *testing.T, j *auth.JWT) auth.Authenticator {
			tokens, err := auth.NewTokens([]auth.StaticToken{{Name: "ada", Token: "a-token-of-the-configuration"}})
			if err != nil {
				t.Fatal(err)
			}
			return auth.NewWays(auth.WaysOptions{Tokens: tokens, Issuers: several(t, j, further(t, issuertest.New(t), lenient)), MTLS: &auth.MTLS{SPIFFE: true}})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGuardedRig(t, tt.change, func(o *Options) {
				if tt.also != nil {
					o.Auth = tt.also(t, o.Auth.(*auth.JWT))
				}
			})
			fine := make(map[string]bool)
			for _, name := range tt.fine {
				fine[name] = true
			}
			g.refusesForged(t, fine)
		})
	}
}

// tampered returns a token with other claims under the signature that it has.
func tampered(token string, claims map[string]any) string {
	parts := strings.Split(token, ".")
	text, _ := json.Marshal(claims)
	parts[1] = base64.RawURLEncoding.EncodeToString(text)
	return strings.Join(parts, ".")
}

// A credential comes in one way. Of two, a proxy in front and the gateway may each have
// read another one.
func TestCredentialsInWaysThatNobodyMay(t *testing.T) {
	t.Parallel()
	g := newGuardedRig(t, nil)
	good := "Bearer " + g.issuer.Token(resource, nil)
	for _, tt := range []struct {
		name, query   string
		authorization []string
		status        int
	}{
		{"two headers", "", []string{good, good}, http.StatusBadRequest},
		{"a bad one before a good one", "", []string{"Bearer x", good}, http.StatusBadRequest},
		{"two in one header", "", []string{good + ", " + good}, http.StatusBadRequest},
		{"in the query", "?access_token=" + good[7:], nil, http.StatusBadRequest},
		{"in the query, escaped", "?x=1&%61ccess_token=" + good[7:], nil, http.StatusBadRequest},
		{"in the query, too", "?access_token=x", []string{good}, http.StatusBadRequest},
		{"17 KiB", "", []string{"Bearer " + strings.Repeat("x", 17<<10)}, http.StatusBadRequest},
		{"without a token", "", []string{"Bearer "}, http.StatusBadRequest},
		{"with bytes that no token has", "", []string{"Bearer a\x01b"}, http.StatusBadRequest},
		{"of another scheme", "", []string{"Basic YWRhOmFkYQ=="}, http.StatusUnauthorized},
		{"of a scheme that begins alike", "", []string{"Bearers " + good[7:]}, http.StatusUnauthorized},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := modernHeaders("tools/call", "a")
			h["Authorization"] = tt.authorization
			if strings.Contains(tt.name, "bytes") { // which net/http's client does not send
				a := g.attack(t)
				body := modernBody("1", "tools/call", `"name":"a"`)
				fmt.Fprintf(a, "POST /mcp/peer HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: %s\r\nContent-Length: %d\r\n\r\n%s", tt.authorization[0], len(body), body)
				if got, err := a.answer(); err != nil || got.status != tt.status {
					t.Errorf("answer = %d, %v, want %d", got.status, err, tt.status)
				}
				return
			}
			got := g.sendTo(t, http.MethodPost, "/mcp/peer"+tt.query, modernBody("1", "tools/call", `"name":"a"`), "", h)
			if got.status != tt.status {
				t.Errorf("answer = %d %s, want %d", got.status, got.body, tt.status)
			}
		})
	}
	if n := len(g.peer.sent("tools/call")); n != 0 {
		t.Errorf("the server got %d calls, want none", n)
	}
}

// Every request has to have a credential, whatever it is for: an id that was overheard, of
// a session or of a stream, opens nothing.
func TestEveryRequestHasACredential(t *testing.T) {
	t.Parallel()
	g := newGuardedRig(t, nil)
	for path, want := range map[string]int{
		"/mcp/peer": 401, "/mcp": 401, "/sse/peer": 401, "/sse": 401, "/message/peer?sessionId=x": 401, "/message": 401, "//mcp/peer": 401,
		"/mcp/peer/": 401, "/mcp/": 401, "/sse/peer/": 401, "/message/peer/?sessionId=x": 401,
		"/mcp/other": 404, "/": 404, "/MCP/peer": 404, "/mcp/peer/x": 404,
	} {
		for _, method := range []string{"GET", "POST", "DELETE", "PUT", "HEAD", "BREW"} {
			h := modernHeaders("tools/call", "a")
			if method == "GET" || method == "DELETE" {
				h = http.Header{"Accept": {"text/event-stream"}, "Mcp-Session-Id": {"x"}}
			}
			got := g.sendTo(t, method, path, "{}", "", h)
			if got.status != want || strings.Contains(strings.ReplaceAll(got.body, "at "+path, ""), "peer") {
				t.Errorf("%s %s = %d %s, want %d, which names no server", method, path, got.status, got.body, want)
			}
		}
	}
	if ws, resp := g.raw(t, nil); ws != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a WebSocket without a credential = %v, %d, want 401", ws, resp.StatusCode)
	}
	if ws, _ := g.raw(t, http.Header{"Authorization": {"Bearer " + g.issuer.Token(resource, nil)}}); ws == nil {
		t.Error("a WebSocket with a credential was refused")
	}
	if n := len(g.peer.sent("initialize")); n != 0 {
		t.Errorf("the server got %d handshakes, want none", n)
	}
}

// A flood of tokens of keys that do not exist has the issuer asked once, and those who
// have good tokens served.
func TestFloodOfUnknownKeys(t *testing.T) {
	t.Parallel()
	g := newGuardedRig(t, nil)
	good := "Bearer " + g.issuer.Token(resource, nil)
	if got := g.call(t, good); got.status != http.StatusOK {
		t.Fatal(got)
	}
	for n := range 50 {
		key := g.issuer.Key()
		key.ID = fmt.Sprint("unknown", n)
		if got := g.call(t, "Bearer "+issuertest.Sign(t, key, accessToken, g.issuer.Claims(resource, nil))); got.status != http.StatusUnauthorized {
			t.Fatalf("answer = %d %s, want 401", got.status, got.body)
		}
	}
	if n := g.issuer.Fetched("/keys"); n != 1 {
		t.Errorf("the keys were fetched %d times, want once", n)
	}
	if got := g.call(t, good); got.status != http.StatusOK {
		t.Errorf("a good token = %d, want it accepted", got.status)
	}
}

// refusedCounts counts refused credentials by reason.
type refusedCounts struct {
	mcp.NoMetrics
	mu sync.Mutex
	n  map[string]int
}

func (c *refusedCounts) Refused(server, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[server+" "+reason]++
}

// Whoever has no credential can send any number of requests: the metric counts them all, and
// the log has one line for each reason.
func TestFloodOfStrangers(t *testing.T) {
	t.Parallel()
	counts := &refusedCounts{n: make(map[string]int)}
	g := newGuardedRig(t, nil, func(o *Options) { o.Metrics = counts })
	const each = 100
	begun := time.Now()
	for n := range each {
		g.call(t)
		g.call(t, "Bearer "+fmt.Sprint("garbage", n))
		g.call(t, "Bearer x", "Bearer y")
		g.call(t, "Bearer "+g.issuer.Token(resource, map[string]any{"scope": "other"}))
	}
	for _, of := range []string{"peer no_credential", "peer invalid_token", "peer invalid_request", "peer insufficient_scope"} {
		if counts.n[of] != each {
			t.Errorf("%q were counted %d times, want %d", of, counts.n[of], each)
		}
	}
	most := 4 * (2 + int(time.Since(begun)/(10*time.Second))) // one for each reason every ten seconds
	if n := strings.Count(g.logs.String(), "request refused"); n > most {
		t.Errorf("the log has %d lines about %d refused requests, want one for each reason:\n%s", n, 4*each, g.logs)
	}
}

// Each cause has a line of its own: what is wrong with one client's token is told beside a flood
// of another cause.
func TestEachCauseOfARefusalIsLogged(t *testing.T) {
	t.Parallel()
	g := newGuardedRig(t, nil)
	other := g.issuer.Token("https://mcp.example.com/mcp/other", nil)
	expired := g.issuer.Token(resource, map[string]any{"exp": time.Now().Add(-time.Hour).Unix()})
	anonymous := g.issuer.Token(resource, map[string]any{"sub": ""})
	const times = 3
	for n := range times {
		for _, token := range []string{fmt.Sprint("garbage", n), other, expired, anonymous} {
			g.call(t, "Bearer "+token)
		}
		g.call(t, "Bearer x", "Bearer y")
		g.call(t, "Bearer ä"+fmt.Sprint(n))
	}
	logs := g.logs.String()
	for _, cause := range []string{"is not a JWT, and no introspection", "invalid audience", "token is expired", "it has no subject", "two Authorization headers", "the Authorization header has no token"} {
		if n := strings.Count(logs, cause); n != 1 {
			t.Errorf("the log has %d lines with %q, want one about %d requests:\n%s", n, cause, times, logs)
		}
	}
}

// Without its issuer the gateway starts, and says that it is for the moment.
func TestIssuerDown(t *testing.T) {
	t.Parallel()
	g := newGuardedRig(t, nil)
	g.issuer.Override(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusBadGateway) })
	got := g.call(t, "Bearer "+g.issuer.Token(resource, nil))
	if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || strings.Contains(got.body, g.issuer.URL) {
		t.Errorf("answer = %d %v %s, want 503 for the moment, without addresses", got.status, got.header, got.body)
	}
	if got := g.call(t); got.status != http.StatusUnauthorized {
		t.Errorf("without a credential = %d, want 401", got.status)
	}
}

// What an issuer publishes is bounded, and comes from itself alone.
func TestIssuerThatMisleads(t *testing.T) {
	t.Parallel()
	// What is published is good but for one thing: who takes that has keys.
	publish := func(g *guardedRig, issuer, keys, rest string) http.HandlerFunc {
		elsewhere := httptest.NewServer(http.HandlerFunc(g.issuer.ServeKeys))
		t.Cleanup(elsewhere.Close)
		return func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/redirect":
				http.Redirect(w, r, elsewhere.URL, http.StatusFound)
			case "/keys":
				g.issuer.ServeKeys(w, r)
			default:
				fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q%s}`, issuer, keys, rest)
			}
		}
	}
	g := newGuardedRig(t, nil)
	g.issuer.Override(publish(g, g.issuer.URL, g.issuer.URL+"/keys", ""))
	if got := g.call(t, "Bearer "+g.issuer.Token(resource, nil)); got.status != http.StatusOK {
		t.Fatalf("without a fault = %d %s, want 200", got.status, got.body)
	}
	for _, tt := range []struct {
		name string
		h    func(g *guardedRig) http.HandlerFunc
	}{
		{"by redirecting to keys", func(g *guardedRig) http.HandlerFunc { return publish(g, g.issuer.URL, g.issuer.URL+"/redirect", "") }},
		{"by naming another issuer", func(g *guardedRig) http.HandlerFunc {
			return publish(g, "https://id.example.com", g.issuer.URL+"/keys", "")
		}},
		{"by keys without https", func(g *guardedRig) http.HandlerFunc {
			return publish(g, g.issuer.URL, "http://id.example.com/keys", "")
		}},
		{"by keys in a file", func(g *guardedRig) http.HandlerFunc { return publish(g, g.issuer.URL, "file:///etc/passwd", "") }},
		{"by a document of 2 MiB", func(g *guardedRig) http.HandlerFunc {
			return publish(g, g.issuer.URL, g.issuer.URL+"/keys", `,"x":"`+strings.Repeat("x", 2<<20)+`"`)
		}},
		{"by a document that does not end", func(*guardedRig) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(`{"issuer":"`))
				for range 2 << 10 {
					_, _ = w.Write(make([]byte, 1<<10))
				}
			}
		}},
		{"by no keys", func(*guardedRig) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"keys":[]}`)) }
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGuardedRig(t, nil)
			g.issuer.Override(tt.h(g))
			if got := g.call(t, "Bearer "+g.issuer.Token(resource, nil)); got.status != http.StatusServiceUnavailable {
				t.Errorf("answer = %d %s, want 503", got.status, got.body)
			}
		})
	}
}

// A slow issuer holds up those whose keys it would have, not those whose keys are known.
func TestSlowIssuer(t *testing.T) {
	t.Parallel()
	g := newGuardedRig(t, nil)
	good := "Bearer " + g.issuer.Token(resource, nil)
	if got := g.call(t, good); got.status != http.StatusOK {
		t.Fatal(got)
	}
	held := make(chan struct{})
	t.Cleanup(func() { close(held) })
	g.issuer.Override(func(http.ResponseWriter, *http.Request) { <-held })
	if got := g.call(t, "Bearer "+g.issuer.Token(resource, map[string]any{"sub": "bob"})); got.status != http.StatusOK {
		t.Errorf("a new token of a known key = %d, want it accepted at once", got.status)
	}
}

// Invented tokens of one client of a proxy have the issuer refuse no token of another one,
// and are counted as what they are.
func TestInventedTokensBehindAProxy(t *testing.T) {
	t.Parallel()
	counts := &limitCounts{n: make(map[string]int)}
	g := newGuardedRig(t, func(o *auth.JWTOptions) {
		o.Introspection = &auth.Introspection{ClientID: "gateway", ClientSecret: "secret"}
	}, func(o *Options) {
		o.Metrics, o.TrustedProxies = counts, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("192.0.2.0/24")}
	})
	from := func(addr, token string) answer {
		h := modernHeaders("tools/call", "a")
		h.Set("X-Forwarded-For", addr)
		h.Set("Authorization", "Bearer "+token)
		return g.send(t, http.MethodPost, modernBody("1", "tools/call", `"name":"a"`), h)
	}
	begin, waited := time.Now(), 0
	for n := range 200 {
		switch got := from("203.0.113.66", fmt.Sprint("invented-", n)); got.status {
		case http.StatusUnauthorized:
		case http.StatusServiceUnavailable:
			if waited++; got.header.Get("Retry-After") == "" {
				t.Errorf("a token that has to wait = %v, want Retry-After", got.header)
			}
		default:
			t.Fatalf("an invented token = %d %s", got.status, got.body)
		}
	}
	g.issuer.SetOpaque("honest", g.issuer.Claims(resource, nil))
	if got := from("203.0.113.7", "honest"); got.status != http.StatusOK {
		t.Errorf("a good token of another client of the proxy = %d %s, want 200", got.status, got.body)
	}
	if took := time.Since(begin); took > 20*time.Second && waited == 0 {
		t.Logf("on this busy machine 200 invented tokens took %v, which are fewer in a second than may be refused", took)
		return
	}
	if waited == 0 || counts.of("refused_tokens_each") != waited || !strings.Contains(g.logs.String(), "refused_tokens_each") {
		t.Errorf("%d had to wait, the metric has %d, the log:\n%s", waited, counts.of("refused_tokens_each"), g.logs)
	}
}

// limitCounts counts limits that were reached.
type limitCounts struct {
	mcp.NoMetrics
	mu sync.Mutex
	n  map[string]int
}

func (c *limitCounts) Limit(_, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[name]++
}

func (c *limitCounts) of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[name]
}
