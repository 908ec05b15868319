package replicas

import (
	"fmt"
	"testing"
)

// The world stands up, and what clients do reaches the servers, with no replica knowing of
// another.
func TestHarness(t *testing.T) {
	w := newWorld(t, setup{links: true})
	for _, server := range []string{"legacy", "modern"} {
		for i, r := range w.replicas {
			if a := w.mark(t.Context(), r.url(server), fmt.Sprint(server, i)); a.problem() != "" {
				t.Error(a.problem())
			}
			s := w.mustOpen(r, server, nil)
			if a := s.mark(t.Context(), r, fmt.Sprint(server, i, "session")); a.problem() != "" {
				t.Error(a.problem())
			}
			old, err := w.openOld(t.Context(), r, server, nil)
			if err != nil {
				t.Fatal(err)
			}
			if a := old.mark(t.Context(), r, fmt.Sprint(server, i, "old")); a.problem() != "" {
				t.Error(a.problem())
			}
			old.feed.close()
		}
		if a := w.mark(t.Context(), w.balancer.url(server), server+" balanced"); a.problem() != "" {
			t.Error(a.problem())
		}
	}
	f := w.legacy
	s := w.mustListen(w.replicas[0], "legacy", f.item(0))
	f.wantSubscribed(recovery, f.list(1))
	touched := f.touch(f.item(0))
	until(t, "the stream hears", func() bool { return s.First(f.item(0), touched[0].At) != 0 })
}

// Engines forget nothing over a stop, and all when they are wiped.
func TestEngines(t *testing.T) {
	over(t, both, func(t *testing.T, name string) {
		e := newEngine(t, name)
		e.stop()
		e.start()
		if keys := e.keys(); len(keys) != 0 {
			t.Errorf("keys of nobody: %q", keys)
		}
		e.stop()
		e.wipe()
		e.start()
	})
}
