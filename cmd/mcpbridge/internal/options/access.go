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
	o.Rates = gateway.Rates{Principal: rate(s.Rate.Principal), Server: rate(s.Rate.Server), Tools: make(map[string]gateway.Rate)}
	for name, r := range s.Rate.Tools {
		o.Rates.Tools[name] = rate(r)
	}
	if s.Policy == nil {
		return
	}
	o.Policy = &gateway.Policy{Default: gateway.PolicyDefault(s.Policy.Default)}
	for _, r := range s.Policy.Compiled() {
		o.Policy.Rules = append(o.Policy.Rules, gateway.Rule(r))
	}
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
}
