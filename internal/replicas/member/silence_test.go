package member_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// Who judges counts a silence until the moment at which it asked the engine: what was told while the
// answer was under way is not in it.
func TestASilenceEndsWhenTheEngineWasAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := room(t)
		name := "profile"
		for r[0].View().PickBut(replicas.Key(name), "aaaa").Instance != "bbbb" { // which comes first
			name += "s"
		}
		for _, e := range r {
			claim(t, e, name)
		}
		heard := func() { // by all others, at this moment
			for _, e := range r {
				e.Update(e.View().Self)
				synctest.Wait()
			}
		}
		heard()
		r[0].SetAway(true)
		pass(t, replicas.MemberTTL-250*time.Millisecond)
		b.SetDelay(func(engine int, what string, answer bool) time.Duration {
			if engine == 1 && answer && what == "Poll" {
				return 9 * replicas.Heartbeat / 10
			}
			return 0
		})
		r[1].Update(r[1].View().Self) // it asks
		pass(t, time.Millisecond)
		b.SetDelay(nil)
		r[0].SetAway(false)
		r[0].Update(r[0].View().Self) // it is heard, before its lease is over
		synctest.Wait()
		if !r[0].Leased() {
			t.Fatal("it has no lease")
		}
		pass(t, replicas.Heartbeat)
		wantHolder(t, name, "aaaa", r[:]...)
		if c, _ := r[0].Holder(name); c.Epoch != 1 || !r[0].Leased() {
			t.Errorf("the claim is %+v, leased: %v; want that nobody has taken it", c, r[0].Leased())
		}
	})
}

// An owner acts for three heartbeats from the moment at which it began to write the last one that it
// knows to be written, or asked another replica to: not from the answer, nor from one without.
func TestALeaseBeginsWithItsHeartbeat(t *testing.T) {
	const answer = 9 * replicas.Heartbeat / 10
	for name, tt := range map[string]struct {
		takes time.Duration // until the answer
		told  bool          // by another replica
		began bool          // the lease begins with this heartbeat, and not with the last one
	}{
		"answered late":             {answer, false, true},
		"not answered":              {time.Hour, false, false},
		"by another, answered late": {answer, true, true},
		"by another, not answered":  {time.Hour, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, r, by := street(t)
				r[0].Update(r[0].View().Self)
				synctest.Wait()
				begun := time.Now()
				for _, n := range by {
					n.apart.Store(!tt.told)
				}
				if tt.told {
					by[0].takes.Store(int64(tt.takes))
					r[0].SetAway(true)
					for by[0].told.Load() == 0 {
						pass(t, 10*time.Millisecond)
					}
				} else {
					b.SetDelay(func(engine int, what string, answer bool) time.Duration {
						if engine == 0 && answer && strings.HasPrefix(what, "Beat") {
							return tt.takes
						}
						return 0
					})
					pass(t, replicas.Heartbeat/2)
					r[0].Update(r[0].View().Self)
					synctest.Wait()
				}
				if tt.began {
					begun = time.Now()
				}
				for _, n := range by {
					n.apart.Store(true) // what is under way arrives
				}
				pass(t, answer)
				r[0].SetAway(true)
				for r[0].Leased() && time.Since(begun) < time.Minute {
					pass(t, 10*time.Millisecond)
				}
				if lasted := time.Since(begun); lasted > replicas.MemberTTL+10*time.Millisecond || lasted < replicas.MemberTTL-50*time.Millisecond {
					t.Errorf("the lease lasted %v after the heartbeat was begun, want %v", lasted, replicas.MemberTTL)
				}
			})
		})
	}
}
