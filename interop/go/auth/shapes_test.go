package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

// A recipe is what docs/issuers.md says of one issuer: the lines of its configuration, and a token.
type recipe struct {
	name, config, issuer string
	header, claims       map[string]any
}

var (
	recipeHead   = regexp.MustCompile(`(?m)^## (.*)$`)
	recipeIssuer = regexp.MustCompile(`issuer: (\S+)`)
	fence        = regexp.MustCompile("(?ms)^```(json|yaml)\n(.*?)^```$")
)

// recipes reads the page.
func recipes(t *testing.T) (all []recipe) {
	t.Helper()
	text, err := os.ReadFile(peer("../docs/issuers.md"))
	if err != nil {
		t.Fatal(err)
	}
	parts := recipeHead.Split(string(text), -1)[1:]
	for i, head := range recipeHead.FindAllStringSubmatch(string(text), -1) {
		r := recipe{name: head[1]}
		for _, b := range fence.FindAllStringSubmatch(parts[i], -1) {
			if b[1] == "yaml" {
				r.config = b[2]
				continue
			}
			d := json.NewDecoder(strings.NewReader(b[2]))
			if err := errors.Join(d.Decode(&r.header), d.Decode(&r.claims)); err != nil {
				t.Fatal(err)
			}
		}
		r.issuer = recipeIssuer.FindStringSubmatch(r.config)[1]
		all = append(all, r)
	}
	return all
}

// shape returns what has the issuer write its tokens as the page shows them. Who issues a token,
// and for whom, stays.
func (r *recipe) shape() map[string]any {
	header, claims := map[string]any{"typ": r.header["typ"]}, map[string]any{"client_id": nil, "team": nil, "scope": nil}
	for name, v := range r.claims {
		if name != "iss" && name != "sub" {
			claims[name] = v
		}
	}
	return map[string]any{"shape": map[string]any{"header": header, "claims": claims}}
}

// resource is the endpoint of the page.
const resource = "https://mcp.example.com/mcp/files"

func listTools(t *testing.T, b *bridge, token string) int {
	t.Helper()
	return read(t, post(t, b.endpoint("files"), token, "tools/list", "")).status
}

// oidc-provider writes its tokens as each of the issuers on the page does, and each is let in by
// the lines there, after a whole login; its ID tokens are not, nor is a token for another
// endpoint, one that was changed, or one of the shape of another issuer where that differs.
func TestTokensShapedAsIssuers(t *testing.T) {
	as := newIssuer(t)
	for _, r := range recipes(t) {
		t.Run(r.name, func(t *testing.T) {
			config := strings.ReplaceAll(r.config, "issuer: "+r.issuer, "issuer: "+as.url)
			if !strings.Contains(config, "servers:") {
				config += fmt.Sprintf("servers: {files: {url: %q}}\n", newServer(t))
			}
			b := newBridge(t, config)
			as.set(t, r.shape())
			got := as.login(t, "alice", resource, "openid mcp:use")
			said := claims(t, got.Access)
			if said["iss"] != as.url || said["sub"] != "alice" {
				t.Fatalf("the token is %v, want one of alice", said)
			}
			if status := listTools(t, b, got.Access); status != http.StatusOK {
				t.Errorf("with a token of the shape %v = %d, want 200", said, status)
			}
			other := r.shape()
			other["shape"].(map[string]any)["claims"].(map[string]any)["aud"] = "https://mcp.example.com/mcp/other"
			as.set(t, other)
			elsewhere := as.login(t, "alice", resource, "mcp:use")
			unknown := r.shape()
			unknown["shape"].(map[string]any)["header"] = map[string]any{"typ": "application/okta-internal-at+jwt"}
			as.set(t, unknown)
			typed := as.login(t, "alice", resource, "mcp:use")
			parts := strings.Split(got.Access, ".")
			for name, token := range map[string]string{
				"an ID token": got.ID, "a refresh token": got.Refresh, "a token for another endpoint": elsewhere.Access, "one of an unknown type": typed.Access,
				"one with the signature of another": parts[0] + "." + parts[1] + "." + strings.Split(typed.Access, ".")[2],
			} {
				if status := listTools(t, b, token); status != http.StatusUnauthorized || token == "" {
					t.Errorf("%s = %d, want 401", name, status)
				}
			}
		})
	}
}

// An ID token is refused also where its audience is accepted, and its type.
func TestIDTokenOfAnAcceptedClient(t *testing.T) {
	as := newIssuer(t)
	b := newBridge(t, fmt.Sprintf(`
public_url: https://mcp.example.com
auth: {jwt: {issuer: %q, audience: [%q], types: [at+jwt, JWT, missing]}}
servers: {files: {url: %q}}
`, as.url, as.docs.id("tests"), newServer(t)))
	got := as.login(t, "alice", resource, "openid mcp:use")
	if id := claims(t, got.ID); id["aud"] != as.docs.id("tests") || id["iss"] != as.url {
		t.Fatalf("the ID token is %v, want one for the client", id)
	}
	if status := listTools(t, b, got.ID); status != http.StatusUnauthorized {
		t.Errorf("an ID token = %d, want 401", status)
	}
	if status := listTools(t, b, got.Access); status != http.StatusOK {
		t.Errorf("the access token = %d, want 200", status)
	}
}

// Two issuers at one endpoint, of which one has opaque tokens: each lets in its own users, and
// neither those of the other by its own key. A token of the configuration is a third way.
func TestTwoIssuersAtOneEndpoint(t *testing.T) {
	one, two := newIssuer(t), newIssuer(t)
	b := newBridge(t, fmt.Sprintf(`
public_url: https://mcp.example.com
auth:
  tokens: [{name: backup, token: a-token-of-the-configuration}]
  jwt:
    - {issuer: %q, scopes: ["mcp:use"]}
    - {issuer: %q, scopes: ["mcp:use"], introspection: {client_id: introspector, client_secret: introspector-secret}}
servers: {files: {url: %q}}
`, one.url, two.url, newServer(t)))
	two.set(t, map[string]any{"opaque": []string{resource}})
	jwt, opaque := one.login(t, "alice", resource, "mcp:use"), two.login(t, "alice", resource, "mcp:use")
	if strings.Contains(opaque.Access, ".") {
		t.Fatal("the second issuer's token is a JWT")
	}
	for name, token := range map[string]string{"the first issuer's": jwt.Access, "the second issuer's": opaque.Access, "the configuration's": "a-token-of-the-configuration"} {
		if status := listTools(t, b, token); status != http.StatusOK {
			t.Errorf("%s token = %d, want 200", name, status)
		}
	}
	one.set(t, map[string]any{"shape": map[string]any{"header": map[string]any{}, "claims": map[string]any{"iss": two.url}}})
	posing := one.login(t, "alice", resource, "mcp:use")
	if claims(t, posing.Access)["iss"] != two.url {
		t.Fatal("the first issuer does not name the second")
	}
	for name, token := range map[string]string{"the first issuer's in the second's name": posing.Access, "an invented": "invented", "a removed": "mcpb_removed"} {
		if status := listTools(t, b, token); status != http.StatusUnauthorized {
			t.Errorf("%s token = %d, want 401", name, status)
		}
	}
	two.set(t, map[string]any{"revoke": "access"})
	if status := listTools(t, b, jwt.Access); status != http.StatusOK {
		t.Errorf("the first issuer's token, once the second has revoked its own = %d, want 200", status)
	}
}
