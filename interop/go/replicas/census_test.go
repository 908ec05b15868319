package replicas

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// A census counts what a replica has, without its connections with other replicas and the
// engine: these are kept for a while, now more, now less. Each costs either side a descriptor,
// and the replica that has accepted one a goroutine.
type census struct {
	goroutines, descriptors int
	claims                  float64
	kept                    kept
}

// kept are those connections: of other replicas, to them, and to the engine.
type kept struct{ accepted, dialed, engine int }

func (c census) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %v claims (and connections: %d of other replicas, %d to them, %d to the engine)",
		c.goroutines, c.descriptors, c.claims, c.kept.accepted, c.kept.dialed, c.kept.engine)
}

// more reports whether there is anything that there was not before.
func (c census) more(before census) bool {
	return c.goroutines > before.goroutines || c.descriptors > before.descriptors || c.claims > before.claims
}

// count takes the census of a replica that is at rest.
func (w *world) count(r *replica) (c census) {
	w.t.Helper()
	var g map[string]float64
	rig.Until(w.t, recovery, "no connection of "+r.name+" comes or goes", func() string {
		c.kept = w.keeps(r)
		g, c.goroutines = r.gauges(), r.goroutines()
		if now := w.keeps(r); now != c.kept {
			return fmt.Sprintf("%+v, and %+v", c.kept, now)
		}
		return ""
	})
	c.goroutines -= c.kept.accepted
	c.descriptors = int(g["process_open_fds"]) - c.kept.accepted - c.kept.dialed - c.kept.engine
	c.claims = g[ownClaims] + g[otherClaims]
	return c
}

// goroutines counts those of a replica. The gauge has some that gather metrics, now more, now
// less.
func (r *replica) goroutines() (n int) {
	r.w.t.Helper()
	status, text := r.get("/debug/pprof/goroutine?debug=1")
	if _, err := fmt.Sscanf(text, "goroutine profile: total %d", &n); err != nil {
		r.w.t.Fatalf("the goroutines of %s: %d, %v: %.300s", r.name, status, err, text)
	}
	return n
}

// keeps counts the connections of a replica with others and the engine.
func (w *world) keeps(r *replica) (n kept) {
	w.t.Helper()
	if err := connections(r.p.Pid(), func(local, other int) {
		switch {
		case local == port(r.peer):
			n.accepted++
		case other == port(w.engine.addr()):
			n.engine++
		case slices.ContainsFunc(w.others(r), func(one *replica) bool { return other == port(one.peer) }):
			n.dialed++
		}
	}); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// quiet returns the census of each replica once nothing is in flight, and connections with
// clients and servers that lie idle have gone.
func (w *world) quiet(t *testing.T) (all []census) {
	t.Helper()
	for _, r := range w.replicas {
		all = append(all, w.count(r))
	}
	since := time.Now()
	rig.Until(t, 3*time.Minute, "the replicas come to rest", func() string {
		time.Sleep(100 * time.Millisecond)
		w.clients.CloseIdleConnections()
		for i, r := range w.replicas {
			if now := w.count(r); all[i].more(now) {
				all[i], since = now, time.Now()
			}
		}
		if time.Since(since) < 4*time.Second {
			return "they do not stand still yet"
		}
		return ""
	})
	return all
}

// wantNoMore waits until no replica has more than before.
func (w *world) wantNoMore(t *testing.T, before []census) {
	t.Helper()
	for i, r := range w.replicas {
		var now census
		rig.Until(t, 2*time.Minute, r.name+" has nothing left", func() string {
			time.Sleep(100 * time.Millisecond)
			w.clients.CloseIdleConnections()
			if now = w.count(r); now.more(before[i]) {
				return fmt.Sprintf("%v; before: %v", now, before[i])
			}
			return ""
		})
		t.Logf("%s: %v; before: %v", r.name, now, before[i])
	}
}
