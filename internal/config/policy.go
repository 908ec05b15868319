package config

import (
	"strconv"

	"github.com/mcpbridge/mcpbridge/internal/config/keypath"
	"github.com/mcpbridge/mcpbridge/internal/policy"
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

// policy finds rules that don't do what they say.
func (c *checker) policy(cfg *Config, s *Server, path string) {
	c.rates(s, keypath.Join(path, "rate"))
	path = keypath.Join(path, "policy")
	if s.Policy == nil || c.rep.Mistaken(path) {
		return
	}
	if s.Policy.Default == "" {
		c.rep.Fail(path, "does not say what becomes of what no rule matches; write default: deny, or default: allow")
	}
	for i := range s.Policy.Rules {
		c.rule(&s.Policy.Rules[i], cfg.AuthOf(s), keypath.Join(path, "rules", strconv.Itoa(i)))
	}
}

func (c *checker) rule(r *Rule, a *Auth, path string) {
	if (r.Allow == nil) == (r.Deny == nil) {
		c.rep.Fail(path, "has to be one of allow and deny; write it as in - allow: {tools: [\"read_*\"]}")
		return
	}
	m, key := r.match()
	path = keypath.Join(path, key)
	if c.emptyLists(m, path) {
		return
	}
	compiled := r.compiled()
	if err := compiled.Check(); err != nil {
		c.rep.Fail(path, "%v", err)
		return
	}
	c.who(m, a, path)
}

// who finds rules that match nobody, since clients prove nothing of what they name: one
// that denies would let everybody in.
func (c *checker) who(m *Match, a *Auth, path string) {
	anonymous := a == nil || a.Word != ""
	switch {
	case len(m.Claims) > 0 && (anonymous || a.JWT == nil):
		c.rep.Fail(keypath.Join(path, "claims"), "only access tokens have claims, so that the rule matches nobody; set auth: {jwt: …}, or name principals")
	case len(m.Scopes) > 0 && (anonymous || a.MTLS != nil):
		c.rep.Fail(keypath.Join(path, "scopes"), "clients of this server have no scopes, so that the rule matches nobody; set auth with tokens or jwt, or name principals")
	case anonymous && len(m.Principals) > 0 && !policy.Matches(m.Principals, "anonymous"):
		c.rep.Fail(keypath.Join(path, "principals"), "all clients of this server are anonymous, so that the rule matches nobody; set auth")
	}
}

// emptyLists reports lists without elements: a rule must not match more because somebody
// has left a list empty.
func (c *checker) emptyLists(m *Match, path string) (found bool) {
	check := func(key string, list []string) {
		here := keypath.Join(path, key)
		if c.rep.Written(here) && len(list) == 0 {
			c.rep.Fail(here, "is empty, and would match everything; name something, or remove it")
			found = true
		}
		for i, text := range list {
			if text == "" {
				c.rep.Fail(keypath.Join(here, strconv.Itoa(i)), "is empty; write a name or a pattern, such as read_*")
				found = true
			}
		}
	}
	check("principals", m.Principals)
	check("scopes", m.Scopes)
	check("methods", m.Methods)
	check("tools", m.Tools)
	check("prompts", m.Prompts)
	check("resources", m.Resources)
	for name, values := range m.Claims {
		check(keypath.Join("claims", name), values)
	}
	return found
}

func (c *checker) rates(s *Server, path string) {
	check := func(r Rate, path string) {
		if r.Burst > 0 && r.PerSecond == 0 {
			c.rep.Fail(keypath.Join(path, "burst"), "has no meaning without per_second; write that, too, or concurrent")
		}
	}
	check(s.Rate.Principal, keypath.Join(path, "principal"))
	check(s.Rate.Server, keypath.Join(path, "server"))
	for name, r := range s.Rate.Tools {
		check(r, keypath.Join(path, "tools", name))
	}
}
