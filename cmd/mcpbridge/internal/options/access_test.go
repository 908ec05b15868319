package options

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/config"
)

// Who clients are, what they may do, and with which credentials servers are asked arrives,
// too; none of the first two is about whoever runs mcpbridge.
func TestAccessArrives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	err := os.WriteFile(path, []byte(`
public_url: https://mcp.example.com
auth: {tokens: [{name: ada, token: a-token-of-a-client}]}
servers:
  a:
    url: https://a.example.com/mcp
    auth: {jwt: [{issuer: "https://issuer.example.com", scopes: [mcp]}, {issuer: "https://other.example.com", audience: [x]}]}
    upstream_auth: {static: {token: "a-token-for-the-server"}}
    pin: refuse
    rate: {principal: {per_second: 2, burst: 3}, server: {concurrent: 4}, tools: {search: {per_second: 5}}}
    policy: {default: deny, rules: [{allow: {principals: [ada], tools: ["read_*"]}}]}
  b:
    url: https://b.example.com/mcp
    upstream_auth: {client_credentials: {issuer: "https://issuer.example.com", client_id: us, client_secret: s, scopes: [x]}}
  c:
    url: https://c.example.com/mcp
    era: modern
    auth: {jwt: {issuer: "https://issuer.example.com"}}
    upstream_auth: {token_exchange: {issuer: "https://issuer.example.com", client_id: us, client_secret: s, audience: c}}
  d:
    url: https://d.example.com/mcp
    upstream_auth: {oauth: {principal: ada, scopes: [y], issuer: "https://issuer.example.com", pkce: assume}}
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := config.Load(config.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	o := Gateway(c)
	if o.Auth == nil || len(o.Auth.Tokens) != 1 || o.Auth.Tokens[0].Name != "ada" || o.PublicURL != "https://mcp.example.com" {
		t.Errorf("auth = %+v of %s", o.Auth, o.PublicURL)
	}
	for i := range c.Servers {
		s := Server(&c.Servers[i])
		AddAccess(&s, &c.Servers[i])
		o.Servers = append(o.Servers, s)
	}
	a := &o.Servers[0]
	if a.Auth == nil || a.Auth.JWT == nil || a.Auth.JWT.Issuer != "https://issuer.example.com" || !reflect.DeepEqual(a.Auth.JWT.Scopes, []string{"mcp"}) ||
		!reflect.DeepEqual(a.Auth.OtherIssuers, []gateway.JWT{{Issuer: "https://other.example.com", Audience: []string{"x"}}}) {
		t.Errorf("auth of a = %+v", a.Auth)
	}
	rates := gateway.Rates{Principal: gateway.Rate{PerSecond: 2, Burst: 3}, Server: gateway.Rate{Concurrent: 4}, Tools: map[string]gateway.Rate{"search": {PerSecond: 5}}}
	policy := &gateway.Policy{Default: gateway.DefaultDeny, Rules: []gateway.Rule{{Principals: []string{"ada"}, Tools: []string{"read_*"}}}}
	if a.Pin != gateway.PinRefuse || !reflect.DeepEqual(a.Rates, rates) || !reflect.DeepEqual(a.Policy, policy) {
		t.Errorf("a has pin %q, rates %+v, policy %+v, want %+v, %+v", a.Pin, a.Rates, a.Policy, rates, policy)
	}
	issuer := gateway.IssuerClient{Issuer: "https://issuer.example.com", ClientID: "us", ClientSecret: "s"}
	forItself, exchanged := issuer, issuer
	forItself.Scopes, exchanged.Audience = []string{"x"}, "c"
	for i, want := range []*gateway.UpstreamAuth{
		{Token: "a-token-for-the-server"}, {ClientCredentials: &forItself}, {TokenExchange: &exchanged},
		{Login: &gateway.StoredLogin{Principal: "ada", Scopes: []string{"y"}, Issuer: "https://issuer.example.com", AssumePKCE: true}},
	} {
		if got := o.Servers[i].UpstreamAuth; !reflect.DeepEqual(got, want) {
			t.Errorf("upstream_auth of %s = %+v, want %+v", o.Servers[i].Name, got, want)
		}
	}
	o.Audit = "audit.log"
	WithoutAccess(o)
	if a.Policy != nil || a.Pin != gateway.PinOff || !reflect.DeepEqual(a.Rates, gateway.Rates{}) || o.Audit != "" {
		t.Errorf("without access: %+v, audit %q", a, o.Audit)
	}
	if a.Auth == nil {
		t.Error("without access, clients are not told apart any more")
	}
	o.Auth, o.Replicas = &gateway.Auth{}, &gateway.Replicas{}
	if OfCommand(o); o.Auth != nil || a.Auth != nil || o.Replicas != nil {
		t.Errorf("of a command: auth %+v and %+v, replicas %+v", o.Auth, a.Auth, o.Replicas)
	}
}
