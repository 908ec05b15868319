package engines

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/rediskv"
)

func (w *cluster) group() *group {
	return newGroup(w.t, func() replicas.Engine { return redisEngine(w.t, rediskv.Options{URL: parse(w.t, w.url())}) })
}

// slot is that of all keys.
func (w *cluster) slot() string { return w.redis[0].ask("cluster", "keyslot", "{test}:members") }

// owner is the server that has all keys.
func (w *cluster) owner() *process {
	w.t.Helper()
	for _, p := range w.redis {
		if text, err := p.try("exists", "{test}:members"); err == nil && text == "1" && strings.HasPrefix(p.ask("role"), "master") {
			return p
		}
	}
	w.t.Fatal("no server has the keys")
	return nil
}

func TestClusterFailover(t *testing.T) {
	t.Parallel()
	w := newCluster(t, 3, 1)
	w.Start(false)
	g := w.group()
	names := g.names()
	old := w.owner()
	old.kill()
	began := time.Now()
	time.Sleep(3 * time.Second) // who takes over is decided by then, or not
	g.recover(60*time.Second, names)
	t.Logf("all was in order %v after the server that has all keys was killed", time.Since(began))
	old.start(false)
	time.Sleep(2 * time.Second)
	g.recover(60*time.Second, names)
}

// The slot moves to another server: nothing is lost, and nobody takes another for dead.
func TestClusterSlotMoves(t *testing.T) {
	t.Parallel()
	w := newCluster(t, 3, 0)
	w.Start(false)
	g := w.group()
	names := g.names()
	for round := range 2 {
		from, slot := w.owner(), w.slot()
		to := w.redis[0]
		if to == from {
			to = w.redis[1]
		}
		w.move(slot, from, to)
		g.recover(60*time.Second, names)
		if got := w.owner(); got != to {
			t.Fatalf("round %d: the keys are at %s, want %s", round, got.addr(), to.addr())
		}
	}
	for name := range names {
		if c, _ := g.e[0].Holder(name); c.Epoch != 1 {
			t.Errorf("the claim of %q moved: its epoch is %d", name, c.Epoch)
		}
	}
}

// move does what a cluster's tools do, slowly: for a while some keys are here and some there.
func (w *cluster) move(slot string, from, to *process) {
	w.t.Helper()
	of, by := from.ask("cluster", "myid"), to.ask("cluster", "myid")
	to.ask("cluster", "setslot", slot, "importing", of)
	from.ask("cluster", "setslot", slot, "migrating", by)
	for {
		keys := strings.Fields(from.ask("cluster", "getkeysinslot", slot, "4"))
		if len(keys) == 0 {
			break
		}
		from.ask(append([]string{"migrate", "127.0.0.1", to.portText(), "", "0", "5000", "auth", password, "keys"}, keys...)...)
		time.Sleep(200 * time.Millisecond)
	}
	for _, p := range append([]*process{to, from}, w.redis...) {
		if text := p.ask("cluster", "setslot", slot, "node", by); text != "OK" {
			w.t.Fatal(fmt.Errorf("setslot: %s", text))
		}
	}
}
