package main

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A recipe is what docs/issuers.md says of one issuer.
type recipe struct {
	name, config, issuer string
	header               map[string]any
	claims               map[string]any
}

var (
	recipeHead   = regexp.MustCompile(`(?m)^## (.*)$`)
	recipeIssuer = regexp.MustCompile(`issuer: (\S+)`)
)

// recipes reads docs/issuers.md.
func recipes(t *testing.T) (all []recipe) {
	t.Helper()
	text, err := os.ReadFile("../../docs/issuers.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	heads := recipeHead.FindAllStringSubmatchIndex(page, -1)
	for i, at := range heads {
		end := len(page)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		r := recipe{name: page[at[2]:at[3]]}
		for _, b := range fence.FindAllStringSubmatch(page[at[0]:end], -1) {
			if b[1] == "yaml" {
				r.config = b[2]
				continue
			}
			d := json.NewDecoder(strings.NewReader(b[2]))
			if err := errors.Join(d.Decode(&r.header), d.Decode(&r.claims)); err != nil {
				t.Fatalf("%s: the token: %v", r.name, err)
			}
		}
		if r.issuer = recipeIssuer.FindStringSubmatch(r.config)[1]; r.claims["iss"] != r.issuer {
			t.Errorf("%s: the token is of %v, the configuration is for %s", r.name, r.claims["iss"], r.issuer)
		}
		delete(r.header, "kid")
		delete(r.header, "alg")
		all = append(all, r)
	}
	return all
}

// idTokens are the ID tokens of the same issuers, for a client with the audience of the recipe
// where there is one: the claims without those that are in every token.
var idTokens = map[string]map[string]any{
	"Microsoft Entra ID": {"aud": "8ebbea06-f01e-4f94-8254-32da2e94c240", "name": "Ada", "oid": "bf6c3c10", "rh": "0.A", "roles": []string{"Admin"}, "tid": "4b1fa0f3", "ver": "2.0"},
	"Okta":               {"aud": "0oa15d4jr5oIR5Eel698", "ver": 1, "jti": "ID.rad", "amr": []string{"pwd"}, "uid": "00u15c6ukel5jXEd0698", "at_hash": "fPls"},
	"Auth0":              {"aud": "my_client_id", "nickname": "ada", "sid": "x"},
	"Amazon Cognito":     {"aud": "https://mcp.example.com/mcp/files", "token_use": "id", "cognito:username": "ada", "scope": "https://mcp.example.com/mcp/files/mcp.use"},
	"Keycloak":           {"aud": "editor", "typ": "ID", "azp": "editor", "sid": "x", "at_hash": "x"},
	"Google":             {"aud": "32555940559.apps.googleusercontent.com", "azp": "32555940559.apps.googleusercontent.com", "email": "builder@example-project.iam.gserviceaccount.com", "email_verified": true},
	"Several at once":    {"aud": "editor", "typ": "ID"},
}

// Each recipe of docs/issuers.md is taken as it stands there, but for the address of the issuer,
// and lets in who has a token such as the page shows, and nobody with an ID token of the same
// issuer, or with what somebody else has made.
func TestDocsIssuers(t *testing.T) {
	all := recipes(t)
	if len(all) != len(idTokens) {
		t.Errorf("%d recipes, want %d", len(all), len(idTokens))
	}
	for _, r := range all {
		t.Run(r.name, func(t *testing.T) { r.try(t) })
	}
}

func (r *recipe) try(t *testing.T) {
	i, stranger := newSigner(t), newSigner(t)
	config := strings.ReplaceAll(r.config, "issuer: "+r.issuer, "issuer: "+i.URL)
	if !strings.Contains(config, "servers:") {
		config += "servers: {files: {builtin: notebook}}\n"
	}
	s := serve(t, nil, configFile(t, config))
	now := time.Now()
	sign := func(by *signer, typ any, changes map[string]any) string {
		header, claims := maps.Clone(r.header), maps.Clone(r.claims)
		if typ != nil {
			header = map[string]any{"typ": typ}
		}
		claims["iss"], claims["iat"], claims["nbf"], claims["exp"] = i.URL, now.Unix(), now.Unix(), now.Add(time.Hour).Unix()
		maps.Copy(claims, changes)
		return "Bearer " + by.sign(t, header, claims)
	}
	id := maps.Clone(idTokens[r.name])
	for name := range r.claims {
		if _, too := id[name]; !too && name != "sub" && name != "iss" {
			id[name] = nil
		}
	}
	const good, refused = http.StatusOK, http.StatusUnauthorized
	for _, tt := range []struct {
		name, authorization string
		want                int
	}{
		{"the token of the page", sign(i, nil, nil), good},
		{"an ID token", "Bearer " + i.sign(t, r.header, present(id, i.URL)), refused},
		{"for another endpoint", sign(i, nil, map[string]any{"aud": "https://mcp.example.com/mcp/other"}), refused},
		{"for nobody", sign(i, nil, map[string]any{"aud": nil}), refused},
		{"of another issuer", sign(stranger, nil, map[string]any{"iss": stranger.URL}), refused},
		{"of another key", sign(stranger, nil, nil), refused},
		{"of another type", sign(i, "application/okta-internal-at+jwt", nil), refused},
		{"of the type missing", sign(i, "missing", nil), refused},
		{"expired", sign(i, nil, map[string]any{"exp": now.Add(-time.Hour).Unix()}), refused},
		{"nothing", "", refused},
	} {
		if got := initializeAs(t, s.Endpoints[0].URL, tt.authorization); got != tt.want {
			t.Errorf("%s = %d, want %d; the log:\n%s", tt.name, got, tt.want, s.log)
		}
	}
	if strings.Contains(r.config, "scopes:") {
		if got := initializeAs(t, s.Endpoints[0].URL, sign(i, nil, map[string]any{"scope": "other", "scp": nil, "azpacr": "1"})); got != http.StatusForbidden {
			t.Errorf("without the scope = %d, want 403", got)
		}
	}
}

// present returns claims without those that are nil, of an issuer and for an hour.
func present(claims map[string]any, issuer string) map[string]any {
	out := map[string]any{"iss": issuer, "sub": "ada", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()}
	for name, v := range claims {
		if v != nil {
			out[name] = v
		}
	}
	return out
}

// A signer is an issuer with one key, k1.
type signer struct {
	*httptest.Server
	key *rsa.PrivateKey
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s := &signer{key: key}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// ServeHTTP has the metadata and the key.
func (s *signer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	encode := base64.RawURLEncoding.EncodeToString
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, s.URL, s.URL+"/keys")
	case "/keys":
		_, _ = fmt.Fprintf(w, `{"keys":[{"kty":"RSA","kid":"k1","use":"sig","n":%q,"e":%q}]}`, encode(s.key.N.Bytes()), encode(big.NewInt(int64(s.key.E)).Bytes()))
	default:
		http.NotFound(w, r)
	}
}

// sign returns a token with a header, besides what says how it is signed, and claims.
func (s *signer) sign(t *testing.T, header, claims map[string]any) string {
	t.Helper()
	header = maps.Clone(header)
	header["alg"], header["kid"] = "RS256", "k1"
	var parts []string
	for _, part := range []map[string]any{header, claims} {
		text, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString(text))
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, ".")))
	signature, err := rsa.SignPKCS1v15(nil, s.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(append(parts, base64.RawURLEncoding.EncodeToString(signature)), ".")
}
