package server_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// write puts text into a file called c.yaml and makes its folder current, so
// that messages begin with the bare name.
func write(t *testing.T, text string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("c.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "c.yaml"
}

const notebook = "servers: {notebook: {builtin: notebook}}\n"

// Each mistake in saying who clients are is told with its line, and without the secret.
func TestAuthMistakes(t *testing.T) {
	top := func(s string) string { return "auth: " + s + "\n" + notebook }
	const digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	jwt := func(s string) string {
		return "public_url: https://mcp.example.com\nauth: {jwt: {" + s + "}}\n" + notebook
	}
	two := func(a, b string) string {
		return "public_url: https://mcp.example.com\nauth:\n  jwt: [{" + a + "},\n    {" + b + "}]\n" + notebook
	}
	const ways = "tls: {cert: cert.pem, key: key.pem, client_ca: cert.pem, client_auth: optional}\nauth: {mtls: {}, tokens: [{name: a, sha256: " + digest + "}]}\n"
	for _, tt := range []struct{ name, in, want string }{
		{"nothing", top("{}"), "c.yaml:1: auth: want at least one of tokens, jwt and mtls below it, or the word none"},
		{"left empty", top(""), "c.yaml:1: auth: want at least one of tokens, jwt and mtls below it, or the word none"},
		{"no tokens", top("{tokens: []}"), "c.yaml:1: auth: want at least one of tokens, jwt and mtls below it, or the word none"},
		{"another word", top("off"), "c.yaml:1: auth: want keys with values below it, as in {key: value}, or none; found a single value"},
		{"the word as a key", top("{word: none}"), "c.yaml:1: auth.word: unknown key; known here: jwt, mtls, tokens"},
		{"token without a name", top("{tokens: [{sha256: " + digest + "}]}"), "c.yaml:1: auth.tokens.0: name says whom the token stands for; use letters, digits and ._@+-, at most 128, and not the word anonymous"},
		{"token of anonymous clients", top("{tokens: [{name: anonymous, sha256: " + digest + "}]}"), "c.yaml:1: auth.tokens.0: name says whom the token stands for; use letters, digits and ._@+-, at most 128, and not the word anonymous"},
		{"a token of two names", top("{tokens: [{name: ada, token: s3cret0123456789}, {name: a, sha256: " + digest + "}, {name: eve, token: s3cret0123456789}]}"), "c.yaml:1: auth.tokens.2: the token of eve is that of ada, too: a token says who sends it; give each name one of its own"},
		{"a token and its digest", top("{tokens: [{name: ada, token: s3cret0123456789}, {name: eve, sha256: B4048522BDC8D0F9CBCFEE576FF6BD7B5DF06C21314955186D5D5AC6E6788467}]}"), "c.yaml:1: auth.tokens.1: the token of eve is that of ada, too: a token says who sends it; give each name one of its own"},
		{"a token twice", top("{tokens: [{name: a, sha256: " + digest + "}, {name: a, sha256: " + digest + "}]}"), "c.yaml:1: auth.tokens.1: is the token of a that stands in auth.tokens.0, too; remove one"},
		{"token without a token", top("{tokens: [{name: a}]}"), "c.yaml:1: auth.tokens.0: want either token or sha256; mcpbridge token prints both"},
		{"token and digest", top("{tokens: [{name: a, token: s3cret0123456789, sha256: " + digest + "}]}"), "c.yaml:1: auth.tokens.0: want either token or sha256; mcpbridge token prints both"},
		{"short digest", top("{tokens: [{name: a, sha256: 9f86}]}"), "c.yaml:1: auth.tokens.0: sha256 is not a SHA-256; write 64 hexadecimal digits, as mcpbridge token prints them"},
		{"short token", top("{tokens: [{name: a, token: s3cret}]}"), "c.yaml:1: auth.tokens.0: token is shorter than 16 characters; write one that mcpbridge token makes"},
		{"token with a space", top("{tokens: [{name: a, token: s3cret 0123456789}]}"), "c.yaml:1: auth.tokens.0: token has characters that no Authorization header can; write one that mcpbridge token makes"},
		{"scope with a quote", top("{tokens: [{name: a, sha256: " + digest + `, scopes: ['x"y']}]}`), `c.yaml:1: auth.tokens.0.scopes.0: "x\"y" is not a scope; write one without spaces and quotes`},
		{"unknown key of a token", top("{tokens: [{nam: a}]}"), "c.yaml:1: auth.tokens.0.nam: unknown key; did you mean name?"},
		{"tokens that are none", top("{tokens: [a]}"), "c.yaml:1: auth.tokens.0: want keys with values below it, as in {key: value}; found a single value"},
		{"no issuer", jwt(""), "c.yaml:2: auth.jwt: lacks issuer; write the URL that tokens have as iss"},
		{"issuer over http", jwt("issuer: 'http://id.example.com'"), "c.yaml:2: auth.jwt.issuer: its keys have to come over https; write https://id.example.com"},
		{"issuer that is no URL", jwt("issuer: id.example.com"), "c.yaml:2: auth.jwt.issuer: is not a URL of an issuer; write one such as https://id.example.com"},
		{"shared secrets", jwt("issuer: 'https://id.example.com', algorithms: [RS256, HS256]"), `c.yaml:2: auth.jwt.algorithms.1: "HS256" is not an algorithm of a public key; write RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 or EdDSA`},
		{"no signature", jwt("issuer: 'https://id.example.com', algorithms: [none]"), `c.yaml:2: auth.jwt.algorithms.0: "none" is not an algorithm of a public key; write RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 or EdDSA`},
		{"another type", jwt("issuer: 'https://id.example.com', types: [id+jwt]"), `c.yaml:2: auth.jwt.types.0: "id+jwt" is not a type of access tokens; write at+jwt or JWT, or missing for tokens without one`},
		{"subject as a further claim", jwt("issuer: 'https://id.example.com', principal_claims: [sub]"), "c.yaml:2: auth.jwt.principal_claims.0: issuer and subject are part of the principal anyway; write another claim, such as client_id, or remove it"},
		{"introspection by nobody", jwt("issuer: 'https://id.example.com', introspection: {client_id: x}"), "c.yaml:2: auth.jwt.introspection: needs client_id and client_secret: issuers answer only clients that they know"},
		{"an issuer that is a text", "public_url: https://mcp.example.com\nauth: {jwt: 'https://id.example.com'}\n" + notebook, "c.yaml:2: auth.jwt: want keys with values below it, as in {key: value}, or a list of such; found a single value"},
		{"an issuer twice", two("issuer: 'https://id.example.com'", "issuer: 'https://id.example.com', types: [JWT]"), "c.yaml:4: auth.jwt.1: https://id.example.com is in the list already; write what you want of it in one place"},
		{"two that are asked about tokens", two("issuer: 'https://a.example.com', introspection: {client_id: x, client_secret: y}", "issuer: 'https://b.example.com', introspection: {client_id: x, client_secret: y}"), "c.yaml:4: auth.jwt.1.introspection: another issuer has it, too: each would be sent the tokens of the other; keep it for the issuer whose tokens are not JWTs"},
		{"a mistake in the second", two("issuer: 'https://a.example.com'", "issuer: 'https://b.example.com', types: [id+jwt]"), `c.yaml:4: auth.jwt.1.types.0: "id+jwt" is not a type of access tokens; write at+jwt or JWT, or missing for tokens without one`},
		{"none as a type", jwt("issuer: 'https://id.example.com', types: [none]"), `c.yaml:2: auth.jwt.types.0: "none" is not a type of access tokens; write at+jwt or JWT, or missing for tokens without one`},
		{"an audience that is a pattern", jwt("issuer: 'https://id.example.com', audience: ['*']"), `c.yaml:2: auth.jwt.audience.0: "*" is not what tokens have as aud, byte for byte`},
		{"an empty audience", jwt("issuer: 'https://id.example.com', audience: [a, '']"), `c.yaml:2: auth.jwt.audience.1: "" is not what tokens have as aud, byte for byte`},
		{"an audience of all", jwt("issuer: 'https://id.example.com', audience: [account]"), `c.yaml:2: auth.jwt.audience.0: account is in tokens that are for something else, and every client of the issuer has some; have the issuer write the public URL, or a name for mcpbridge alone`},
		{"an issuer of all tenants", jwt("issuer: 'https://login.microsoftonline.com/common/v2.0'"), "c.yaml:2: auth.jwt.issuer: is that of all tenants, and no token has it; write the one with the id of your tenant, or a list with one for each tenant"},
		{"certificates without their prefix", ways + "servers: {a: {builtin: notebook, policy: {default: allow, rules: [{deny: {principals: ['dns:laptop.example.com']}}]}}}\n", "c.yaml:3: servers.a.policy.rules.0.deny.principals.0: no client is called that, so that it matches nobody: certificates have mtls: before their names beside other ways, and only then; write mtls:dns:laptop.example.com"},
		{"a login of a certificate without its prefix", ways + "servers: {a: {url: 'https://a.example.com/mcp', upstream_auth: {oauth: {principal: 'spiffe://x/y'}}}}\n", "c.yaml:3: servers.a.upstream_auth.oauth.principal: no client is called that: certificates have mtls: before their names beside other ways, and only then; write mtls:spiffe://x/y"},
		{"a prefix without other ways", "tls: {cert: cert.pem, key: key.pem, client_ca: cert.pem}\nauth: {mtls: {}}\nservers: {a: {builtin: notebook, policy: {default: deny, rules: [{allow: {principals: ['mtls:dns:a']}}]}}}\n", "c.yaml:3: servers.a.policy.rules.0.allow.principals.0: no client is called that, so that it matches nobody: certificates have mtls: before their names beside other ways, and only then; write dns:a"},
		{"tokens of several issuers for one", "public_url: https://mcp.example.com\nauth: {jwt: [{issuer: 'https://a.example.com'}, {issuer: 'https://b.example.com'}]}\nservers: {a: {url: 'https://a.example.com/mcp', era: modern, upstream_auth: {token_exchange: {issuer: 'https://a.example.com', client_id: x, client_secret: y}}}}\n", "c.yaml:3: servers.a.upstream_auth.token_exchange: sends the tokens of callers to one authorization server, and theirs are of several, which would see those of each other; give this server an auth of its own, with one issuer"},
		{"tokens for no URL", "auth: {jwt: {issuer: 'https://id.example.com'}}\n" + notebook, "c.yaml:2: servers.notebook: its clients send access tokens, which are for one URL, and nothing says which; write public_url: https://mcp.example.com, where clients find mcpbridge"},
		{"public URL over http", "public_url: http://mcp.example.com\n" + notebook, "c.yaml:1: public_url: clients send their credentials there; write https://mcp.example.com"},
		{"public URL with a query", "public_url: https://mcp.example.com/?x\n" + notebook, "c.yaml:1: public_url: is not a URL of clients; write one such as https://mcp.example.com, without a query"},
		{"public URL of a server", "servers: {a: {builtin: notebook, public_url: x}}\n", "c.yaml:1: servers.a.public_url: is not a URL of clients; write one such as https://mcp.example.com, without a query"},
		{"anonymous on all addresses", "listen: ':2526'\nauth: none\n" + notebook, `c.yaml:1: listen: ":2526" can be reached from other machines, and nothing says who clients are; write a token that mcpbridge token makes below auth, or 127.0.0.1:2526 here, or set allow_anonymous: true`},
		{"one anonymous server on all addresses", "listen: ':2526'\nauth: {tokens: [{name: a, sha256: " + digest + "}]}\nservers: {a: {builtin: notebook}, b: {builtin: notebook, auth: none}}\n", `c.yaml:1: listen: ":2526" can be reached from other machines, and nothing says who clients are; write a token that mcpbridge token makes below auth, or 127.0.0.1:2526 here, or set allow_anonymous: true`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, tt.in)
			if strings.Contains(tt.in, "cert.pem") {
				writeCertificate(t)
			}
			_, _, err := config.Load(config.Options{Path: path})
			if err == nil || err.Error() != tt.want {
				t.Errorf("Load(%q) =\n%v\nwant\n%s", tt.in, err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Error("the message has the secret")
			}
		})
	}
}

// What is right is taken, a server's own before the common one, and the secrets are known.
func TestAuth(t *testing.T) {
	c, warnings, err := config.Load(config.Options{Path: write(t, `
listen: 0.0.0.0:2526
trusted_proxies: [10.0.0.0/8]
public_url: https://mcp.example.com
auth: {tokens: [{name: alice@example.com, token: "s3cret-0123456789"}, {name: alice@example.com, token: "s3cret-from-now-on"}]}
servers:
  a: {builtin: notebook}
  b:
    builtin: notebook
    auth: {jwt: {issuer: "http://127.0.0.1:9000", introspection: {client_id: x, client_secret: hunter22222}}}
`)})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("Load = %v, %v", warnings, err)
	}
	a, b := c.AuthOf(&c.Servers[0]), c.AuthOf(&c.Servers[1])
	if a != c.Auth || len(a.Tokens) != 2 || len(b.JWT) != 1 || b.JWT[0].Issuer != "http://127.0.0.1:9000" || c.MakeToken {
		t.Errorf("auth = %+v, %+v", a, b)
	}
	for _, secret := range []string{"s3cret-0123456789", "hunter22222"} {
		if !slices.Contains(c.Secrets(), secret) {
			t.Errorf("Secrets() lacks %s", secret)
		}
	}
}

// writeCertificate puts a certificate, which is also its authority, and its key into the
// current folder.
func writeCertificate(t *testing.T) {
	t.Helper()
	cert, key := bridgetest.NewAuthority(t, "clients").Issue(bridgetest.Leaf{})
	for name, text := range map[string][]byte{"cert.pem": cert, "key.pem": key} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A list of issuers is taken as one issuer is, in any way that there is to write it; so are
// several ways, and the environment sets keys of the only issuer.
func TestSeveralIssuers(t *testing.T) {
	const head = "public_url: https://mcp.example.com\nservers: {a: {builtin: notebook}, b: {builtin: notebook}}\n"
	for _, tt := range []struct {
		name, in string
		environ  []string
		want     []string // issuer and audiences
		warning  string
	}{
		{"one", "auth: {jwt: {issuer: 'https://a.example.com', audience: [x, y]}}", nil, []string{"https://a.example.com x y"}, ""},
		{"a list of one", "auth: {jwt: [{issuer: 'https://a.example.com', audience: [x]}]}", nil, []string{"https://a.example.com x"}, ""},
		{"a list", "auth:\n  jwt:\n    - issuer: https://a.example.com\n    - issuer: https://b.example.com\n      audience: [y]", nil, []string{"https://a.example.com", "https://b.example.com y"}, ""},
		{"beside tokens", "auth: {jwt: {issuer: 'https://a.example.com'}, tokens: [{name: a, token: 0123456789abcdef}]}", nil, []string{"https://a.example.com"}, ""},
		{"a key from the environment", "auth: {jwt: {issuer: 'https://a.example.com', audience: [x]}}", []string{"MCPBRIDGE_AUTH__JWT__ISSUER=https://b.example.com"}, []string{"https://b.example.com x"}, ""},
		{"all from the environment", "", []string{"MCPBRIDGE_AUTH__JWT__ISSUER=https://b.example.com"}, []string{"https://b.example.com"}, ""},
		{"a list from the environment", "", []string{"MCPBRIDGE_AUTH__JWT=[{issuer: 'https://a.example.com'}, {issuer: 'https://b.example.com'}]"}, []string{"https://a.example.com", "https://b.example.com"}, ""},
		{"a key of a list from the environment", "auth: {jwt: [{issuer: 'https://a.example.com'}]}", []string{"MCPBRIDGE_AUTH__JWT__ISSUER=https://b.example.com"}, []string{"https://a.example.com"}, "names no key"},
		{"the URL of another server", "auth: {jwt: [{issuer: 'https://a.example.com', audience: ['https://mcp.example.com/mcp/b']}]}", nil, []string{"https://a.example.com https://mcp.example.com/mcp/b"}, "is the public URL of the server b, whose tokens open a, too"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, warnings, err := config.Load(config.Options{Path: write(t, head+tt.in+"\n"), Environ: tt.environ})
			if err != nil {
				t.Fatal(err)
			}
			if (tt.warning == "") != (len(warnings) == 0) || len(warnings) > 0 && !strings.Contains(warnings[0].Message, tt.warning) {
				t.Errorf("warnings = %v, want %q", warnings, tt.warning)
			}
			var got []string
			for _, j := range c.Auth.JWT {
				got = append(got, strings.Join(append([]string{j.Issuer}, j.Audience...), " "))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("issuers = %q, want %q", got, tt.want)
			}
		})
	}
}

// Who has only a token can't connect where every client has to show a certificate.
func TestCertificatesBesideTokens(t *testing.T) {
	for clientAuth, want := range map[string]int{"require": 1, "optional": 0} {
		path := write(t, "tls: {cert: cert.pem, key: key.pem, client_ca: cert.pem, client_auth: "+clientAuth+"}\nauth: {mtls: {}, tokens: [{name: a, token: 0123456789abcdef}]}\n"+notebook)
		writeCertificate(t)
		_, warnings, err := config.Load(config.Options{Path: path})
		if err != nil || len(warnings) != want {
			t.Errorf("client_auth: %s = %v, %v, want %d warnings", clientAuth, warnings, err, want)
		}
	}
}
