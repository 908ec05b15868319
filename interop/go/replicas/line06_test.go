package replicas

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// TestLine06Engine stops the engine, and starts it with what it had, and empty: no error in
// running sessions, and claims are whole again soon.
func TestLine06Engine(t *testing.T) {
	beside(t)
	over(t, both, func(t *testing.T, engine string) {
		t.Parallel() // most of the time it waits
		w := newWorld(t, setup{engine: engine, warn: true})
		c := newCrowd(t, w, w.legacy, size(60, 600), 20)
		busy := w.keepBusy(t)
		for _, empty := range []bool{false, true} {
			w.withoutEngine(t, c, empty, size(6*time.Second, time.Minute))
		}
		t.Logf("%d calls of sessions", busy())
		c.steady(t, 2)
	})
}

func (w *world) withoutEngine(t *testing.T, c *crowd, empty bool, d time.Duration) {
	t.Helper()
	own := w.total(ownClaims)
	stop := c.change(t, 20*time.Millisecond)
	begun := time.Now()
	w.engine.stop()
	for _, r := range w.replicas {
		until(t, r.name+" says that the engine is away", func() bool {
			status, text := r.get("/readyz")
			return status == http.StatusOK && strings.Contains(text, `"engine":"away since `) && r.gauges()["mcpbridge_replica_engine_up"] == 0
		})
	}
	for i, r := range w.replicas { // whoever comes while it is away
		s := w.mustListen(r, "modern", w.modern.item(i))
		touched := w.modern.touch(w.modern.item(i))
		until(t, "a new stream hears at "+r.name, func() bool { return s.First(w.modern.item(i), touched[0].At) != 0 })
		s.Close()
	}
	time.Sleep(max(0, time.Until(begun.Add(d))))
	if empty {
		w.engine.wipe()
	}
	w.engine.start()
	back := time.Now()
	rig.Until(t, recovery, "claims are whole", func() string {
		for _, r := range w.replicas {
			if g := r.gauges(); g[membersGauge] != float64(len(w.replicas)) || g["mcpbridge_replica_engine_up"] != 1 {
				return fmt.Sprintf("%s has %v members, engine %v", r.name, g[membersGauge], g["mcpbridge_replica_engine_up"])
			}
		}
		if n := w.total(ownClaims); n < own {
			return fmt.Sprintf("%v claims, and there were %v", n, own)
		}
		if v := c.f.view(); v.total() != len(c.uris) {
			return fmt.Sprintf("%d subscriptions to %d URIs", v.total(), len(c.uris))
		}
		return ""
	})
	took := time.Since(back)
	touches := stop()
	longest := c.settle(t, recovery, touches)
	t.Logf("engine away for %v, empty %v: whole after %v; %d changes took %v at most", back.Sub(begun).Round(time.Second), empty, took.Round(time.Millisecond), len(touches), longest)
	if took > soon {
		t.Errorf("claims were whole %v after the engine was back, want %v at most", took, soon)
	}
	if longest > soon {
		t.Errorf("while the engine was away a change took %v, want %v at most", longest, soon)
	}
	c.wantOpen(t)
}

// keepBusy has sessions of both servers call through all replicas, until the end of the test
// or until the returned function is called, which returns how many calls there were. None
// may fail.
func (w *world) keepBusy(t *testing.T) (stop func() int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var calls atomic.Int64
	var running sync.WaitGroup
	for _, f := range []*fixture{w.legacy, w.modern} {
		for i, holder := range w.replicas {
			s := w.mustOpen(holder, f.name, nil)
			running.Go(func() { // ends with ctx
				for n := i; ctx.Err() == nil; n++ {
					at := w.replicas[n%len(w.replicas)]
					if a := s.mark(context.Background(), at, fmt.Sprint("busy ", n)); a.problem() != "" {
						t.Errorf("a call of a session on %s, held by %s, at %s: %s", f.name, holder.name, at.name, a.problem())
						return
					}
					calls.Add(1)
					time.Sleep(50 * time.Millisecond)
				}
			})
		}
	}
	over := sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(over)
	return func() int64 {
		over()
		return calls.Load()
	}
}
