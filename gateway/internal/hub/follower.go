package hub

import (
	"unique"

	"github.com/mcpbridge/mcpbridge/index"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// An Index is who follows what.
type Index = index.Index[fanout.Topic, *fanout.Mailbox]

func newIndex() *Index { return index.New[fanout.Topic, *fanout.Mailbox](index.Options{}) }

// A Follower is what is known of a subscriber.
type Follower struct {
	Number    uint64                // another one for each, and not zero
	Name      unique.Handle[string] // of its client: ten thousand have few
	Session   string
	Principal mcp.Principal
	Era       spec.Era
}

// NewFollower returns the Follower of a request that opens a subscription. number is another
// one for each, and not zero.
func NewFollower(req *mcp.Request, number uint64) Follower {
	return Follower{number, unique.Make(mcp.ClientName(req.ClientInfo)), req.Session, req.Principal, req.Era}
}

// A Stream is an open listen stream.
type Stream struct {
	Server string
	By     Follower
}
