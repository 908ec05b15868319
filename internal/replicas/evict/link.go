package evict

import (
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

const (
	// askEvery is how often each other replica is asked whether it has something to tell
	// that did not arrive.
	askEvery = replicas.Heartbeat
	// unheard is how long one may not answer before nothing cached is served. One that has
	// died is no member any more by then.
	unheard = replicas.MemberTTL + replicas.Heartbeat
)

// A link is how another replica was reached. Group.mu guards its fields.
type link struct {
	heard  time.Time // when it has answered, or was first seen
	asking bool
}

// ask asks the other replicas whether they could not tell something, and notes who answers.
func (g *Group) ask() {
	others := g.others()
	g.mu.Lock()
	defer g.mu.Unlock()
	links := make(map[string]*link, len(others))
	for _, to := range others {
		l := g.links[to.Instance]
		if l == nil {
			l = &link{heard: time.Now()}
		}
		links[to.Instance] = l
		if l.asking || g.ended {
			continue
		}
		l.asking = true
		p := &peer{g: g, to: to}
		g.running.Go(func() { g.askOne(p, l) }) // ends within postTimeout
	}
	g.links = links
}

func (g *Group) askOne(p *peer, l *link) {
	owed, err := p.post(message{Ask: true})
	g.mu.Lock()
	if l.asking = false; err == nil {
		l.heard = time.Now()
	}
	g.mu.Unlock()
	if owed {
		g.opts.Cache.Clear()
	}
}

// linked reports whether all other replicas have answered lately. One that can't be reached
// may know of a change that it can't tell.
func (g *Group) linked(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.links {
		if now.Sub(l.heard) > unheard {
			return false
		}
	}
	return true
}

// owes reports whether a replica could not be told of something.
func (g *Group) owes(instance string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.peers[instance]
	return p != nil && p.failing
}
