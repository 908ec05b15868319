package main

import (
	"github.com/mcpbridge/mcpbridge"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/remember"
)

// stateDir returns the folder for what outlives the process; empty if there is none.
func stateDir(c *config.Config, environ []string) string {
	if c.StateDir != "" {
		return c.StateDir
	}
	return remember.StateDir(environ)
}

// auditPath returns where the audit log is; empty for none.
func auditPath(c *config.Config) string {
	if c.Audit == "off" {
		return ""
	}
	return c.Audit
}

// addAccess adds to a server's options who may do what with it.
func addAccess(o *mcpbridge.ServerOptions, s *config.Server) {
	o.Pin = mcpbridge.Pin(s.Pin)
	o.Rates = mcpbridge.Rates{Principal: rateOption(s.Rate.Principal), Server: rateOption(s.Rate.Server), Tools: make(map[string]mcpbridge.Rate)}
	for name, r := range s.Rate.Tools {
		o.Rates.Tools[name] = rateOption(r)
	}
	if s.Policy == nil {
		return
	}
	o.Policy = &mcpbridge.Policy{Default: mcpbridge.PolicyDefault(s.Policy.Default)}
	for _, r := range s.Policy.Compiled() {
		o.Policy.Rules = append(o.Policy.Rules, mcpbridge.Rule(r))
	}
}

func rateOption(r config.Rate) mcpbridge.Rate {
	return mcpbridge.Rate{PerSecond: r.PerSecond, Burst: int(r.Burst), Concurrent: int(r.Concurrent)}
}

// withoutAccess takes out of options what is about clients: who asks here is whoever runs
// mcpbridge.
func withoutAccess(o *mcpbridge.Options) {
	o.Audit = ""
	for i := range o.Servers {
		s := &o.Servers[i]
		s.Policy, s.Rates, s.Pin = nil, mcpbridge.Rates{}, mcpbridge.PinOff
	}
}
