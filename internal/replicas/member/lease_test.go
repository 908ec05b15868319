package member_test

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// neighbors are how one replica of a room reaches the others.
type neighbors struct {
	self    *replicastest.Engine
	all     map[string]*replicastest.Engine
	apart   atomic.Bool // nobody is reached
	greeted atomic.Int64
	told    atomic.Int64                    // heartbeats
	asked   atomic.Int64                    // whether the other holds a name
	takes   atomic.Int64                    // until the answer to one
	says    func(to replicas.Replica) error // instead of what that holds; nil, or of nil, for that
}

func (n *neighbors) Greet(_ context.Context, to replicas.Replica) error {
	if n.greeted.Add(1); n.apart.Load() {
		return errors.New("nobody answers")
	}
	return nil
}

func (n *neighbors) Tell(ctx context.Context, to replicas.Replica, record []byte) error {
	if n.apart.Load() {
		return errors.New("nobody answers")
	}
	n.told.Add(1)
	err := n.all[to.Instance].TellFor(ctx, n.self.View().Self.Instance, record)
	return cmp.Or(wake.Wait(ctx, time.Duration(n.takes.Load())), err)
}

func (n *neighbors) Ask(_ context.Context, to replicas.Replica, key string) (uint64, error) {
	if n.apart.Load() {
		return 0, errors.New("nobody answers")
	}
	n.asked.Add(1)
	if n.says != nil {
		if err := n.says(to); err != nil {
			return 0, err
		}
	}
	return n.all[to.Instance].Holds(key)
}

// street is a room whose replicas reach each other without the broker, too.
func street(t *testing.T) (*replicastest.Broker, [3]*replicastest.Engine, [3]*neighbors) {
	t.Helper()
	b := replicastest.New()
	var all [3]*replicastest.Engine
	var by [3]*neighbors
	known := make(map[string]*replicastest.Engine)
	for i, instance := range []string{"aaaa", "bbbb", "cccc"} {
		all[i] = b.Engine(t, member.Options{})
		by[i] = &neighbors{self: all[i], all: known}
		all[i].Meet(by[i])
		known[instance] = all[i]
		if err := all[i].Member.Join(t.Context(), replicas.Replica{Instance: instance, Addr: "10.0.0.1:2528", Version: "test", Revision: replicas.Revision}); err != nil {
			t.Fatal(err)
		}
	}
	pass(t, 1100*time.Millisecond)
	return b, all, by
}

// Others write the heartbeats of a replica that can't reach the engine: it lives, and keeps what
// it has claimed.
func TestOthersWriteHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r, by := street(t)
		for _, e := range r {
			claim(t, e, "profile")
		}
		r[0].SetAway(true)
		pass(t, time.Minute)
		wantHolder(t, "profile", "aaaa", r[:]...)
		if teller, ok := r[0].Teller(); !r[0].Leased() || !ok || teller.Instance == "aaaa" {
			t.Errorf("leased: %v by %v, %v; want a lease by one of the others", r[0].Leased(), teller, ok)
		}
		if n := by[1].greeted.Load() + by[2].greeted.Load(); n > 0 {
			t.Errorf("%d greetings, want none: the replica was heard", n)
		}
		r[0].SetAway(false)
		pass(t, 3*time.Second)
		if _, ok := r[0].Teller(); ok || !r[0].Leased() {
			t.Error("others write its heartbeats still, want that it does it itself")
		}
	})
}

// A replica that reaches nobody has no lease any more before others may take what it holds, and
// gets it back when it has heard the engine.
func TestALeaseEndsBeforeOthersTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r, by := street(t)
		for _, e := range r {
			claim(t, e, "profile")
		}
		r[0].SetAway(true)
		for _, n := range by {
			n.apart.Store(true)
		}
		begin := time.Now()
		var ended, taken time.Duration
		for taken == 0 && time.Since(begin) < time.Minute {
			pass(t, 10*time.Millisecond)
			if ended == 0 && !r[0].Leased() {
				ended = time.Since(begin)
			}
			if c, _ := r[1].Holder("profile"); c.Epoch > 1 {
				taken = time.Since(begin)
			}
		}
		if ended == 0 || ended > replicas.MemberTTL || taken < ended+replicas.ClaimMargin/2 || taken > replicas.MemberTTL+replicas.ClaimMargin+replicas.Heartbeat/2 {
			t.Errorf("the lease ended after %v, and another replica took the claim after %v", ended, taken)
		}
		r[0].SetAway(false)
		pass(t, 3*time.Second)
		if c, _ := r[0].Holder("profile"); c.Epoch != 2 || !r[0].Leased() {
			t.Errorf("after its return the claim is %+v, leased: %v; want the new one, and a lease", c, r[0].Leased())
		}
	})
}

// Owners go on if nobody hears the engine, since nobody can take then; but not those that can't
// ask everybody.
func TestOwnersGoOnWithoutAnEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r, by := street(t)
		for _, e := range r {
			claim(t, e, "profile")
		}
		b.SetAway(true)
		pass(t, time.Minute)
		if !r[0].Leased() || !r[1].Leased() {
			t.Error("the lease has run out while nobody hears the engine")
		}
		by[0].apart.Store(true)
		pass(t, replicas.MemberTTL)
		if r[0].Leased() || !r[1].Leased() {
			t.Errorf("leased: %v and %v; want none for who can't ask the others, and one for who can", r[0].Leased(), r[1].Leased())
		}
		by[0].apart.Store(false)
		pass(t, time.Minute)
		if r[0].Leased() {
			t.Error("a lease that has run out counts again before the engine was heard")
		}
		b.SetAway(false)
		pass(t, 3*time.Second)
		if !r[0].Leased() {
			t.Error("there is no lease after the engine was heard")
		}
		wantHolder(t, "profile", "", r[0]) // who was away for so long may have been forgotten by others
		pass(t, 3*time.Second)
		wantHolder(t, "profile", "aaaa", r[:]...)
	})
}

// Who is silent at the engine, and answers, has its sessions still: it stays a member, and what
// it has claimed may be taken. It is greeted by each other replica, once for each time to live.
func TestWhoAnswersLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r, by := street(t)
		for _, e := range r {
			claim(t, e, "profile")
		}
		by[0].apart.Store(true) // it asks nobody, and answers
		r[0].SetAway(true)
		pass(t, time.Minute)
		if n := len(r[1].View().Members); n != 3 {
			t.Errorf("%d members, want that who answers is one", n)
		}
		if c, _ := r[1].Holder("profile"); c.Holder.Instance == "aaaa" || c.Epoch != 2 {
			t.Errorf("the claim is %+v, want another holder's", c)
		}
		if n := by[1].greeted.Load(); n < 10 || n > int64(time.Minute/replicas.MemberTTL) {
			t.Errorf("greeted %d times in a minute, want once for each time to live", n)
		}
		for _, n := range by[1:] {
			n.apart.Store(true)
		}
		pass(t, replicas.MemberTTL+replicas.Heartbeat)
		if n := len(r[1].View().Members); n != 2 {
			t.Errorf("%d members, want that who does not answer any more is none", n)
		}
	})
}

// Who has said that the engine is away takes nothing before it has heard the engine for the whole
// time again, also not from a replica that it has taken for dead: who was told goes on meanwhile.
func TestASaidAbsenceIsAPromise(t *testing.T) {
	for name, silence := range map[string]time.Duration{"silent": 2400 * time.Millisecond, "taken for dead": 3100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, r, by := street(t)
				for _, e := range r {
					claim(t, e, "profile")
				}
				for _, n := range by { // nobody writes its heartbeats, and it answers nobody
					n.apart.Store(true)
				}
				r[0].SetAway(true)
				pass(t, silence)
				if n := len(r[1].View().Members); (n == 2) != (silence > replicas.MemberTTL) {
					t.Fatalf("%d members after %v", n, silence)
				}
				b.SetAway(true) // for a moment, in which no other replica has a round
				for _, e := range r[1:] {
					if err := e.TellFor(t.Context(), "aaaa", []byte(`{"addr":"10.0.0.1:2528","beat":1000}`)); !errors.Is(err, replicas.ErrAway) {
						t.Errorf("TellFor = %v while the engine is away, want %v", err, replicas.ErrAway)
					}
				}
				b.SetAway(false)
				pass(t, replicas.MemberTTL)
				wantHolder(t, "profile", "aaaa", r[1:]...)
				pass(t, replicas.ClaimMargin+2*replicas.Heartbeat)
				if c, _ := r[1].Holder("profile"); c.Epoch != 2 {
					t.Errorf("the claim is %+v after the whole time, want another holder's", c)
				}
			})
		})
	}
}

// A claim whose answer is lost is nobody's until the engine was heard: it may not have been written.
func TestAnUnansweredClaimIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := room(t)
		var asked atomic.Int64
		b.SetDelay(func(int, string, bool) time.Duration {
			if asked.Add(1) <= 2 { // reading the claim
				return 0
			}
			return 10 * time.Second // writing it
		})
		if c, err := r[0].Claim(t.Context(), "profile"); !errors.Is(err, replicas.ErrAway) {
			t.Errorf("Claim = %+v, %v, want %v", c, err, replicas.ErrAway)
		}
		if c, held := r[0].Holder("profile"); held {
			t.Errorf("the claim is %+v, want that nobody is known to hold it", c)
		}
		b.SetDelay(nil)
		pass(t, 5*time.Second)
		claim(t, r[0], "profile")
		wantHolder(t, "profile", "aaaa", r[0])
	})
}

// An engine that is back may have forgotten who holds what: nobody else takes that at first, and who
// asks waits.
func TestAForgottenClaimIsItsHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r, _ := street(t)
		claim(t, r[0], "profile")
		b.SetAway(true)
		pass(t, 5*time.Second)
		b.Empty()
		r[0].SetFrozen(true) // it comes second
		b.SetAway(false)
		pass(t, replicas.Heartbeat)
		brief, cancel := context.WithTimeout(t.Context(), replicas.Heartbeat/4)
		defer cancel()
		if c, err := r[1].Claim(brief, "profile"); !errors.Is(err, replicas.ErrAway) {
			t.Errorf("Claim = %+v, %v of who has not held it and can't wait, want %v", c, err, replicas.ErrAway)
		}
		r[0].SetFrozen(false)
		if c := claim(t, r[1], "profile"); c.Holder.Instance != "aaaa" {
			t.Errorf("Claim = %+v of who has waited, want that of aaaa", c)
		}
		pass(t, 3*time.Second)
		wantHolder(t, "profile", "aaaa", r[0], r[1])
	})
}
