package engines

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// A group is three replicas that know each other.
type group struct {
	t *testing.T
	e [3]replicas.Engine
}

var instances = [3]string{"AAAAAAAA", "BBBBBBBB", "CCCCCCCC"}

// newGroup has three replicas join, each by an engine that open returns.
func newGroup(t *testing.T, open func() replicas.Engine) *group {
	t.Helper()
	g := &group{t: t}
	for i, name := range instances {
		g.e[i] = open()
		if err := g.e[i].Join(t.Context(), replicas.Replica{Instance: name, Addr: fmt.Sprintf("10.0.0.%d:2528", i+1), Version: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, 20*time.Second, "three members", g.whole)
	return g
}

// whole reports whether all know all, and hear of them.
func (g *group) whole() bool {
	for _, e := range g.e {
		if v := e.View(); len(v.Members) != len(instances) || !v.Away.IsZero() || !v.Fresh(time.Now()) {
			return false
		}
	}
	return true
}

// claim has replica i claim a name, and all others want it.
func (g *group) claim(i int, name string) {
	g.t.Helper()
	for n := range instances {
		c, err := g.e[(i+n)%len(instances)].Claim(g.t.Context(), name)
		if err != nil || c.Holder.Instance != instances[i] {
			g.t.Fatalf("claiming %s: %+v, %v", name, c, err)
		}
	}
}

// holds reports whether all know replica i, or with -1 the same one, as who holds a name.
func (g *group) holds(i int, name string) bool {
	who := ""
	if i >= 0 {
		who = instances[i]
	}
	for _, e := range g.e {
		c, ok := e.Holder(name)
		if !ok || who != "" && c.Holder.Instance != who {
			return false
		}
		who = c.Holder.Instance
	}
	return true
}

// kept reports whether the engine itself has the claim that all know.
func (g *group) kept(i int, name string) bool {
	if !g.holds(i, name) {
		return false
	}
	for n, e := range g.e {
		known, _ := e.Holder(name)
		if c, err := g.e[n].Claim(g.t.Context(), name); err != nil || c.Epoch != known.Epoch || c.Holder.Instance != known.Holder.Instance {
			return false
		}
	}
	return true
}

// usable reports whether a record can be kept, and read by another replica.
func (g *group) usable(key string) bool {
	if g.e[0].Put(g.t.Context(), key, []byte("record"), time.Minute) != nil {
		return false
	}
	got, err := g.e[2].Get(g.t.Context(), key)
	return err == nil && string(got) == "record"
}

// recover waits until all is in order again, with each name of names at its holder. It
// returns how long that took.
func (g *group) recover(d time.Duration, names map[string]int) time.Duration {
	g.t.Helper()
	began := time.Now()
	eventually(g.t, d, "all is in order", func() bool {
		if !g.whole() || !g.usable(fmt.Sprint("after ", began)) {
			return false
		}
		for name, i := range names {
			if !g.kept(i, name) {
				return false
			}
		}
		return true
	})
	return time.Since(began)
}

// names are of profiles, some for each replica.
func (g *group) names() map[string]int {
	all := make(map[string]int)
	for i := range 30 {
		name := fmt.Sprint("profile ", i)
		g.claim(i%len(instances), name)
		all[name] = i % len(instances)
	}
	return all
}
