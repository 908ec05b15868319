package source

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

const (
	// seizeAfter is how long until this replica takes its claims. It doubles as long as
	// claims go back and forth.
	seizeAfter = 30 * time.Second
	// maxSeizes bounds how often it doubles.
	maxSeizes = 5
	// askTimeout bounds the question whether a replica can be reached again.
	askTimeout = time.Second
)

// lostAfter is how long a replica may not be reached before this one watches what that owns. One that
// has died is forgotten before, by the pace of the slowest replica.
func lostAfter(slowest replicas.Pace) time.Duration { return slowest.TTL() + 2*slowest.Every() }

// A reach is what is known of how other replicas are reached. It is safe for concurrent use.
type reach struct {
	g *Group

	// mu guards the fields below.
	mu       sync.Mutex
	contacts map[string]*contact // by instance
	seizing  map[string]bool     // names
}

// A contact is one other replica.
type contact struct {
	to     replicas.Replica
	since  time.Time // since when it can't be reached; zero if it can
	asking bool
}

func newReach(g *Group) *reach {
	return &reach{g: g, contacts: make(map[string]*contact), seizing: make(map[string]bool)}
}

// failed notes that a replica could not be reached since a time.
func (r *reach) failed(to replicas.Replica, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.contacts[to.Instance]
	if c == nil {
		c = &contact{to: to}
		r.contacts[to.Instance] = c
	}
	if c.since.IsZero() {
		c.since = since
	}
}

// reached notes that a replica was reached.
func (r *reach) reached(to replicas.Replica) {
	r.mu.Lock()
	c := r.contacts[to.Instance]
	delete(r.contacts, to.Instance)
	r.mu.Unlock()
	if c != nil {
		r.g.kick.Send()
	}
}

// lost returns since when a replica can't be reached; zero if it can, or could a moment ago.
func (r *reach) lost(instance string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.contacts[instance]
	if c == nil || time.Since(c.since) < lostAfter(r.g.opts.Engine.View().Slowest) {
		return time.Time{}
	}
	return c.since
}

// forget forgets the replicas that do not live.
func (r *reach) forget(view *replicas.View) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for instance := range r.contacts {
		if _, lives := view.Member(instance); !lives {
			delete(r.contacts, instance)
		}
	}
}

// check asks the replicas that could not be reached whether they can.
func (r *reach) check() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.contacts {
		if c.asking {
			continue
		}
		c.asking = true
		r.g.running.Go(func() { // ends within askTimeout
			r.ask(c)
			r.mu.Lock()
			c.asking = false
			r.mu.Unlock()
		})
	}
}

func (r *reach) ask(c *contact) {
	ctx, cancel := context.WithTimeout(r.g.live, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.g.opts.URL(c.to, "/peer/hello"), nil)
	if err != nil {
		return
	}
	resp, err := r.g.opts.RoundTripper(c.to, func(*http.Request) mcp.Sender { return mcp.Sender{} }).RoundTrip(req)
	if err != nil {
		return
	}
	_ = resp.Body.Close() // the status is enough
	r.reached(c.to)
}

// seize takes a name from a holder that can't be reached. It asks the engine in the
// background.
func (r *reach) seize(name string, from replicas.Claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seizing[name] || len(r.seizing) >= maxMoves {
		return // the next tick is early enough
	}
	r.seizing[name] = true
	r.g.running.Go(func() { // ends within claimTimeout
		ctx, cancel := context.WithTimeout(r.g.live, claimTimeout)
		defer cancel()
		_, err := r.g.opts.Engine.Seize(ctx, name, from)
		r.g.opts.Logger.Info("taking over from a replica that can't be reached", "replica", from.Holder.Instance, "claim", replicas.Key(name), "err", err)
		r.mu.Lock()
		delete(r.seizing, name)
		r.mu.Unlock()
		r.g.kick.Send()
	})
}
