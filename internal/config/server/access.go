package server

import (
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

// A Policy says who may do what with a server.
type Policy struct {
	Default string `koanf:"default" enum:"deny allow" doc:"what becomes of what no rule matches; required"`
	Rules   []Rule `koanf:"rules" doc:"in order: the first rule that matches decides"`
}

// A Rule has one of the fields.
type Rule struct {
	Allow *Match `koanf:"allow" doc:"whom and what the rule allows"`
	Deny  *Match `koanf:"deny" doc:"whom and what the rule denies"`
}

// A Match says whom and what a rule is about. Texts but those of Scopes are patterns.
type Match struct {
	Principals []string            `koanf:"principals" doc:"who: any of these principals; * stands for any text, here and below"`
	Scopes     []string            `koanf:"scopes" doc:"who: with all of these scopes, as they are"`
	Claims     map[string][]string `koanf:"claims" doc:"who: with all of these claims, each of one of the values"`
	Methods    []string            `koanf:"methods" doc:"what: any of these methods"`
	Tools      []string            `koanf:"tools" doc:"what: about any of these tools, or of the prompts and resources"`
	Prompts    []string            `koanf:"prompts" doc:"what: about any of these prompts, or of the tools and resources"`
	Resources  []string            `koanf:"resources" doc:"what: about any of these resources, as URIs, or of the tools and prompts"`
}

// Rates bound the requests to a server.
type Rates struct {
	Principal Rate            `koanf:"principal" doc:"of each principal; of each address, if it is anonymous"`
	Server    Rate            `koanf:"server" doc:"of all clients together"`
	Tools     map[string]Rate `koanf:"tools" doc:"calls of one tool, by its name"`
}

// A Rate bounds requests.
type Rate struct {
	PerSecond  float64 `koanf:"per_second" default:"0" max:"1000000" doc:"on average; 0.1 is one every ten seconds"`
	Burst      int64   `koanf:"burst" default:"0" max:"1000000" doc:"at once; 0 is as many as come in a second"`
	Concurrent int64   `koanf:"concurrent" default:"0" max:"1000000" doc:"at the same time"`
}

// match returns what the rule matches, and where it stands.
func (r *Rule) match() (m *Match, key string) {
	if r.Deny != nil {
		return r.Deny, "deny"
	}
	return r.Allow, "allow"
}

// compiled returns the rule as it is decided on.
func (r *Rule) compiled() policy.Rule {
	m, key := r.match()
	return policy.Rule{
		Deny: key == "deny", Principals: m.Principals, Scopes: m.Scopes, Claims: m.Claims,
		Methods: m.Methods, Tools: m.Tools, Prompts: m.Prompts, Resources: m.Resources,
	}
}

// Compiled returns the rules as they are decided on.
func (p *Policy) Compiled() []policy.Rule {
	var rules []policy.Rule
	for i := range p.Rules {
		rules = append(rules, p.Rules[i].compiled())
	}
	return rules
}
