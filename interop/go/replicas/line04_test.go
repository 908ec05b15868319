package replicas

import (
	"testing"
	"time"
)

// TestLine04Owner: many streams on few resources over three replicas have one subscription
// each at the server, and hear of each change once. The owner is killed again and again
// while the resources change: every follower is told in time.
func TestLine04Owner(t *testing.T) {
	streams, uris, kills := size(300, 3000), size(30, 100), size(2, 100)
	over(t, both, func(t *testing.T, engine string) {
		beside(t)
		w := newWorld(t, setup{engine: engine, items: uris, warn: true})
		c := newCrowd(t, w, w.legacy, streams, uris)
		w.legacy.wantSubscribed(recovery, c.uris)
		c.steady(t, 3)
		longest := time.Duration(0)
		for range kills {
			longest = max(longest, w.killOwner(t, c))
		}
		w.legacy.wantTold(recovery, c.uris)
		c.steady(t, 2)
		t.Logf("%d streams on %d URIs, %d owners killed: the longest that a change took to a follower is %v", streams, uris, kills, longest)
	})
}

// killOwner kills the owner while resources change, has the clients of the dead go to the
// others, and starts it again. It returns the longest that a change took to a stream of
// those that live.
func (w *world) killOwner(t *testing.T, c *crowd) time.Duration {
	t.Helper()
	stop := c.change(t, 10*time.Millisecond)
	time.Sleep(200 * time.Millisecond)
	owner := w.owner()
	begun := time.Now()
	owner.kill()
	c.broken(t, owner)
	moved := c.reopen(t, w.others(owner))
	time.Sleep(max(0, time.Until(begun.Add(4*time.Second))))
	touches := stop()
	longest := c.settle(t, recovery, touches)
	t.Logf("%s was killed: %d streams went to others, %d changes took %v at most", owner.name, moved, len(touches), longest)
	if longest > soon {
		t.Errorf("after the owner %s was killed a change took %v to a follower, want %v at most", owner.name, longest, soon)
	}
	owner.start()
	w.wantMembers(w.replicas...)
	return longest
}
