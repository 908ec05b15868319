package group

import (
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A Member is one server of a group, as clients of its own endpoint have it: its names, policy,
// rates, pins, audit log, cached results and log lines apply. Its methods are safe for
// concurrent use.
type Member interface {
	// Serve serves a request whose names are those of the member's endpoint. It sets the
	// profile of a copy of req: that of the request at the group is no profile of the member.
	mcp.Handler
	// Describe implements [mcp.Describer], like Serve.
	mcp.Describer
	// Profile returns the profile of the member for one of the group.
	Profile(at mcp.Profile) mcp.Profile
	// Subscribe registers mail for a profile of the member, as a subscriber without topics
	// that is no listen stream. If the member is replaced or ends, mail ends.
	Subscribe(p mcp.Profile, mail *fanout.Mailbox) (mcp.Subscription, error)
	// Era returns the era of the server, or spec.Unknown before it is known.
	Era() spec.Era
	// Err returns nil if the server could be reached, or else why not, as [mcp.Back] does.
	Err() error
}

// A Find returns the member of a name that is served at the moment; nil if none is.
type Find func(name string) Member

// MemberOptions describe a member of a group.
type MemberOptions struct {
	// Name is the server's name.
	Name string
	// Prefix is what shown names of the member begin with, if the group has prefixes; see
	// [Prefix].
	Prefix string
}
