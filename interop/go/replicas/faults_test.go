package replicas

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// faultRounds is how often each fault is made: once, or as often as FAULTS says, which `make
// soak` sets.
func faultRounds(t *testing.T) int64 { return rig.Int(t, "FAULTS", 1) }

// TestFaultsOfLinks has the link between one replica and the engine stall, break and be slow, either
// way and both: no session is lost, no request fails, no change and no write is lost.
func TestFaultsOfLinks(t *testing.T) {
	beside(t)
	over(t, both, func(t *testing.T, engine string) {
		t.Parallel() // most of the time it waits
		l, servers := lone(t)
		w := newWorld(t, setup{engine: engine, engineLinks: true, warn: true, servers: servers})
		for range faultRounds(t) {
			for _, f := range []struct {
				name     string
				to, back fault
				d        time.Duration
			}{
				{"stalled", stalls, stalls, 7 * time.Second},
				{"stalled to the engine", stalls, flows, 7 * time.Second},
				{"stalled from the engine", flows, stalls, 7 * time.Second},
				{"cut", cut, cut, 7 * time.Second},
				{"slow", slow, slow, 7 * time.Second},
				{"slow to the engine", slow, flows, 5 * time.Second},
				{"slow from the engine", flows, slow, 5 * time.Second},
			} {
				w.unharmed(t, l, fmt.Sprintf("%s for %v", f.name, f.d), func() {
					r := w.ownerOf(l)
					t.Logf("of %s, which has the process", r.name)
					r.toEngine.set("", f.to, f.back)
					time.Sleep(f.d)
					r.toEngine.heal()
				})
			}
		}
	})
}

// ownerOf returns the replica that has the process of lone.
func (w *world) ownerOf(l *ledgers) *replica {
	w.t.Helper()
	var owner *replica
	rig.Until(w.t, recovery, "lone has an owner", func() string {
		nonce := fmt.Sprint("owner ", lastID.Add(1))
		if a := w.mark(w.t.Context(), w.balancer.url("lone"), nonce); a.problem() != "" {
			return a.problem()
		}
		owner = w.holderOf("lone", l.calls("lone")[nonce][0])
		return ""
	})
	return owner
}

// TestFaultsOfOwners cuts the owner of a server with replicas: one off, from the engine and from
// all: never do two processes acknowledge writes, none that was is lost, and another owner serves
// soon if the first one can't.
func TestFaultsOfOwners(t *testing.T) {
	beside(t)
	over(t, both, func(t *testing.T, engine string) {
		t.Parallel() // most of the time it waits
		for range faultRounds(t) {
			for name, all := range map[string]bool{"from the engine": false, "from all": true} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					l, servers := lone(t)
					w := newWorld(t, setup{engine: engine, links: true, warn: true, servers: servers})
					w.cutsOwner(t, l, all)
				})
			}
		}
	})
}

// cutsOwner cuts the owner of lone off for 12 s, while clients write at each replica.
func (w *world) cutsOwner(t *testing.T, l *ledgers, all bool) {
	t.Helper()
	owner := w.ownerOf(l)
	writing := w.beginWriting(t)
	time.Sleep(time.Second)
	cutAt := time.Now()
	owner.toEngine.set("", cut, cut)
	for _, other := range w.others(owner) {
		if all {
			w.part(owner, other, cut)
		}
	}
	time.Sleep(12 * time.Second)
	w.heal()
	w.wantMembers(w.replicas...)
	w.wantWritten(t)
	writes := writing()
	l.wantOneOwner(t, "lone", slices.Concat(writes...))
	by := l.calls("lone")
	for i, r := range w.replicas {
		var longest time.Duration
		last := cutAt
		processes := make(map[string]bool)
		for _, one := range writes[i] {
			if one.ended.After(cutAt) {
				longest = max(longest, one.ended.Sub(last))
				last = one.ended
			}
			for _, process := range by[one.nonce] {
				processes[process] = true
			}
		}
		t.Logf("%s: %d writes by %d processes; for %v none was acknowledged", r.name, len(writes[i]), len(processes), longest.Round(time.Millisecond))
		if !all && len(processes) != 1 {
			t.Errorf("%d processes have served %s, though the owner reaches the others", len(processes), r.name)
		}
	}
}

// wantWritten waits until writes are acknowledged at each replica.
func (w *world) wantWritten(t *testing.T) {
	t.Helper()
	for _, r := range w.replicas {
		rig.Until(t, recovery, "writes go on at "+r.name, func() string {
			a := w.mark(t.Context(), r.url("lone"), fmt.Sprint("healed ", lastID.Add(1)))
			return a.problem()
		})
	}
}

// beginWriting has clients write to lone at each replica until the returned function is called,
// which returns what was acknowledged at each.
func (w *world) beginWriting(t *testing.T) (stop func() [][]write) {
	t.Helper()
	done := make(chan struct{})
	var running sync.WaitGroup
	writes := make([][]write, len(w.replicas))
	for i, r := range w.replicas {
		running.Go(func() { // ends with done
			for {
				select {
				case <-done:
					return
				case <-time.After(100 * time.Millisecond):
				}
				one := write{nonce: fmt.Sprint("write ", lastID.Add(1)), begun: time.Now()}
				if a := w.mark(t.Context(), r.url("lone"), one.nonce); a.problem() == "" {
					one.ended = time.Now()
					writes[i] = append(writes[i], one)
				}
			}
		})
	}
	over := sync.OnceFunc(func() {
		close(done)
		running.Wait()
	})
	t.Cleanup(over)
	return func() [][]write {
		over()
		return writes
	}
}
