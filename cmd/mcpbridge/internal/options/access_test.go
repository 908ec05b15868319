package options

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

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
  d2: {url: "https://d2.example.com/mcp", prefix: dd}
groups:
  team:
    servers: [d, d2]
    prefix: never
    prefer: {search: d2}
    patience: 1s
    start_patience: 3s
    on_missing: fail
    name_max: 100
    attribute: false
    instructions: be kind
    public_url: https://team.example.com/mcp
    auth: {tokens: [{name: ada, token: a-token-of-a-client}]}
    rate: {principal: {per_second: 2}}
    policy: {default: allow, rules: [{deny: {tools: [delete]}}]}
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
	team := Group(&c.Groups[0])
	if want := (gateway.GroupOptions{
		Name: "team", Members: []string{"d", "d2"}, OwnNames: true, Prefer: map[string]string{"search": "d2"}, MaxName: 100, Patience: time.Second, StartPatience: 3 * time.Second,
		RequireAll: true, Unattributed: true, Instructions: "be kind", Auth: &gateway.Auth{Tokens: []gateway.StaticToken{{Name: "ada", Token: "a-token-of-a-client"}}},
		PublicURL: "https://team.example.com/mcp", Policy: &gateway.Policy{Default: gateway.DefaultAllow, Rules: []gateway.Rule{{Deny: true, Tools: []string{"delete"}}}},
		Rates: gateway.Rates{Principal: gateway.Rate{PerSecond: 2}, Tools: make(map[string]gateway.Rate)},
	}); !reflect.DeepEqual(team, want) {
		t.Errorf("the group is %+v, want %+v", team, want)
	}
	if got := o.Servers[4].Prefix; got != "dd" {
		t.Errorf("the prefix is %q", got)
	}
	o.Audit, o.Groups = "audit.log", []gateway.GroupOptions{team}
	WithoutAccess(o)
	if g := &o.Groups[0]; g.Policy != nil || !reflect.DeepEqual(g.Rates, gateway.Rates{}) || g.Auth == nil {
		t.Errorf("without access the group is %+v", g)
	}
	if a.Policy != nil || a.Pin != gateway.PinOff || !reflect.DeepEqual(a.Rates, gateway.Rates{}) || o.Audit != "" {
		t.Errorf("without access: %+v, audit %q", a, o.Audit)
	}
	if a.Auth == nil {
		t.Error("without access, clients are not told apart any more")
	}
	o.Auth, o.Replicas = &gateway.Auth{}, &gateway.Replicas{}
	if OfCommand(o); o.Auth != nil || a.Auth != nil || o.Groups[0].Auth != nil || o.Replicas != nil {
		t.Errorf("of a command: auth %+v and %+v, replicas %+v", o.Auth, a.Auth, o.Replicas)
	}
}
