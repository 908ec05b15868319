package group

import (
	"context"

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
	// that is no listen stream. If the member is replaced or ends, mail ends. lost is called,
	// by any goroutine, when there will be no more changes of a topic; it is quick and calls
	// nothing back. Subscribe itself does not wait for anything.
	Subscribe(p mcp.Profile, mail *fanout.Mailbox, lost func(t fanout.Topic, reason error)) (Following, error)
	// Follows reports whether the sender of a request may subscribe to a resource, as the
	// member's own policy says.
	Follows(req *mcp.Request, uri string) bool
	// RootsChanged implements [mcp.RootsFollower], like Serve.
	mcp.RootsFollower
	// Era returns the era of the server, or spec.Unknown before it is known.
	Era() spec.Era
	// Err returns nil if the server could be reached, or else why not, as [mcp.Back] does.
	Err() error
}

// A Following is the set of topics that a group follows at a member for one profile. Its methods
// are safe for concurrent use.
type Following interface {
	// Follow adds a topic of the member on behalf of a share, and reports whether the member
	// tells its changes. An error says that the member can't be asked at the moment. It returns
	// when that is known, or ctx ends.
	Follow(ctx context.Context, share mcp.Share, t fanout.Topic) (bool, error)
	// Unfollow removes a topic, if it is followed. It does not wait for anything, like Close.
	Unfollow(t fanout.Topic)
	// Close removes all topics. It may be called again.
	Close()
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
