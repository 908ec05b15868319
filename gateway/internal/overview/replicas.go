package overview

import (
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

// Replicas returns what an engine has heard.
func Replicas(e replicas.Engine) *status.Replicas {
	v := e.View()
	out := &status.Replicas{Self: v.Self.Instance, Away: v.Away, Members: []status.Replica{}, Claims: []status.Claim{}}
	for _, r := range v.Members {
		out.Members = append(out.Members, status.Replica{Instance: r.Instance, Addr: r.Addr, Version: r.Version, Draining: r.Draining})
	}
	lister, ok := e.(replicas.Lister)
	if !ok {
		return out
	}
	all := lister.Claims()
	for _, c := range all[:min(len(all), status.MaxClaims)] {
		out.Claims = append(out.Claims, status.Claim{Key: c.Key, Holder: c.Holder.Instance, Epoch: c.Epoch})
	}
	out.ClaimsLeft = len(all) - len(out.Claims)
	return out
}
