package watch

import (
	"context"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A Member is the part of a member of a group that is followed. Its methods are safe for
// concurrent use.
type Member interface {
	// Profile returns the profile of the member for one of the group.
	Profile(at mcp.Profile) mcp.Profile
	// Subscribe registers mail for a profile of the member, as a subscriber without topics
	// that is no listen stream. If the member is replaced or ends, mail ends. lost is called,
	// by any goroutine, when there will be no more changes of a topic; it is quick and calls
	// nothing back. Subscribe itself does not wait for anything.
	Subscribe(p mcp.Profile, mail *fanout.Mailbox, lost func(t fanout.Topic, reason error)) (Following, error)
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

// A View is what there is of a group at a time. It does not change.
type View struct {
	// Members are their names, in the group's order.
	Members []string
	// Find returns the member of a name that is served at the moment, or why there is none.
	Find func(name string) (Member, error)
	// Holders returns the names of the members that have a resource, as far as is known; none if
	// it is not.
	Holders func(p *mcp.Profile, uri string) []string
	// Patience bounds the wait for members.
	Patience time.Duration
}

// A Route says which members are asked for the changes of a topic.
type Route struct {
	Members []string  // of a resource, by name; none for all
	Known   bool      // they have it, as far as is known
	By      time.Time // when the subscriber is answered; zero after the group's patience
}

// routes are those of topics that are being subscribed to. The zero value is ready to use.
type routes struct {
	mu sync.Mutex // guards of; a leaf
	of map[fanout.Topic]*Route
}

// add has routes found until leave is called.
func (r *routes) add(all map[fanout.Topic]*Route) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = make(map[fanout.Topic]*Route)
	}
	for t, to := range all {
		r.of[t] = to
	}
	return func() { r.remove(all) }
}

func (r *routes) remove(all map[fanout.Topic]*Route) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for t, to := range all {
		if r.of[t] == to { // and not a later one
			delete(r.of, t)
		}
	}
}

func (r *routes) get(t fanout.Topic) *Route {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[t]
}
