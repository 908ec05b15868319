package engines

import (
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/rediskv"
)

func (w *sentinels) group(known ...*process) *group {
	return newGroup(w.t, func() replicas.Engine {
		return redisEngine(w.t, rediskv.Options{URL: parse(w.t, w.url(known...))})
	})
}

// master is the one that a Sentinel names.
func (w *sentinels) master(s *process) *process {
	text, err := s.as("watchman", "sentinel", "master", "mymaster")
	for _, p := range w.redis {
		if err == nil && field(text, "port") == p.portText() {
			return p
		}
	}
	return nil
}

// What the master was told last is lost with it: its followers have not heard of it. Somebody claims
// it again: who held it, unless a busy machine has kept that one longer from the new master.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	w := newSentinels(t, 3, 3)
	w.Start(false)
	g := w.group(w.sentinel...)
	names := g.names()
	old := w.redis[0]
	for _, p := range w.redis[1:] {
		p.freeze()
	}
	old.ask("client", "kill", "type", "replica") // or what they can't read waits for them in their sockets
	for i, name := range []string{"late 1", "late 2", "late 3"} {
		g.claim(i, name)
		names[name] = -1
	}
	old.kill()
	for _, p := range w.redis[1:] {
		p.thaw()
	}
	eventually(t, patience, "another master", func() bool { m := w.master(w.sentinel[0]); return m != nil && m != old })
	t.Logf("all was in order %v after the new master was named", g.recover(60*time.Second, names))
	if c, _ := g.e[0].Holder("late 1"); c.Epoch < 2 {
		t.Errorf("the epoch of a claim that was lost is %d: it was not lost", c.Epoch)
	}
	old.start(false) // it is told whom to follow
	eventually(t, patience, "the former master follows", func() bool {
		text, err := old.try("role")
		return err == nil && len(text) > 5 && text[:5] == "slave"
	})
	g.recover(60*time.Second, names)
}

// A machine that is lost answers nothing: neither its Redis nor its Sentinel, from which all
// had learned of the others.
func TestSentinelMachineIsLost(t *testing.T) {
	t.Parallel()
	w := newSentinels(t, 3, 3)
	w.Start(false)
	g := w.group(w.sentinel[0])
	names := g.names()
	w.redis[0].freeze()
	w.sentinel[0].freeze()
	defer w.redis[0].thaw()
	defer w.sentinel[0].thaw()
	eventually(t, patience, "another master", func() bool { m := w.master(w.sentinel[1]); return m != nil && m != w.redis[0] })
	t.Logf("all was in order %v after the new master was named", g.recover(60*time.Second, names))
	w.sentinel[0].thaw()
	w.redis[0].thaw() // it takes itself for the master until the Sentinels tell it
	time.Sleep(2 * time.Second)
	g.recover(60*time.Second, names)
}
