package member_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// room is a broker with three replicas that know each other.
func room(t *testing.T) (*replicastest.Broker, [3]*replicastest.Engine) {
	t.Helper()
	b := replicastest.New()
	all := [3]*replicastest.Engine{
		b.Join(t, "aaaa", "10.0.0.1:2528"), b.Join(t, "bbbb", "10.0.0.2:2528"), b.Join(t, "cccc", "10.0.0.3:2528"),
	}
	pass(t, 1100*time.Millisecond)
	for _, e := range all {
		if n := len(e.View().Members); n != 3 {
			t.Fatalf("%s sees %d members, want 3", e.View().Self.Instance, n)
		}
	}
	return b, all
}

func pass(t *testing.T, d time.Duration) {
	t.Helper()
	time.Sleep(d)
	synctest.Wait()
}

func claim(t *testing.T, e *replicastest.Engine, name string) replicas.Claim {
	t.Helper()
	c, err := e.Claim(t.Context(), name)
	if err != nil {
		t.Fatalf("%s: Claim(%q): %v", e.View().Self.Instance, name, err)
	}
	return c
}

// holders returns which instance each replica takes for the holder.
func holders(name string, all ...*replicastest.Engine) (out []string) {
	for _, e := range all {
		c, _ := e.Holder(name)
		out = append(out, c.Holder.Instance)
	}
	return out
}

func wantHolder(t *testing.T, name, want string, all ...*replicastest.Engine) {
	t.Helper()
	for i, got := range holders(name, all...) {
		if got != want {
			t.Errorf("%s takes %q for the holder, want %q", all[i].View().Self.Instance, got, want)
		}
	}
}

func TestTheFirstHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := room(t)
		for _, e := range r {
			if c := claim(t, e, "profile"); c.Holder.Instance != "aaaa" || c.Epoch != 1 {
				t.Errorf("%s: the claim is %+v, want aaaa's, epoch 1", e.View().Self.Instance, c)
			}
		}
		wantHolder(t, "profile", "aaaa", r[:]...)
		if all := r[1].Claims(); len(all) != 1 || all[0].Key != replicas.Key("profile") || all[0].Holder.Instance != "aaaa" {
			t.Errorf("Claims = %+v, want the one of aaaa", all)
		}
	})
}

func TestAReplicaThatLeavesIsFollowedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := room(t)
		for _, e := range r {
			claim(t, e, "profile")
		}
		changed := r[1].View().Changed
		if err := r[0].Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(t, 200*time.Millisecond)
		select {
		case <-changed:
		default:
			t.Error("Changed is open after a replica left")
		}
		c, ok := r[1].Holder("profile")
		if !ok || c.Holder.Instance == "aaaa" || c.Epoch != 2 {
			t.Errorf("the claim is %+v, %v; want another holder, epoch 2", c, ok)
		}
		wantHolder(t, "profile", c.Holder.Instance, r[1], r[2])
		if n := len(r[1].View().Members); n != 2 {
			t.Errorf("%d members are left, want 2", n)
		}
		pass(t, 10*time.Second)
		if n := b.Kept(); n != 1 {
			t.Errorf("%d claims are kept, want 1", n)
		}
	})
}

func TestASilentReplicaIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := room(t)
		for _, e := range r {
			claim(t, e, "profile")
		}
		r[0].SetFrozen(true)
		pass(t, replicas.MemberTTL+replicas.ClaimMargin+replicas.Heartbeat/4)
		c, ok := r[1].Holder("profile")
		if !ok || c.Holder.Instance == "aaaa" || c.Epoch != 2 {
			t.Fatalf("the claim is %+v, %v; want another holder, epoch 2", c, ok)
		}
		pass(t, 7*time.Second)
		changed := r[0].View().Changed
		r[0].SetFrozen(false)
		pass(t, replicas.Heartbeat/2)
		wantHolder(t, "profile", c.Holder.Instance, r[:]...)
		select {
		case <-changed:
		default:
			t.Error("the replica that woke was not told that it lost its claim")
		}
		pass(t, 10*time.Second)
		wantHolder(t, "profile", c.Holder.Instance, r[:]...)
		for _, e := range r {
			if n := len(e.View().Members); n != 3 {
				t.Errorf("%s sees %d members after the return, want 3", e.View().Self.Instance, n)
			}
		}
	})
}

func TestTheBrokerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := room(t)
		for _, e := range r {
			claim(t, e, "profile")
		}
		b.SetAway(true)
		changed := r[1].View().Changed
		pass(t, 60*time.Second)
		v := r[1].View()
		if v.Away.IsZero() || v.Fresh(time.Now()) || len(v.Members) != 3 {
			t.Errorf("the view is %+v: want it away, stale, with all members", v)
		}
		select {
		case <-changed:
		default:
			t.Error("Changed is open after the broker went away")
		}
		wantHolder(t, "profile", "aaaa", r[:]...)
		if _, err := r[1].Claim(t.Context(), "another"); !errors.Is(err, replicas.ErrAway) {
			t.Errorf("Claim = %v, want ErrAway", err)
		}
		b.SetAway(false)
		pass(t, 5*time.Second)
		wantHolder(t, "profile", "aaaa", r[:]...)
		wantHolder(t, "another", "bbbb", r[1])
		if v := r[1].View(); !v.Away.IsZero() || !v.Fresh(time.Now()) || len(v.Members) != 3 {
			t.Errorf("the view is %+v: want it there, fresh, with all members", v)
		}
	})
}

func TestTheBrokerIsEmptied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := room(t)
		for _, e := range r {
			claim(t, e, "profile")
		}
		b.SetAway(true)
		pass(t, 10*time.Second)
		b.Empty()
		b.SetAway(false)
		pass(t, 2*time.Second)
		for _, e := range r {
			c, ok := e.Holder("profile")
			if !ok || c.Holder.Instance != "aaaa" || c.Epoch != 2 {
				t.Errorf("%s: the claim is %+v, want aaaa's again, epoch 2", e.View().Self.Instance, c)
			}
			if n := len(e.View().Members); n != 3 {
				t.Errorf("%s sees %d members, want 3", e.View().Self.Instance, n)
			}
		}
	})
}

func TestOneReplicaIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := room(t)
		for _, e := range r {
			claim(t, e, "profile")
		}
		r[0].SetAway(true)
		pass(t, 5*time.Second)
		wantHolder(t, "profile", "aaaa", r[0]) // what was heard last stands
		c, _ := r[1].Holder("profile")
		if c.Holder.Instance == "aaaa" {
			t.Fatal("nobody follows a replica that is cut off")
		}
		r[0].SetAway(false)
		pass(t, 3*time.Second)
		wantHolder(t, "profile", c.Holder.Instance, r[:]...)
	})
}

func TestSeize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := room(t)
		first := claim(t, r[0], "profile")
		claim(t, r[1], "profile")
		c, err := r[1].Seize(t.Context(), "profile", first)
		if err != nil || c.Holder.Instance != "bbbb" || c.Epoch != 2 {
			t.Fatalf("Seize = %+v, %v; want bbbb, epoch 2", c, err)
		}
		pass(t, 100*time.Millisecond)
		wantHolder(t, "profile", "bbbb", r[0], r[1])
		if c, err := r[2].Seize(t.Context(), "profile", first); err != nil || c.Holder.Instance != "bbbb" {
			t.Errorf("seizing from a former holder = %+v, %v; want the present one", c, err)
		}
	})
}

func TestRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := room(t)
		claim(t, r[0], "profile")
		claim(t, r[0], "another")
		claim(t, r[1], "profile")
		r[0].Release("profile")
		r[0].Release("another")
		pass(t, 3*time.Second)
		wantHolder(t, "profile", "bbbb", r[1])
		r[1].Release("profile")
		pass(t, time.Second)
		if n := b.Kept(); n != 0 {
			t.Errorf("%d claims are left, want none", n)
		}
	})
}

func TestClaimsOfTheDeadAreSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := room(t)
		claim(t, r[0], "profile")
		if err := r[0].Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		pass(t, 3*time.Minute)
		if n := b.Kept(); n != 0 {
			t.Errorf("%d claims are left, want none", n)
		}
	})
}

func TestDrainingIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := room(t)
		self := r[0].View().Self
		self.Draining = true
		r[0].Update(self)
		pass(t, 50*time.Millisecond)
		if got, _ := r[1].View().Member("aaaa"); !got.Draining {
			t.Error("the others don't know of the draining")
		}
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			if got := r[1].View().Pick(name).Instance; got == "aaaa" {
				t.Errorf("Pick(%q) chooses the one that drains", name)
			}
		}
	})
}

// A replica that drains and releases its claims is followed at once, by one that does not drain.
func TestADrainingReplicaIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := room(t)
		for _, e := range r {
			claim(t, e, "profile")
		}
		for _, e := range r[:2] {
			self := e.View().Self
			self.Draining = true
			e.Update(self)
		}
		pass(t, 100*time.Millisecond)
		r[0].Release("profile")
		pass(t, 300*time.Millisecond)
		wantHolder(t, "profile", "cccc", r[1], r[2])
	})
}

// After it has left, a replica asks its broker once a second, and for no claim.
func TestAReplicaThatLeftIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := room(t)
		for _, e := range r {
			claim(t, e, "profile")
		}
		for _, e := range r {
			if err := e.Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		pass(t, time.Second)
		before := b.Calls()
		pass(t, 10*time.Second)
		if n := b.Calls() - before; n > 3*12 {
			t.Errorf("three replicas that left asked the broker %d times in 10 s", n)
		}
		if n := b.Kept(); n != 0 {
			t.Errorf("%d claims are left, want none", n)
		}
	})
}

func TestARecordIsTakenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := room(t)
		if err := r[0].Put(t.Context(), "session", []byte("record"), time.Minute); err != nil {
			t.Fatal(err)
		}
		if got, err := r[1].Get(t.Context(), "session"); err != nil || string(got) != "record" {
			t.Errorf("Get = %q, %v", got, err)
		}
		if got, err := r[1].Take(t.Context(), "session"); err != nil || string(got) != "record" {
			t.Errorf("Take = %q, %v", got, err)
		}
		if _, err := r[2].Take(t.Context(), "session"); !errors.Is(err, replicas.ErrNotFound) {
			t.Errorf("a second Take = %v, want ErrNotFound", err)
		}
		if err := r[0].Put(t.Context(), "session", make([]byte, replicas.MaxRecord+1), time.Minute); !errors.Is(err, replicas.ErrTooLarge) {
			t.Errorf("Put of too much = %v, want ErrTooLarge", err)
		}
	})
}

// A broker that takes long to list all claims does not keep a replica from telling that it
// lives, and what the dead have left goes away nevertheless.
func TestSweepTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := room(t)
		for i := range 10 {
			claim(t, r[0], string(rune('a'+i)))
		}
		b.SetMany(10 * time.Second)
		r[0].SetAway(true)
		for range 300 {
			pass(t, time.Second)
			for _, e := range r[1:] {
				if v := e.View(); !v.Fresh(time.Now()) {
					t.Fatalf("%s has heard the broker %v ago", v.Self.Instance, time.Since(v.Heard))
				}
			}
		}
		if n := b.Kept(); n != 0 {
			t.Errorf("%d claims of a replica that is dead are kept", n)
		}
	})
}
