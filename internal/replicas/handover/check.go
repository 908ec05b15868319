package handover

import (
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// check finds records that the engine has lost, and has them put again. One that has forgotten
// everything has lost any of them; one whose server was replaced may have lost the last ones,
// so each is looked at once.
func (g *Group) check() {
	witness, unchecked := g.recorded()
	if witness != nil && g.lost(witness) {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, a := range g.adopted {
			a.put, a.checked = time.Time{}, false
		}
		return
	}
	g.each(unchecked, func(a *adopted) {
		lost := g.lost(a)
		g.mu.Lock()
		defer g.mu.Unlock()
		if a.checked = !lost; lost {
			a.put = time.Time{}
		}
	})
}

// recorded returns a session whose record has been there, and those whose records were put
// some time ago and not looked at since.
func (g *Group) recorded() (witness *adopted, unchecked []*adopted) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.adopted {
		switch {
		case a.checked:
			witness = a
		case !a.put.IsZero() && time.Since(a.put) >= look/2:
			unchecked = append(unchecked, a)
		}
	}
	return witness, unchecked
}

// lost reports whether the engine is there, and has no record of a session.
func (g *Group) lost(a *adopted) bool {
	_, err := g.opts.Engine.Get(g.live, keyOf(string(a.id)))
	return errors.Is(err, replicas.ErrNotFound)
}
