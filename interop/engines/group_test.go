package engines

import (
	"errors"
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
	eventually(t, patience, "three members", g.whole)
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

// claim has replica i claim a name, and all others want it. An engine that is slow for a moment is away
// for who claims.
func (g *group) claim(i int, name string) {
	g.t.Helper()
	for n := range instances {
		var c replicas.Claim
		var err error
		eventually(g.t, patience, "claiming "+name, func() bool {
			c, err = g.e[(i+n)%len(instances)].Claim(g.t.Context(), name)
			return !errors.Is(err, replicas.ErrAway)
		})
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

// state tells what is not in order.
func (g *group) state(names map[string]int) (out []string) {
	for i, e := range g.e {
		v := e.View()
		if err := e.Put(g.t.Context(), "state", nil, time.Minute); err != nil {
			out = append(out, fmt.Sprintf("%s: Put: %v", instances[i], err))
		}
		if _, err := e.Get(g.t.Context(), "state"); err != nil {
			out = append(out, fmt.Sprintf("%s: Get: %v", instances[i], err))
		}
		out = append(out, fmt.Sprintf("%s knows %d members, away %v, fresh %v", instances[i], len(v.Members), v.Away, v.Fresh(time.Now())))
		for name, n := range names {
			known, ok := e.Holder(name)
			if c, err := e.Claim(g.t.Context(), name); err != nil || c.Epoch != known.Epoch || c.Holder.Instance != known.Holder.Instance {
				out = append(out, fmt.Sprintf("%s knows %+v of %s, and the engine has %+v, %v", instances[i], known, name, c, err))
			}
			if !ok || n >= 0 && known.Holder.Instance != instances[n] {
				out = append(out, fmt.Sprintf("%s takes %q for the holder of %s", instances[i], known.Holder.Instance, name))
			}
		}
	}
	return out
}

// recover waits until all is in order again, with each name of names at its holder. It
// returns how long that took.
func (g *group) recover(d time.Duration, names map[string]int) time.Duration {
	g.t.Helper()
	began := time.Now()
	defer func() {
		if g.t.Failed() {
			g.t.Logf("%q", g.state(names))
		}
	}()
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

// anywhere are the same names, whoever holds them.
func anywhere(names map[string]int) map[string]int {
	all := make(map[string]int)
	for name := range names {
		all[name] = -1
	}
	return all
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
