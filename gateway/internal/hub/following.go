package hub

import (
	"context"
	"unique"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A Following is the subscription of a group at one of its members. The group follows each topic
// on behalf of a client, and is told of those that are lost.
type Following struct{ *Subscription }

// Follow registers mail as a subscriber of a server for a profile, without topics. group is the
// group's name. lost is called, by any goroutine, when there will be no more changes of a topic:
// it is quick, and calls nothing of the hub. If the server is used no more, mail ends. The caller
// calls Close.
func (h *Hub) Follow(s Server, p mcp.Profile, group string, mail *fanout.Mailbox, lost func(t fanout.Topic, reason error)) (*Following, error) {
	sub := &Subscription{
		hub: h, index: h.index, server: s, profile: p, mail: mail, told: lost, forget: func() {},
		by: Follower{Number: h.last.Add(1), Name: unique.Make("group " + group), Principal: p.Principal},
	}
	if err := h.add(sub); err != nil {
		return nil, err
	}
	return &Following{sub}, nil
}

// Follow adds a topic on behalf of a share, and reports whether the server tells its changes. It
// returns when that is known, or ctx ends.
func (f *Following) Follow(ctx context.Context, share mcp.Share, t fanout.Topic) (bool, error) {
	p := f.profile
	p.Share = share
	return f.addOne(ctx, p, t)
}

// Unfollow removes a topic, if it is followed. Its pending changes are not delivered.
func (f *Following) Unfollow(t fanout.Topic) { f.removeOne(t) }
