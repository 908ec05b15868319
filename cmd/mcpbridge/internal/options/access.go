package options

import (
	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/config"
)

// AddAccess adds to a server's options who may do what with it.
func AddAccess(o *gateway.ServerOptions, s *config.Server) {
	o.Pin = gateway.Pin(s.Pin)
	shown := s.Names()
	o.Tools, o.Prompts, o.Resources = gateway.Shown(shown.Tools), gateway.Shown(shown.Prompts), gateway.Shown(shown.Resources)
	o.Prefix, o.Rates, o.Policy = s.Prefix, rates(&s.Rate), policy(s.Policy)
}

// policy returns nil for nil.
func policy(p *config.Policy) *gateway.Policy {
	if p == nil {
		return nil
	}
	out := &gateway.Policy{Default: gateway.PolicyDefault(p.Default)}
	for _, r := range p.Compiled() {
		out.Rules = append(out.Rules, gateway.Rule(r))
	}
	return out
}

func rates(r *config.Rates) gateway.Rates {
	out := gateway.Rates{Principal: rate(r.Principal), Server: rate(r.Server), Tools: make(map[string]gateway.Rate)}
	for name, r := range r.Tools {
		out.Tools[name] = rate(r)
	}
	return out
}

func rate(r config.Rate) gateway.Rate {
	return gateway.Rate{PerSecond: r.PerSecond, Burst: int(r.Burst), Concurrent: int(r.Concurrent)}
}

// WithoutAccess takes out of options what is about clients: who asks here is whoever runs
// mcpbridge.
func WithoutAccess(o *gateway.Options) {
	o.Audit, o.AuditRequired = "", false
	for i := range o.Servers {
		s := &o.Servers[i]
		s.Policy, s.Rates, s.Pin = nil, gateway.Rates{}, gateway.PinOff
		if a := s.UpstreamAuth; a != nil && a.Login != nil && a.Login.PerPrincipal { // his own, that mcpbridge login has stored
			own := *a.Login
			own.PerPrincipal, own.SharedIdentity = false, true
			s.UpstreamAuth = &gateway.UpstreamAuth{Login: &own}
		}
	}
	for i := range o.Groups {
		o.Groups[i].Policy, o.Groups[i].Rates = nil, gateway.Rates{}
	}
}

// AsTheyAre takes out of options what clients see of servers, and how: these are asked by their
// own names.
func AsTheyAre(o *gateway.Options) {
	for i := range o.Servers {
		s := &o.Servers[i]
		s.Tools, s.Prompts, s.Resources = gateway.Shown{}, gateway.Shown{}, gateway.Shown{}
	}
}

// OfCommand takes out of options what a command's own gateway does without: what is about
// clients, since it has no other one, and who else serves them.
func OfCommand(o *gateway.Options) {
	WithoutAccess(o)
	o.Auth, o.Replicas = nil, nil
	for i := range o.Servers {
		o.Servers[i].Auth = nil
	}
	for i := range o.Groups {
		o.Groups[i].Auth = nil
	}
}
