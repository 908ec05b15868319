package replicas

import (
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// TestLine07Partitions: replicas that don't reach each other, replicas that don't reach the
// engine, and an owner that stalls and wakes: no change is lost, and it heals by itself.
func TestLine07Partitions(t *testing.T) {
	beside(t)
	over(t, both, func(t *testing.T, engine string) {
		t.Parallel() // most of the time it waits
		long := size(3*time.Second, time.Minute)
		for how, name := range map[fault]string{cut: "cut", stalls: "stalled"} {
			t.Run(name, func(t *testing.T) {
				beside(t)
				w, c := linked(t, engine)
				w.fault(t, c, "owner and follower, "+name, long, func(owner, other *replica) { w.part(owner, other, how) })
				w.fault(t, c, "owner and engine, "+name, long, func(owner, _ *replica) { owner.toEngine.set("", how, how) })
				w.fault(t, c, "follower and engine, "+name, long, func(_, other *replica) { other.toEngine.set("", how, how) })
			})
		}
		t.Run("one way", func(t *testing.T) {
			beside(t)
			w, c := linked(t, engine)
			w.fault(t, c, "answers to the owner, stalled", long, func(owner, other *replica) { owner.inbound.set(other.name, flows, stalls) })
			w.fault(t, c, "the owner stopped", 10*time.Second, func(owner, _ *replica) { owner.pause() })
		})
	})
}

// linked returns a world with links, and streams.
func linked(t *testing.T, engine string) (*world, *crowd) {
	t.Helper()
	w := newWorld(t, setup{engine: engine, links: true, warn: true})
	c := newCrowd(t, w, w.legacy, size(60, 600), 20)
	w.legacy.wantSubscribed(recovery, c.uris)
	return w, c
}

// fault has something wrong for a while, with changes before, in between and after.
func (w *world) fault(t *testing.T, c *crowd, what string, d time.Duration, begin func(owner, other *replica)) {
	t.Helper()
	owner := w.owner()
	other := w.others(owner)[0]
	stop := c.change(t, 20*time.Millisecond)
	begin(owner, other)
	time.Sleep(d)
	w.heal()
	if what == "the owner stopped" {
		owner.resume()
	}
	healed := time.Now()
	time.Sleep(time.Second)
	touches := stop()
	longest := c.settle(t, recovery, touches)
	c.reopen(t, w.replicas) // a stream may end, if its client hears of that
	w.wantMembers(w.replicas...)
	rig.Until(t, recovery, "it heals", func() string {
		since := time.Now().UnixNano()
		c.f.touch(c.uris...)
		time.Sleep(200 * time.Millisecond)
		if missing := c.missing(since); missing != "" {
			return missing
		}
		if v := c.f.view(); v.total() != len(c.uris) {
			return "the server has more subscriptions than there are URIs, or fewer"
		}
		return ""
	})
	t.Logf("%s, for %v: %d changes took %v at most; healed %v after the end", what, d, len(touches), longest.Round(time.Millisecond), time.Since(healed).Round(time.Millisecond))
	if most := d + 10*time.Second; longest > min(most, 45*time.Second) {
		t.Errorf("%s: a change took %v to a stream, want %v at most", what, longest, min(most, 45*time.Second))
	}
}
