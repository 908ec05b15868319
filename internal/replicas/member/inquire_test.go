package member_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// severed is a street whose engine is away, as all replicas have told each other. The last one may have
// claimed a name that no other one wants.
func severed(t *testing.T, held string) (*replicastest.Broker, [3]*replicastest.Engine, [3]*neighbors) {
	t.Helper()
	b, r, by := street(t)
	pass(t, replicas.MemberTTL)
	if held != "" {
		claim(t, r[2], held)
	}
	b.SetAway(true)
	pass(t, 5*time.Second)
	return b, r, by
}

// What no other replica holds is vacant until the engine is heard again, and all others are asked once.
func TestAllSayNo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r, by := severed(t, "")
		if n := r[0].Vacant("profile"); n > 0 {
			t.Errorf("a name is vacant in outage %d before the others were asked", n)
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if err := r[0].Inquire(t.Context(), "profile"); err != nil {
					t.Errorf("Inquire = %v, want that nobody holds it", err)
				}
			})
		}
		all.Wait()
		for range 60 {
			if err := r[0].Inquire(t.Context(), "profile"); err != nil || r[0].Vacant("profile") != 1 {
				t.Fatalf("Inquire = %v, and the name is vacant in outage %d, want 1", err, r[0].Vacant("profile"))
			}
			pass(t, replicas.Heartbeat)
		}
		if n := by[0].asked.Load(); n != 2 {
			t.Errorf("the others were asked %d times, want once each", n)
		}
		if c, held := r[0].Holder("profile"); held {
			t.Errorf("it takes %+v for the holder of what nobody holds", c)
		}
		b.SetAway(false)
		pass(t, 5*time.Second)
		if n := r[0].Vacant("profile"); n > 0 {
			t.Errorf("a name is vacant in outage %d after the engine was heard", n)
		}
		b.SetAway(true)
		pass(t, 5*time.Second)
		if n := r[0].Vacant("profile"); n > 0 {
			t.Errorf("the answers of one outage count in another one: %d", n)
		}
		if err := r[0].Inquire(t.Context(), "profile"); err != nil || r[0].Vacant("profile") != 2 || by[0].asked.Load() != 4 {
			t.Errorf("Inquire = %v in another outage, and the name is vacant in outage %d; %d questions, want 4", err, r[0].Vacant("profile"), by[0].asked.Load())
		}
	})
}

// Who says that it holds a name is its holder, for as long as it is sure to keep it.
func TestOneHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r, by := severed(t, "profile")
		for _, e := range r[:2] {
			if err := e.Inquire(t.Context(), "profile"); err != nil || e.Vacant("profile") > 0 {
				t.Errorf("Inquire = %v, and the name is vacant in outage %d, want that one holds it", err, e.Vacant("profile"))
			}
		}
		wantHolder(t, "profile", "cccc", r[:]...)
		r[2].Release("profile")
		pass(t, time.Minute)
		wantHolder(t, "profile", "", r[0])
		if err := r[0].Inquire(t.Context(), "profile"); err != nil || r[0].Vacant("profile") == 0 || by[0].asked.Load() != 4 {
			t.Errorf("Inquire = %v of what its holder has given up, vacant in outage %d; %d questions, want 4", err, r[0].Vacant("profile"), by[0].asked.Load())
		}
	})
}

// Without the answer of each other replica nothing is vacant, but one that was replaced holds nothing.
func TestOneDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r, by := severed(t, "")
		for _, says := range []error{errors.New("404 Not Found"), context.DeadlineExceeded, replicas.ErrGone} {
			by[0].says = func(to replicas.Replica) error {
				if to.Instance == "bbbb" {
					return says
				}
				return nil
			}
			err, gone := r[0].Inquire(t.Context(), "profile"), errors.Is(says, replicas.ErrGone)
			if errors.Is(err, replicas.ErrUnasked) == gone || (r[0].Vacant("profile") > 0) != gone {
				t.Errorf("after %v: Inquire = %v, and the name is vacant in outage %d; want that one is gone: %v", says, err, r[0].Vacant("profile"), gone)
			}
		}
		left, leave := context.WithCancel(t.Context())
		leave()
		if err := r[1].Inquire(left, "profile"); !errors.Is(err, context.Canceled) {
			t.Errorf("Inquire = %v of who has left, want %v", err, context.Canceled)
		}
	})
}

// Who has said that it does not hold a name claims it only once who was told serves it no more, also if
// its claim of before arrives late at the engine.
func TestWhoSaidNoClaimsNothing(t *testing.T) {
	for name, late := range map[string]bool{"it claims anew": false, "a claim arrives late": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, r, by := street(t)
				pass(t, replicas.MemberTTL)
				if late {
					b.SetDelay(func(n int, what string, answer bool) time.Duration {
						if strings.HasPrefix(what, "Swap") && !answer {
							return 6 * time.Second
						}
						return 0
					})
					go func() { _, _ = r[2].Claim(t.Context(), "profile") }()
					pass(t, 10*time.Millisecond)
				}
				for _, e := range r {
					e.SetAway(true)
				}
				pass(t, 5*time.Second)
				b.SetDelay(nil) // but of what is on its way
				if err := r[0].Inquire(t.Context(), "profile"); err != nil || r[0].Vacant("profile") == 0 {
					t.Fatalf("Inquire = %v, and the name is vacant in outage %d", err, r[0].Vacant("profile"))
				}
				by[0].apart.Store(true)
				r[1].SetAway(false)
				r[2].SetAway(false) // those two hear the engine, and the first one nobody
				go func() { _, _ = r[2].Claim(t.Context(), "profile") }()
				vacant, held := false, false
				for end := time.Now().Add(8 * time.Second); time.Now().Before(end); pass(t, 10*time.Millisecond) {
					c, ok := r[2].Holder("profile")
					held = ok && c.Holder.Instance == "cccc"
					if v := r[0].Vacant("profile") > 0; v && held {
						t.Fatal("one replica holds what is vacant to another one")
					} else {
						vacant = vacant || v
					}
				}
				if !vacant || !held {
					t.Errorf("the name was vacant: %v, and it is held in the end: %v; want both", vacant, held)
				}
			})
		})
	}
}

// A replica that was silent for so long that the others have forgotten it acts on what it held only once
// nobody serves that without a claim, and in another epoch.
func TestWhoWasForgottenWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r, by := street(t)
		claim(t, r[2], "profile")
		r[2].SetFrozen(true)
		for _, n := range by {
			n.apart.Store(true)
		}
		pass(t, 15*time.Second)
		for _, n := range by {
			n.apart.Store(false)
		}
		if n := len(r[0].View().Members); n != 2 {
			t.Fatalf("%d members, want that the silent one is none", n)
		}
		b.SetAway(true)
		pass(t, 5*time.Second)
		if err := r[0].Inquire(t.Context(), "profile"); err != nil || r[0].Vacant("profile") == 0 {
			t.Fatalf("Inquire = %v, and the name is vacant in outage %d", err, r[0].Vacant("profile"))
		}
		r[0].SetFrozen(true) // it hears of nothing
		b.SetAway(false)
		r[2].SetFrozen(false)
		for range 100 {
			pass(t, 100*time.Millisecond)
			if c, held := r[2].Holder("profile"); held && (r[0].Vacant("profile") > 0 || c.Epoch != 2) {
				t.Fatalf("it holds %+v, and the name is vacant in outage %d; want epoch 2, and that it is not", c, r[0].Vacant("profile"))
			}
		}
		wantHolder(t, "profile", "cccc", r[2])
		r[0].SetFrozen(false)
	})
}

// One that was silent just before the engine was away may be back: it is asked, too, and only that it
// holds a name counts.
func TestASilentOneIsAsked(t *testing.T) {
	for name, tt := range map[string]struct {
		held string
		by   string
	}{"it holds it": {held: "profile", by: "cccc"}, "it does not": {held: "another"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, r, by := street(t)
				pass(t, replicas.MemberTTL)
				claim(t, r[2], tt.held)
				for _, n := range by {
					n.apart.Store(true)
				}
				r[2].SetFrozen(true)
				pass(t, 4500*time.Millisecond)
				if n := len(r[0].View().Members); n != 2 {
					t.Fatalf("%d members, want that the silent one is none", n)
				}
				for _, n := range by {
					n.apart.Store(false)
				}
				b.SetAway(true)
				r[2].SetFrozen(false)
				pass(t, 5*time.Second)
				if err := r[0].Inquire(t.Context(), "profile"); (err == nil) != (tt.by != "") || r[0].Vacant("profile") > 0 {
					t.Errorf("Inquire = %v, and the name is vacant in outage %d", err, r[0].Vacant("profile"))
				}
				wantHolder(t, "profile", tt.by, r[0])
			})
		})
	}
}

// A replica that has just joined may not know all, so that it serves nothing without a claim.
func TestWhoHasJustJoinedKnowsTooLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r, _ := street(t)
		b.SetAway(true)
		pass(t, 10*time.Second)
		if err := r[0].Inquire(t.Context(), "profile"); !errors.Is(err, replicas.ErrUnasked) || r[0].Vacant("profile") > 0 {
			t.Errorf("Inquire = %v, and the name is vacant in outage %d; want %v", err, r[0].Vacant("profile"), replicas.ErrUnasked)
		}
	})
}

// A replica of a version that does not know the question has not said that it holds nothing.
func TestOneOfAnEarlierVersionSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r, by := street(t)
		self := r[1].View().Self
		self.Revision = 3
		r[1].Update(self)
		pass(t, 5*time.Second)
		b.SetAway(true)
		pass(t, 5*time.Second)
		if err := r[0].Inquire(t.Context(), "profile"); !errors.Is(err, replicas.ErrUnasked) || by[0].asked.Load() != 1 {
			t.Errorf("Inquire = %v, and %d were asked; want %v, and the one that knows the question", err, by[0].asked.Load(), replicas.ErrUnasked)
		}
	})
}
