package replicas

import (
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// TestNoNoticeIsDoubled opens streams at all replicas, one after the other, while what they follow
// changes: each change that a stream owes is told, and told once if its server has sent it once. A
// modern server sends it on two streams while the owner of the profile merges what it has open there.
func TestNoNoticeIsDoubled(t *testing.T) {
	beside(t)
	over(t, both, func(t *testing.T, engine string) {
		t.Parallel() // most of the time it waits
		w := newWorld(t, setup{engine: engine, warn: true})
		for _, f := range []*fixture{w.legacy, w.modern} {
			var all notices
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
				all = all.plus(c.count(t, touches, f.entries()))
				c.wantOpen(t)
				c.close()
				rig.Until(t, recovery, "the server has no subscription", func() string {
					if v := f.view(); v.total() > 0 && f == w.legacy {
						return "there are some"
					}
					return ""
				})
			}
			t.Logf("%s: %d notices were owed, %d sent, and %d told beyond those that were owed", f.name, all.owed, all.sent, all.more)
		}
	})
}

// notices are those of streams: owed to them, sent by the server for each of them, and told beyond
// those that were owed.
type notices struct{ owed, sent, more int }

func (n notices) plus(m notices) notices {
	return notices{n.owed + m.owed, n.sent + m.sent, n.more + m.more}
}

// count counts the notices of all streams, and wants none to have been told more than the server has
// sent since the stream was asked for: on a busy machine its acknowledgment is read late, and what
// follows it may have been sent before that.
func (c *crowd) count(t *testing.T, touches, ledger []entry) (all notices) {
	t.Helper()
	for _, s := range c.all() {
		_, ackAt := s.Ack()
		after := func(at int64, entries []entry, is func(entry) bool) (n int) {
			for _, e := range entries {
				if e.URI == s.want[0] && e.At > at && is(e) {
					n++
				}
			}
			return n
		}
		n := notices{owed: after(ackAt, touches, func(entry) bool { return true })}
		n.sent = after(s.asked, ledger, func(e entry) bool { return e.What == "sent" && e.Method == "notifications/resources/updated" })
		told := 0
		for _, frame := range s.Frames() {
			if frame.Topic == s.want[0] && frame.At > ackAt {
				told++
			}
		}
		n.more = max(told-n.owed-1, 0) // the first may be of a change just before
		all = all.plus(n)
		if told > n.sent+1 {
			t.Errorf("a stream at %s was told %d times of %s, which %s has sent %d times", s.at.name, told, s.want[0], c.f.name, n.sent)
		}
	}
	return all
}
