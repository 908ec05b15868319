package forward

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// place is a replica of a test, and its table.
type place struct {
	*table
	e *replicastest.Engine
}

func newPlace(t *testing.T, b *replicastest.Broker, instance string, full func()) place {
	t.Helper()
	e := b.Join(t, instance, "10.0.0.1:2528")
	table, err := newTable(tableOptions{Engine: e, Claims: e, Full: full})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	return place{table, e}
}

// room is a broker with three replicas that know each other.
func room(t *testing.T) (*replicastest.Broker, [3]place) {
	t.Helper()
	b := replicastest.New()
	all := [3]place{newPlace(t, b, "aaaa", nil), newPlace(t, b, "bbbb", nil), newPlace(t, b, "cccc", nil)}
	pass(1100 * time.Millisecond)
	for _, p := range all {
		if n := len(p.e.View().Members); n != 3 {
			t.Fatalf("%s sees %d members, want 3", p.e.View().Self.Instance, n)
		}
	}
	return b, all
}

// sharing returns three replicas that know that the first one holds "profile".
func sharing(t *testing.T) [3]place {
	t.Helper()
	_, all := room(t)
	for _, p := range all {
		p.wantFind(t, "profile", "aaaa")
	}
	return all
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (p place) wantFind(t *testing.T, name, want string) {
	t.Helper()
	if got := p.Find(t.Context(), name, time.Minute).Instance; got != want {
		t.Errorf("%s: Find(%q) = %q, want %s", p.e.View().Self.Instance, name, got, want)
	}
}

// wantHeld checks who holds a name, by what the engine of this replica knows; "" is nobody.
func (p place) wantHeld(t *testing.T, name, holder string, epoch uint64) {
	t.Helper()
	c, _ := p.e.Holder(name)
	if c.Holder.Instance != holder || c.Epoch != epoch {
		t.Errorf("%s: %q is held by %q in epoch %d, want %q in %d", p.e.View().Self.Instance, name, c.Holder.Instance, c.Epoch, holder, epoch)
	}
}

func TestTheFirstUseClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, all := room(t)
		if n := b.Kept(); n != 0 {
			t.Fatalf("%d claims before the first use", n)
		}
		all[2].wantFind(t, "profile", "cccc")
		for _, p := range all {
			p.wantFind(t, "profile", "cccc")
			p.wantHeld(t, "profile", "cccc", 1)
		}
		if n := b.Kept(); n != 1 {
			t.Errorf("%d claims are kept, want 1", n)
		}
	})
}

func TestFirstUsesAtTheSameTimeAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := room(t)
		var found [12]replicas.Replica
		var wg sync.WaitGroup
		for i := range found {
			wg.Go(func() { found[i] = all[i%3].Find(t.Context(), "profile", time.Minute) })
		}
		wg.Wait()
		for i, r := range found {
			if r.Instance == "" || r != found[0] {
				t.Errorf("call %d is served by %q, the first one by %q", i, r.Instance, found[0].Instance)
			}
		}
	})
}

func TestFirstUsesAtTheSameTimeAskOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := replicastest.New()
		p := newPlace(t, b, "aaaa", nil)
		pass(1500 * time.Millisecond)
		before := b.Calls()
		p.e.SetFrozen(true)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { p.wantFind(t, "profile", "aaaa") })
		}
		synctest.Wait()
		p.e.SetFrozen(false)
		wg.Wait()
		if n := b.Calls() - before; n != 2 { // reading the claim, and writing it
			t.Errorf("first calls at the same time asked the engine %d times, want 2", n)
		}
	})
}

func TestAKnownHolderIsFoundWithoutTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, all := room(t)
		all[0].wantFind(t, "profile", "aaaa")
		all[1].wantFind(t, "profile", "aaaa")
		synctest.Wait()
		before := b.Calls()
		for range 10 {
			all[0].wantFind(t, "profile", "aaaa")
			all[1].wantFind(t, "profile", "aaaa")
		}
		synctest.Wait()
		if n := b.Calls() - before; n != 0 {
			t.Errorf("later calls asked the engine %d times", n)
		}
	})
}

func TestWhileTheEngineIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, all := room(t)
		for _, p := range all {
			p.wantFind(t, "known", "aaaa")
		}
		b.SetAway(true)
		pass(5 * time.Second)
		for i := range 8 { // not all choose the same replica
			name := "new " + strconv.Itoa(i)
			chosen := all[0].e.View().Pick(replicas.Key(name)).Instance
			for _, p := range all {
				p.wantFind(t, name, chosen)
			}
		}
		for _, p := range all {
			p.wantFind(t, "known", "aaaa")
			p.wantHeld(t, "new 0", "", 0)
		}
		b.SetAway(false)
		pass(5 * time.Second)
		if n := b.Kept(); n != 9 {
			t.Errorf("%d claims are kept once the engine is back, want 9", n)
		}
	})
}

// Nobody takes a name from a replica that can't be reached from here: it may serve others.
func TestLostOfWhatAnotherKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := sharing(t)
		gone := all[0].e.View().Self
		for _, most := range []time.Duration{replicas.Pace(0).Takeover(), 0} { // only the first ones wait
			begun := time.Now()
			if got, found := all[1].Lost(t.Context(), "profile", gone); found || time.Since(begun) > most {
				t.Errorf("Lost = %q after %v, want nobody within %v: the engine says that aaaa lives", got.Instance, time.Since(begun), most)
			}
		}
		all[1].lost.at = nil // as after lostFor
		all[0].e.SetFrozen(true)
		begun := time.Now()
		next, found := all[1].Lost(t.Context(), "profile", gone)
		if took := time.Since(begun); !found || next.Instance == "aaaa" || took < replicas.MemberTTL-replicas.Heartbeat || took > replicas.Pace(0).Takeover() {
			t.Errorf("Lost = %q, %v after %v, want the next one once aaaa was silent", next.Instance, found, took)
		}
		pass(replicas.Heartbeat)
		for _, p := range all[1:] {
			p.wantHeld(t, "profile", next.Instance, 2)
		}
	})
}

// A holder that was silent for a moment, and has kept its claim, is asked again as soon as it answers; so it
// is when that happens once more.
func TestLostOfWhoAnswersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := sharing(t)
		holder := all[0].e.View().Self
		var back time.Time
		all[1].opts.Reaches = func(to replicas.Replica) bool { return to.Instance == "aaaa" && !time.Now().Before(back) }
		for range 3 {
			begun := time.Now()
			back = begun.Add(1200 * time.Millisecond)
			next, found := all[1].Lost(t.Context(), "profile", holder)
			if took := time.Since(begun); !found || next.Instance != "aaaa" || took > 1200*time.Millisecond+lookAgain {
				t.Errorf("Lost = %q, %v after %v, want the holder once it answers", next.Instance, found, took)
			}
			pass(10 * time.Second)
		}
	})
}

// A replica serves what it holds while others have heard it.
func TestOwns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := sharing(t)
		if epoch, err := all[0].Owns("profile"); epoch != 1 || err != nil {
			t.Errorf("Owns = %d, %v of the holder, want 1", epoch, err)
		}
		if _, err := all[1].Owns("profile"); err != errElsewhere {
			t.Errorf("Owns = %v of another one, want %v", err, errElsewhere)
		}
		all[0].e.SetAway(true)
		pass(replicas.MemberTTL - replicas.Heartbeat/10)
		if _, err := all[0].Owns("profile"); err != errUnheard {
			t.Errorf("Owns = %v of a holder that is not heard, want %v", err, errUnheard)
		}
		all[0].e.SetAway(false)
		pass(3 * time.Second)
		if _, err := all[0].Owns("profile"); err != errElsewhere {
			t.Errorf("Owns = %v once another one has taken the name, want %v", err, errElsewhere)
		}
		holder := all[1]
		if _, err := holder.Owns("profile"); err != nil {
			holder = all[2]
		}
		self := holder.e.View().Self
		self.Draining = true
		holder.e.Update(self)
		all[0].wantFind(t, "profile", self.Instance)
		pass(time.Second)
		if _, err := holder.Owns("profile"); err != nil {
			t.Errorf("Owns = %v of a replica that is draining, want that it serves what it has", err)
		}
	})
}

// All that know that a replica is gone choose the same next one.
func TestLostOfWhatNobodyHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, all := room(t)
		gone := all[0].e.View().Self
		wantNext := func(what, name string) {
			t.Helper()
			to, _ := all[1].Lost(t.Context(), name, gone)
			elsewhere, _ := all[2].Lost(t.Context(), name, gone)
			next, other := to.Instance, elsewhere.Instance
			if next != other || next == gone.Instance || next == "" {
				t.Errorf("%s: Lost = %q and %q, want one that is not gone", what, next, other)
			}
		}
		for i := range 20 {
			wantNext("a name that nobody holds", fmt.Sprint("unknown", i))
		}
		if n := b.Kept(); n != 0 {
			t.Errorf("Lost of a name that nobody holds claimed it: %d claims are kept", n)
		}
		all[0].wantFind(t, "profile", "aaaa")
		all[1].wantFind(t, "profile", "aaaa")
		b.SetAway(true)
		if got, found := all[1].Lost(t.Context(), "profile", gone); found {
			t.Errorf("Lost = %q without the engine, want nobody: aaaa may hear it", got.Instance)
		}
	})
}

func TestIdleNamesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := replicastest.New()
		p := newPlace(t, b, "aaaa", nil)
		p.Find(t.Context(), "idle", 20*time.Second)
		p.Find(t.Context(), "used", 20*time.Second)
		pass(15 * time.Second)
		p.wantHeld(t, "idle", "aaaa", 1)
		p.Find(t.Context(), "used", 20*time.Second)
		pass(5*time.Second + look + time.Second)
		p.wantHeld(t, "idle", "", 0)
		p.wantHeld(t, "used", "aaaa", 1)
		if n := b.Kept(); n != 1 {
			t.Errorf("%d claims are kept, want that of the name in use", n)
		}
		pass(20*time.Second + look)
		if n := b.Kept(); n != 0 {
			t.Errorf("%d claims are kept after all were idle", n)
		}
		p.wantFind(t, "idle", "aaaa") // it is claimed again
		if n := b.Kept(); n != 1 {
			t.Errorf("%d claims are kept after another use, want 1", n)
		}
	})
}

// A name is not idle while a call runs under it, however long that takes.
func TestNamesOfRunningCallsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t, replicastest.New(), "aaaa", nil)
		p.Find(t.Context(), "used", 20*time.Second)
		first, second := p.use("used"), p.use("used")
		pass(2 * time.Minute)
		p.wantHeld(t, "used", "aaaa", 1)
		first()
		pass(2 * time.Minute)
		p.wantHeld(t, "used", "aaaa", 1)
		second()
		pass(18 * time.Second) // its hold begins with the end
		p.wantHeld(t, "used", "aaaa", 1)
		pass(2*time.Second + look + time.Second)
		p.wantHeld(t, "used", "", 0)
		p.use("used")() // of what is not wanted any more
		p.wantHeld(t, "used", "", 0)
	})
}

func TestTooManyNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := replicastest.New()
		full := 0
		p := newPlace(t, b, "aaaa", func() { full++ })
		for i := range maxNames {
			p.Find(t.Context(), strconv.Itoa(i), time.Hour)
			if i == 1 {
				defer p.use("1")() // its call runs
			}
		}
		p.wantFind(t, "0", "aaaa") // so that 2 is the one not used for longest
		if n := b.Kept(); full != 0 || n != maxNames {
			t.Fatalf("Full was called %d times, %d claims are kept, want 0, %d", full, n, maxNames)
		}
		p.wantFind(t, "one more", "aaaa")
		pass(2 * time.Second)
		if n := b.Kept(); full != 1 || n != maxNames {
			t.Errorf("Full was called %d times, %d claims are kept, want 1, %d", full, n, maxNames)
		}
		p.wantHeld(t, "2", "", 0)
		p.wantHeld(t, "1", "aaaa", 1)
		p.wantHeld(t, "0", "aaaa", 1)
		p.wantHeld(t, "one more", "aaaa", 1)
	})
}

func TestADrainingReplicaClaimsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, all := room(t)
		all[0].wantFind(t, "profile", "aaaa")
		self := all[0].e.View().Self
		self.Draining = true
		all[0].e.Update(self)
		for i := range 8 {
			name := strconv.Itoa(i)
			if got := all[0].Find(t.Context(), name, time.Minute).Instance; got == "aaaa" || got == "" {
				t.Errorf("Find(%q) of a replica that drains = %q, want another", name, got)
			}
		}
		if got := all[0].Heir("profile").Instance; got == "aaaa" || got == "" {
			t.Errorf("Heir of a replica that drains = %q, want another", got)
		}
		if n := b.Kept(); n != 1 {
			t.Errorf("%d claims are kept, want the one from before", n)
		}
	})
}

func TestHeir(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := room(t)
		for i := range 8 {
			name := strconv.Itoa(i)
			all[0].wantFind(t, name, "aaaa")
			all[1].wantFind(t, name, "aaaa")
			if got := all[1].Heir(name).Instance; got != "aaaa" {
				t.Errorf("Heir(%q) of another replica than the holder = %q, want the holder", name, got)
			}
			if got, want := all[0].Heir(name).Instance, all[0].e.View().Pick(replicas.Key(name)).Instance; got != want {
				t.Errorf("Heir(%q) of the holder = %q, want %s, which all choose", name, got, want)
			}
		}
	})
}

// The heir has the name before anybody else could take it: what is handed over to it is where
// the calls go.
func TestHeirHasTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := room(t)
		all[0].wantFind(t, "profile", "aaaa")
		self := all[0].e.View().Self
		self.Draining = true
		all[0].e.Update(self)
		pass(time.Second)
		heir := all[0].Heir("profile").Instance
		all[1].wantFind(t, "profile", heir)
		all[2].wantFind(t, "profile", heir)
		taken := all[1].Find(t.Context(), "other", time.Minute).Instance
		if got := all[0].Heir("other").Instance; got != taken {
			t.Errorf("the heir of a name that was taken is %s, want %s", got, taken)
		}
	})
}

func TestCloseGivesUpAllNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, all := room(t)
		all[0].wantFind(t, "one", "aaaa")
		all[0].wantFind(t, "two", "aaaa")
		all[0].Close()
		pass(2 * time.Second)
		if n := b.Kept(); n != 0 {
			t.Errorf("%d claims are kept after Close", n)
		}
		all[1].wantFind(t, "one", "bbbb")
	})
}

// told is an engine whose heartbeats another replica writes.
type told struct {
	*replicastest.Engine
	by replicas.Replica
}

func (e told) Teller() (replicas.Replica, bool) { return e.by, true }

// A replica that can't reach the engine has a call of whom nobody owns served by the one that
// writes its heartbeats, which can claim: it serves none by itself.
func TestWhoeverHearsTheEngineClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := replicastest.New()
		e := told{b.Join(t, "aaaa", "10.0.0.1:2528"), replicas.Replica{Instance: "bbbb"}}
		table, err := newTable(tableOptions{Engine: e, Claims: e})
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		pass(1100 * time.Millisecond)
		e.SetAway(true)
		pass(2500 * time.Millisecond)
		if got := table.Find(t.Context(), "profile", time.Minute); got.Instance != "bbbb" {
			t.Errorf("Find = %q, want the one that writes the heartbeats", got.Instance)
		}
		if _, err := table.Owns("profile"); err == nil {
			t.Error("it serves a call that another replica can claim")
		}
	})
}
