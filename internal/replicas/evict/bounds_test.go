package evict

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pending returns what waits for a replica: changes, and those who wait for its word.
func (g *Group) pending(name string) (changes, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.peers[name]
	if p == nil {
		return 0, 0
	}
	return len(p.events), len(p.waiting)
}

// A replica that can't be told for hours costs no memory for each change meanwhile.
func TestUntoldForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, "a", "b")
		a := rig.by["a"]
		c := a.Open("files", a)
		defer c.Close()
		rig.setCut("b", true)
		for range 300 {
			c.Publish(updated("files/1", "u:1"))
			time.Sleep(300 * time.Millisecond)
			a.take()
			if changes, waiting := a.Group.pending("b"); changes > 1 || waiting > 16 {
				t.Fatalf("%d changes and %d batches wait for a replica that was told nothing, want 1 change", changes, waiting)
			}
		}
		rig.setCut("b", false)
		time.Sleep(5 * time.Second)
		rig.by["b"].take()
		c.Publish(updated("files/1", "u:2"))
		synctest.Wait()
		rig.by["b"].want(t, "it is back", "evict files@b/1 u:2")
	})
}

// Long URIs are bounded by their bytes.
func TestLongURIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, "a", "b")
		a, b := rig.by["a"], rig.by["b"]
		c := a.Open("files", a)
		defer c.Close()
		rig.setCut("b", true)
		long := strings.Repeat("x", 1<<20)
		for i := range 20 {
			c.Publish(updated("files/1", fmt.Sprint("u:", i, long)))
			time.Sleep(time.Second)
			a.take()
			if changes, _ := a.Group.pending("b"); changes<<20 > maxBytes {
				t.Fatalf("%d MiB wait for a replica, want at most %d bytes", changes, maxBytes)
			}
		}
		b.take()
		rig.setCut("b", false)
		time.Sleep(5 * time.Second)
		if got := b.take(); !slices.Contains(got, "forget files") {
			t.Errorf("b did %.200q, want it to forget the server", got)
		}
	})
}
