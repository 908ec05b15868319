package source_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/source"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// Three replicas have one subscription for each topic, and each change reaches all, once.
func TestOneSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a", "b", "c")
		var all []*follower
		for _, rep := range r.others(nil) {
			for range 3 {
				all = append(all, rep.follow("ada", "u:1", "u:2"))
			}
		}
		quiet()
		r.wantSubscriptions("three replicas", 1, "u:1", "u:2")
		for range 3 {
			r.server.push("u:1")
			for _, f := range all {
				f.want("a change", "u:1")
			}
		}
		for _, f := range all {
			f.sub.Close()
		}
		quiet()
		r.wantSubscriptions("all have left", 1)
		if n := r.broker.Kept(); n != 0 {
			t.Errorf("%d claims are left, want none", n)
		}
	})
}

// The owner is killed: its topics move, each with one change, within 3.5 s and the connect.
func TestOwnerKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a", "b", "c")
		var left []*follower
		r.by["a"].follow("ada", "u:1", "u:2")
		for _, rep := range []*replica{r.by["b"], r.by["c"]} {
			left = append(left, rep.follow("ada", "u:1", "u:2"), rep.follow("ada", "u:2"))
		}
		quiet()
		owner := r.owner()
		if owner != r.by["a"] {
			t.Fatalf("%s owns the profile, want the first to ask", owner.name)
		}
		owner.kill()
		got := make([]map[string]int, len(left))
		for range 50 { // the broker of tests is asked each second
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			for i, f := range left {
				got[i] = add(got[i], f.take())
			}
		}
		for i := range left {
			want := map[string]int{"u:1": 1, "u:2": 1}
			if i%2 == 1 {
				delete(want, "u:1")
			}
			if !maps.Equal(got[i], want) {
				t.Errorf("follower %d got changes %v, want one for each topic", i, got[i])
			}
		}
		r.wantSubscriptions("the next owner", 1, "u:1", "u:2")
		quiet()
		r.server.push("u:2")
		for _, f := range left {
			f.want("a change after that", "u:2")
		}
	})
}

// Two replicas do not reach each other: the other one takes the claim after 30 s, and the
// former owner yields. Nobody is without a source meanwhile.
func TestPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a", "b", "c")
		a, b, c := r.by["a"], r.by["b"], r.by["c"]
		fa, fb, fc := a.follow("ada", "u:1"), b.follow("ada", "u:1"), c.follow("ada", "u:1")
		quiet()
		r.cut("a", "b", true)
		b.rt.CloseIdleConnections()
		a.breakStreams("b")
		time.Sleep(8 * time.Second)
		r.wantSubscriptions("cut for 8 s", 2, "u:1")
		fa.want("cut for 8 s")
		fb.want("cut for 8 s", "u:1")
		r.server.push("u:1")
		for _, f := range []*follower{fa, fb, fc} {
			f.want("a change while cut", "u:1")
		}
		if r.owner() != a {
			t.Errorf("%s owns the profile after 8 s, want a", r.owner().name)
		}
		time.Sleep(25 * time.Second)
		synctest.Wait()
		if r.owner() != b {
			t.Errorf("%s owns the profile after 33 s, want b", r.owner().name)
		}
		time.Sleep(2 * time.Second)
		fc.want("c follows the next owner", "u:1")
		fa.want("a watches itself, as before")
		r.cut("a", "b", false)
		quiet()
		r.wantSubscriptions("healed", 1, "u:1")
		for _, f := range []*follower{fa, fb, fc} {
			f.take()
		}
		r.server.push("u:1")
		for _, f := range []*follower{fa, fb, fc} {
			f.want("a change after that", "u:1")
		}
	})
}

// A partition that lasts does not have claims go back and forth for ever.
func TestPartitionThatLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a", "b")
		r.by["a"].follow("ada", "u:1")
		r.by["b"].follow("ada", "u:1")
		quiet()
		r.cut("a", "b", true)
		r.by["a"].breakStreams("b")
		moves, last := 0, r.owner()
		for range 3600 {
			time.Sleep(time.Second)
			synctest.Wait()
			if now := r.owner(); now != last {
				moves, last = moves+1, now
			}
		}
		if moves < 1 || moves > 12 {
			t.Errorf("the claim has moved %d times within an hour, want few", moves)
		}
	})
}

// The engine is away: nothing changes for those who follow, and new ones are served.
func TestEngineAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a", "b", "c")
		var all []*follower
		for _, rep := range r.others(nil) {
			all = append(all, rep.follow("ada", "u:1"))
		}
		quiet()
		r.broker.SetAway(true)
		time.Sleep(time.Minute)
		for _, f := range all {
			f.want("the engine was away")
		}
		r.wantSubscriptions("the engine is away", 1, "u:1")
		bob := r.by["c"].follow("bob", "u:7")
		r.server.push("u:7")
		r.server.push("u:1")
		bob.want("a new profile", "u:7")
		for _, f := range all {
			f.want("a change while the engine is away", "u:1")
		}
		r.broker.Empty()
		r.broker.SetAway(false)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := r.broker.Kept(); n != 2 {
			t.Errorf("%d claims 5 s after the engine is back, empty; want both again", n)
		}
		r.server.push("u:1")
		for _, f := range all {
			f.take()
		}
		quiet()
		r.wantSubscriptions("the engine is back", 1, "u:1", "u:7")
	})
}

// A replica that computes another profile, as one of another configuration does, is not the
// owner's concern: it watches by itself.
func TestAnotherProfile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a", "b")
		a, b := r.by["a"], r.by["b"]
		fa := a.follow("ada", "u:1")
		quiet()
		a.differs = true
		fb := b.follow("ada", "u:1")
		quiet()
		r.wantSubscriptions("one differs", 2, "u:1")
		r.server.push("u:1")
		fa.want("a change", "u:1")
		fb.want("a change", "u:1")
		fb.sub.Close()
		fa.sub.Close()
		quiet()
		r.wantSubscriptions("all have left", 1)
	})
}

// A gone source can't be watched, but for one principal.
type gone struct {
	mcp.Source
	but mcp.Principal
}

// Watch implements [mcp.Source].
func (g gone) Watch(ctx context.Context, p mcp.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
	if p.Principal != g.but {
		return nil, nil, errors.New("the server is away")
	}
	return g.Source.Watch(ctx, p, want)
}

// Profiles that can't move keep no other one from it, however many there are.
func TestMovesThatFailLetOthersMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a", "b", "c")
		a, b, c := r.by["a"], r.by["b"], r.by["c"]
		b.source.Use(gone{b.own, "ada"})
		stuck := make([]mcp.Principal, 100) // more than move at the same time
		for i := range stuck {
			stuck[i] = mcp.Principal(fmt.Sprint("stuck", i))
			a.follow(stuck[i], "u:1")
		}
		c.follow("ada", "u:2")
		quiet()
		for _, p := range stuck {
			b.follow(p, "u:1")
		}
		f := b.follow("ada", "u:2")
		quiet()
		a.kill()
		quiet() // all of them have failed by now, again and again
		c.kill()
		quiet()
		f.want("the owner has gone", "u:2")
		r.wantSubscriptions("the next owner", 1, "u:2")
		r.server.push("u:2")
		f.want("a change after that", "u:2")
	})
}

// What the server refuses is refused by all replicas, and at once.
func TestRefusedTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a", "b")
		for _, name := range []string{"a", "b"} {
			begin := time.Now()
			if f := r.by[name].follow("ada", "u:1", "u:missing"); len(f.has) != 1 || f.has[0] != "u:1" {
				t.Errorf("%s has %v, want what the server has", name, f.has)
			}
			if took := time.Since(begin); took > time.Second {
				t.Errorf("%s took %v", name, took)
			}
		}
	})
}

// What the server does not answer is no fault of the replica that watches: no other one does so, too.
func TestTopicWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a", "b")
		a := r.by["a"].follow("ada", "u:1")
		quiet()
		begin := time.Now()
		f := r.by["b"].follow("ada", "u:silent")
		if took := time.Since(begin); len(f.has) > 0 || took > 11*time.Second {
			t.Errorf("b has %v after %v, want nothing after 10 s", f.has, took)
		}
		b := r.by["b"].follow("ada", "u:1")
		quiet()
		r.wantSubscriptions("the owner watches still", 1, "u:1")
		a.take()
		b.take()
		r.server.push("u:1")
		a.want("a change", "u:1")
		b.want("a change", "u:1")
	})
}

// A replica that drains gives its profiles up before it ends.
func TestDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a", "b", "c")
		fa, fb, fc := r.by["a"].follow("ada", "u:1"), r.by["b"].follow("ada", "u:1"), r.by["c"].follow("ada", "u:1")
		quiet()
		self := r.by["a"].engine.View().Self
		self.Draining = true
		r.by["a"].engine.Update(self)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if r.owner() == r.by["a"] {
			t.Error("a still owns the profile")
		}
		fa.want("it drains, and watches for its own")
		fb.want("it drains", "u:1")
		fc.want("it drains", "u:1")
		quiet()
		r.server.push("u:1")
		for _, f := range []*follower{fa, fb, fc} {
			f.want("a change", "u:1")
		}
	})
}

// What somebody wants at a replica that drains stays claimed until another replica takes it, though a
// stream for the same profile comes and goes meanwhile.
func TestDrainingKeepsWhatOthersWant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a")
		time.Sleep(2 * time.Second)
		a := r.by["a"]
		if c, err := a.group.Claim(t.Context(), "profile"); err != nil || c.Holder.Instance != "a" {
			t.Fatalf("Claim = %+v, %v, want that it holds it", c, err)
		}
		a.group.Drain()
		if _, err := a.group.Claim(t.Context(), "profile"); err == nil {
			t.Error("it claims while it drains")
		}
		a.group.Release("profile")
		time.Sleep(2 * time.Second)
		if _, held := a.engine.Holder("profile"); !held || r.broker.Kept() != 1 {
			t.Errorf("the claim is gone that somebody wants; %d are kept", r.broker.Kept())
		}
		a.group.Release("profile")
		time.Sleep(2 * time.Second)
		if n := r.broker.Kept(); n != 0 {
			t.Errorf("%d claims are kept once nobody wants them", n)
		}
	})
}

// An owner that stalls, with its connections open, is replaced; when it goes on, it yields.
func TestOwnerStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a", "b", "c")
		fb, fc := r.by["b"], r.by["c"]
		r.by["a"].follow("ada", "u:1")
		b, c := fb.follow("ada", "u:1"), fc.follow("ada", "u:1")
		quiet()
		r.by["a"].engine.SetFrozen(true)
		time.Sleep(5 * time.Second)
		b.want("the owner stalls", "u:1")
		c.want("the owner stalls", "u:1")
		r.by["a"].engine.SetFrozen(false)
		quiet()
		if r.owner() == r.by["a"] {
			t.Error("the former owner has not yielded")
		}
		r.wantSubscriptions("it goes on", 1, "u:1")
	})
}

// Followers that come and go while owners change lose nothing, and leave nothing.
func TestChurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a", "b", "c")
		all := r.others(nil)
		var stay []*follower
		for _, rep := range all {
			stay = append(stay, rep.follow("ada", "u:0"))
		}
		for i := range 200 {
			rep := all[i%3]
			f := rep.follow("ada", "u:0", "u:1", "u:2")
			time.Sleep(50 * time.Millisecond)
			if i%20 == 19 {
				c, _ := all[(i/20)%3].engine.Holder(source.Names{}.Of(rep.profile("ada", []byte("{}"))))
				if _, err := all[(i/20)%3].engine.Seize(t.Context(), source.Names{}.Of(rep.profile("ada", []byte("{}"))), c); err != nil {
					t.Fatal(err)
				}
			}
			f.sub.Close()
		}
		quiet()
		for _, f := range stay {
			f.take()
		}
		r.wantSubscriptions("after the churn", 1, "u:0")
		r.server.push("u:0")
		for _, f := range stay {
			f.want("a change", "u:0")
			f.sub.Close()
		}
		quiet()
		r.wantSubscriptions("all have left", 1)
		if n := r.broker.Kept(); n != 0 {
			t.Errorf("%d claims are left, want none", n)
		}
	})
}

// add adds counts.
func add(sum, more map[string]int) map[string]int {
	if sum == nil {
		return more
	}
	for uri, n := range more {
		sum[uri] += n
	}
	return sum
}

// An owner whose connections carry nothing any more, without breaking, counts as one that can't
// be reached.
func TestSilentOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a", "b")
		r.by["a"].follow("ada", "u:1")
		b := r.by["b"].follow("ada", "u:1")
		quiet()
		r.stall("b", "a")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		b.take()
		r.server.push("u:1")
		b.want("a change while the owner is silent", "u:1")
		r.wantSubscriptions("the owner is silent", 2, "u:1")
	})
}
