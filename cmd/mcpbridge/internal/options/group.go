package options

import (
	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/config"
)

// Group returns the options of a group.
func Group(g *config.Group) gateway.GroupOptions {
	return gateway.GroupOptions{
		Name:          g.Name,
		Members:       g.Members,
		OwnNames:      g.Prefix == "never",
		Prefer:        g.Prefer,
		MaxName:       int(g.NameMax),
		Patience:      g.Patience,
		StartPatience: g.StartPatience,
		RequireAll:    g.OnMissing == "fail",
		Unattributed:  !g.Attribute,
		Instructions:  g.Instructions,
		Auth:          authentication(g.Auth),
		PublicURL:     g.PublicURL,
		Policy:        policy(g.Policy),
		Rates:         rates(&g.Rate),
	}
}
