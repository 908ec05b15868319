package replicas

import (
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// TestNoNoticeIsDoubled opens streams at all replicas, one after the other, while what they follow
// changes: each change that a stream owes is told, and a change is told twice at most while two streams
// at a server overlap. It reports how many were.
func TestNoNoticeIsDoubled(t *testing.T) {
	beside(t)
	over(t, both, func(t *testing.T, engine string) {
		t.Parallel() // most of the time it waits
		w := newWorld(t, setup{engine: engine, warn: true})
		for _, f := range []*fixture{w.legacy, w.modern} {
			changes, doubled := 0, 0
			for round := range size(3, 20) {
				c := &crowd{w: w, f: f, uris: f.list(60)[round%3*20 : round%3*20+20]}
				stop := c.change(t, 5*time.Millisecond)
				for i := range 2 * len(c.uris) {
					s, err := c.listen(w.replicas[i%len(w.replicas)], c.uris[i%len(c.uris)])
					if err != nil {
						t.Fatal(err)
					}
					c.mu.Lock()
					c.streams = append(c.streams, s)
					c.mu.Unlock()
				}
				time.Sleep(time.Second)
				touches := stop()
				c.settle(t, recovery, touches)
				time.Sleep(300 * time.Millisecond) // a second frame would come now
				n, twice := c.doubled(touches)
				changes, doubled = changes+n, doubled+twice
				c.wantOpen(t)
				c.close()
				rig.Until(t, recovery, "the server has no subscription", func() string {
					if v := f.view(); v.total() > 0 && f == w.legacy {
						return "there are some"
					}
					return ""
				})
			}
			t.Logf("%s: of %d notices that streams were owed, %d were told once more", f.name, changes, doubled)
		}
	})
}

// doubled returns how many changes streams were owed, and how many notices came beyond those.
func (c *crowd) doubled(touches []entry) (owed, more int) {
	for _, s := range c.all() {
		_, ackAt := s.Ack()
		n := 0
		for _, e := range touches {
			if e.URI == s.want[0] && e.At > ackAt {
				n++
			}
		}
		owed += n
		told := 0
		for _, frame := range s.Frames() {
			if frame.Topic == s.want[0] && frame.At > ackAt {
				told++
			}
		}
		more += max(told-n-1, 0) // the first may be of a change just before
	}
	return owed, more
}
