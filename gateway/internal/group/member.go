package group

import (
	"context"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group/watch"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A Member is one server of a group, as clients of its own endpoint have it: its names, policy,
// rates, pins, audit log, cached results and log lines apply. Its methods are safe for
// concurrent use.
type Member interface {
	// Serve serves a request whose names are those of the member's endpoint. The request is its
	// own: it sets the profile, since that of the request at the group is no profile of the member.
	mcp.Handler
	// Describe implements [mcp.Describer]. It sets the profile of a copy of req.
	mcp.Describer
	// What is followed of the member, see [watch.Member].
	watch.Member
	// Follows reports whether the sender of a request may subscribe to a resource, as the
	// member's own policy says.
	Follows(req *mcp.Request, uri string) bool
	// Refused has the member's audit log say that the sender of a request may not subscribe to
	// resources.
	Refused(ctx context.Context, req *mcp.Request, uris []string)
	// RootsChanged, LevelChanged and ClientLeft implement [mcp.ClientFollower], like Describe.
	mcp.ClientFollower
	// Era returns the era of the server, or spec.Unknown before it is known.
	Era() spec.Era
	// Err returns nil if the server could be reached, or another replica serves it to the sender of
	// req, or else why not, as [mcp.Back] does. Nil for req asks for the server alone.
	Err(req *mcp.Request) error
}

// A Following is what a group follows at a member.
type Following = watch.Following

// A Find returns the member of a name that is served at the moment; nil if none is.
type Find func(name string) Member

// MemberOptions describe a member of a group.
type MemberOptions struct {
	// Name is the server's name.
	Name string
	// Prefix is what shown names of the member begin with, if the group has prefixes; see
	// [names.Prefix].
	Prefix string
}

// A Memory has lists of members from earlier runs, or from other replicas, each as clients of the
// member's endpoint with the principal and the capabilities of a request get it, and of the
// member's configuration of now: that decides what is hidden. Its methods are safe for concurrent
// use, and quick. req is a request at the group.
type Memory interface {
	// Recall returns an array of the items of a list; nil if they are not remembered.
	Recall(member string, req *mcp.Request, method string) (items []byte)
	// Remember takes an array of all items of a list, which it must not keep.
	Remember(member string, req *mcp.Request, method string, items []byte)
}
