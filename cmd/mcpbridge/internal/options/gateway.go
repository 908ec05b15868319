package options

import (
	"net/netip"

	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
)

// payloadPart is the part of the memory, as a divisor, that payloads may take.
const payloadPart = 2

// Gateway returns the options that the servers have in common.
func Gateway(c *config.Config) *gateway.Options {
	limits := c.Limits
	limits.Memory /= payloadPart
	return &gateway.Options{
		Limits:         limits.ByName(),
		StateKeys:      c.StateKeys,
		Replicas:       replicasOf(c.Replicas),
		DebugErrors:    c.DebugErrors,
		BodyTimeout:    c.BodyTimeout,
		WriteTimeout:   c.WriteTimeout,
		KeepAlive:      c.KeepAlive,
		SessionIdle:    c.ClientIdle,
		Drain:          c.Drain - Closing(c.Drain),
		CloseGrace:     CloseGrace(c.Drain),
		AllowedHosts:   c.AllowedHosts,
		AllowedOrigins: c.AllowedOrigins,
		TrustedProxies: networks(c.TrustedProxies),
		Auth:           authentication(c.Auth),
		PublicURL:      c.PublicURL,
		Audit:          c.Audit.Path(),
		AuditRequired:  c.Audit.Required,
	}
}

// networks trusts that texts were checked.
func networks(texts []string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range texts {
		if n, err := value.Network(text); err == nil {
			out = append(out, n)
		}
	}
	return out
}
