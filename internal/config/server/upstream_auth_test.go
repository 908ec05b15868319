package server_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// Every mistake in the credentials for a server says where, and what to write instead. No
// secret is repeated.
func TestUpstreamAuthMistakes(t *testing.T) {
	server := func(more string) string {
		return "servers:\n  a:\n    url: https://a.example/mcp\n    " + more + "\n"
	}
	const jwt = "public_url: https://mcp.example\nauth: {jwt: {issuer: https://id.example}}\n"
	const per, keys = "upstream_auth: {oauth: {per: principal}}", "login_keys: [0123456789abcdef]\n"
	const exchange = "upstream_auth: {token_exchange: {issuer: https://id.example, client_id: x, client_secret: s3cret}}"
	for _, tt := range []struct{ name, in, want string }{
		{"nothing", server("upstream_auth: {}"), "servers.a.upstream_auth: says nothing; write one of static, client_credentials, token_exchange, oauth and passthrough"},
		{"two", server("upstream_auth: {static: {token: s3cret}, oauth: {principal: x}}"), "oauth and static are both set"},
		{"header, too", server("headers: {authorization: s3cret}\n    upstream_auth: {static: {token: s3cret}}"), "headers has Authorization, too"},
		{"of a command", "servers: {a: {command: x, upstream_auth: {static: {token: s3cret}}}}", "belongs to servers with url"},
		{"empty token", server("upstream_auth: {static: {token: ''}}"), "is no token"},
		{"token with a line break", server(`upstream_auth: {static: {token: "s3cret\nX: 1"}}`), "is no token"},
		{"issuer in the open", server("upstream_auth: {client_credentials: {issuer: http://id.example, client_id: x, client_secret: s3cret}}"), "write one with https://"},
		{"no issuer", server("upstream_auth: {client_credentials: {client_id: x, client_secret: s3cret}}"), "is not the URL of an authorization server"},
		{"no client", server("upstream_auth: {client_credentials: {issuer: https://id.example, client_secret: s3cret}}"), "has no client_id"},
		{"no secret", server("upstream_auth: {client_credentials: {issuer: https://id.example, client_id: x}}"), "one of client_secret and private_key"},
		{"secret and key", server("upstream_auth: {client_credentials: {issuer: https://id.example, client_id: x, client_secret: s3cret, private_key: c.yaml}}"), "one of client_secret and private_key"},
		{"key that is not there", server("upstream_auth: {client_credentials: {issuer: https://id.example, client_id: x, private_key: key.pem}}"), "private_key: "},
		{"key that is none", server("upstream_auth: {client_credentials: {issuer: https://id.example, client_id: x, private_key: c.yaml}}"), "c.yaml:4: servers.a.upstream_auth.client_credentials.private_key: c.yaml: the private key is not a PEM text; use one"},
		{"exchange without tokens", server("era: modern\n    " + exchange), "clients of this server have none"},
		{"exchange without an era", jwt + server(exchange), "write era: legacy or era: modern"},
		{"per principal without users", keys + server("era: modern\n    "+per), "nothing says who the users are"},
		{"per principal without a page", "auth: {tokens: [{name: a, token: 0123456789abcdef}]}\nlogin_keys: [0123456789abcdef]\n" + server("era: modern\n    "+per), "write public_url at the top"},
		{"per principal without a key", jwt + server("era: modern\n    "+per), "write login_keys or state_keys"},
		{"per principal without an era", keys + jwt + server(per), "write era: legacy or era: modern"},
		{"per principal for all", keys + jwt + server("era: modern\n    isolation: shared\n    "+per), "with isolation: shared all have one session"},
		{"per principal and one", keys + jwt + server("era: modern\n    upstream_auth: {oauth: {per: principal, principal: x}}"), "Write one of per: principal"},
		{"per principal at a port", keys + jwt + server("era: modern\n    upstream_auth: {oauth: {per: principal, callback_port: 80}}"), "browsers return to public_url"},
		{"per somebody", keys + jwt + server("era: modern\n    upstream_auth: {oauth: {per: client}}"), "upstream_auth.oauth.per"},
		{"grant of the provider itself", jwt + server("era: modern\n    upstream_auth: {token_exchange: {issuer: https://id.example, client_id: x, client_secret: s3cret, id_jag: {issuer: https://id.example, client_id: y, client_secret: s3cret}}}"), "is the identity provider itself"},
		{"grant without a client", jwt + server("era: modern\n    upstream_auth: {token_exchange: {issuer: https://id.example, client_id: x, client_secret: s3cret, id_jag: {issuer: https://as.example}}}"), "id_jag: has no client_id"},
		{"exchange for all", jwt + server("era: modern\n    isolation: shared\n    "+exchange), "isolation: shared"},
		{"exchange over a WebSocket", jwt + strings.Replace(server("era: modern\n    "+exchange), "https://a", "wss://a", 1), "callers share a WebSocket"},
		{"login of nobody", server("upstream_auth: {oauth: {}}"), "whose login is it?"},
		{"login of one and all", server("upstream_auth: {oauth: {principal: x, shared_identity: true}}"), "whose login is it?"},
		{"one's login for all", server("isolation: shared\n    upstream_auth: {oauth: {principal: x}}"), "the login is one principal's"},
		{"passthrough by accident", jwt + server("era: modern\n    upstream_auth: {passthrough: {}}"), "the specification forbids"},
		{"passthrough to another resource", jwt + server("era: modern\n    upstream_auth: {passthrough: {same_resource: true}}"), "byte for byte"},
		{"passthrough, almost the same", jwt + server("public_url: https://a.example/mcp/\n    era: modern\n    upstream_auth: {passthrough: {same_resource: true}}"), "byte for byte"},
		{"passthrough for all", jwt + server("public_url: https://a.example/mcp\n    era: modern\n    isolation: shared\n    upstream_auth: {passthrough: {same_resource: true}}"), "isolation: shared"},
		{"document in the open", "client_metadata_url: http://x.example/c.json\n" + notebook, "client_metadata_url: is not the URL of a document"},
		{"document without a path", "client_metadata_url: https://x.example\n" + notebook, "client_metadata_url: is not the URL of a document"},
		{"host with a port", "allow_hosts: ['id.example:443']\n" + notebook, "allow_hosts.0: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := config.Load(config.Options{Path: write(t, tt.in)})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Load = %v, want an error with %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error repeats a secret: %v", err)
			}
		})
	}
}

// What can be dangerous is allowed with a warning.
func TestUpstreamAuthWarnings(t *testing.T) {
	_, warnings, err := config.Load(config.Options{Path: write(t, "servers: {a: {url: https://a.example/mcp, upstream_auth: {oauth: {shared_identity: true}}}}")})
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0].String(), "as the person who has logged in") {
		t.Errorf("Load = %v, %v, want to be warned of a shared identity", warnings, err)
	}
}

// A login is stored by the URL of its server, and by what its tokens are for: two servers for which
// that is the same have one login, which two principals can't each have for their own.
func TestStoredLoginOfTwoServers(t *testing.T) {
	const fault = "servers.b.upstream_auth.oauth: its login is stored in the place of that of a"
	for _, tt := range []struct {
		name, a, b, urlA, urlB string
		fault                  bool
	}{
		{"of two people", "principal: alice", "principal: bob", "https://a.example/mcp", "https://a.example/mcp", true},
		{"of one and of all", "principal: alice", "shared_identity: true", "https://a.example/mcp", "https://a.example/mcp", false},
		{"written in another way", "principal: alice", "principal: bob", "https://a.example/mcp", "HTTPS://A.example:443/mcp/", true},
		{"with a query", "principal: alice", "principal: bob", "https://a.example/mcp?team=s3cret", "https://a.example/mcp", true},
		{"over http", "principal: alice", "principal: bob", "http://127.0.0.1:80", "http://127.0.0.1/", true},
		{"of one person", "principal: alice", "principal: alice", "https://a.example/mcp", "https://a.example/mcp", false},
		{"of all", "shared_identity: true", "shared_identity: true", "https://a.example/mcp", "https://a.example/mcp", false},
		{"of each user", "principal: alice", "per: principal", "https://a.example/mcp", "https://a.example/mcp", false},
		{"at another path", "principal: alice", "principal: bob", "https://a.example/mcp", "https://a.example/MCP", false},
		{"at another port", "principal: alice", "principal: bob", "https://a.example/mcp", "https://a.example:444/mcp", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := "auth: {tokens: [{name: alice, token: 0123456789abcdef}, {name: bob, token: 0123456789abcdee}]}\npublic_url: https://mcp.example\nlogin_keys: [0123456789abcdef]\nservers:\n"
			for _, s := range [][3]string{{"a", tt.urlA, tt.a}, {"b", tt.urlB, tt.b}} {
				in += fmt.Sprintf("  %s: {url: %q, era: modern, upstream_auth: {oauth: {%s}}}\n", s[0], s[1], s[2])
			}
			_, _, err := config.Load(config.Options{Path: write(t, in)})
			if got := err != nil && strings.Contains(err.Error(), fault); got != tt.fault || !tt.fault && err != nil {
				t.Errorf("Load = %v, want it refused: %v", err, tt.fault)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error repeats a secret: %v", err)
			}
		})
	}
}

// Where there is one user only, a login is that user's, and nobody is warned of it.
func TestLoginOfTheOnlyUser(t *testing.T) {
	for _, tt := range []struct {
		name, oauth string
		shared      bool
		principal   string
		fault       string
	}{
		{"client", "{client_id: x, scopes: [read]}", true, "", ""},
		{"nothing", "{}", true, "", ""},
		{"named", "{principal: anonymous}", false, "anonymous", ""},
		{"of each user", "{per: principal}", true, "", ""},
		{"both", "{principal: x, shared_identity: true}", false, "", "whose login is it?"},
		{"secret alone", "{client_secret: x}", false, "", "without a client_id"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, "servers: {a: {url: https://a.example/mcp, upstream_auth: {oauth: "+tt.oauth+"}}}")
			c, warnings, err := config.Load(config.Options{Path: path, OneUser: true})
			if tt.fault != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fault) {
					t.Errorf("Load = %v, want %q", err, tt.fault)
				}
				return
			}
			if err != nil || len(warnings) > 0 {
				t.Fatalf("Load = %v, %v", warnings, err)
			}
			if o := c.Servers[0].UpstreamAuth.OAuth; o.SharedIdentity != tt.shared || o.Principal != tt.principal {
				t.Errorf("the login is %+v", o)
			}
		})
	}
}

// Secrets are known to what hides them, the private key among them.
func TestUpstreamAuthSecrets(t *testing.T) {
	path := write(t, "servers: {a: {url: https://a.example/mcp, upstream_auth: {client_credentials: {issuer: https://id.example, client_id: x, private_key: key.pem}}}}")
	bridgetest.NewAuthority(t, "a").Files(".", bridgetest.Leaf{})
	text, err := os.ReadFile("key.pem")
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := config.Load(config.Options{Path: path})
	if err != nil || c.Servers[0].UpstreamAuth.ClientCredentials.Key != string(text) {
		t.Fatalf("Load = %+v, %v, want the key", c, err)
	}
	if !strings.Contains(strings.Join(c.Secrets(), "|"), string(text)) {
		t.Error("the private key is not among the secrets")
	}
}
