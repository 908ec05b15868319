package member_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// Who claims a name right after the engine is back waits until it is known that nobody else holds
// it. All who wait ask the engine once.
func TestWhoClaimsEarlyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := room(t)
		b.SetAway(true)
		pass(t, 5*time.Second)
		b.SetAway(false)
		for !r[1].View().Away.IsZero() {
			pass(t, 10*time.Millisecond)
		}
		const callers = 100
		var all sync.WaitGroup
		var took [callers]time.Duration
		begin := time.Now()
		for i := range callers {
			all.Go(func() {
				if c, err := r[1].Claim(t.Context(), "profile"); err != nil || c.Holder.Instance != "bbbb" || c.Epoch != 1 {
					t.Errorf("Claim = %+v, %v of who has waited, want its own", c, err)
				}
				took[i] = time.Since(begin)
			})
		}
		synctest.Wait()
		asked := b.Calls()
		all.Wait()
		if n := b.Calls() - asked; n > 20 { // with heartbeats
			t.Errorf("%d callers that wait have asked the engine %d times", callers, n)
		}
		for _, d := range took {
			if most := replicas.Heartbeat * 3 / 2; d < most/2 || d > most {
				t.Fatalf("it took %v, want up to %v", d, most)
			}
		}
	})
}

// A waiter is a replica that waits, and what may end that.
type waiter struct {
	e     *replicastest.Engine
	leave func()
	away  func(bool)
}

// A call that waits ends when what it waits for has become idle: its client leaves, the engine is
// away again, nobody wants the name any more, or this replica ends.
func TestWhatEndsAWait(t *testing.T) {
	for name, end := range map[string]func(waiter){
		"its client leaves":     func(w waiter) { w.leave() },
		"the engine is away":    func(w waiter) { w.away(true) },
		"the name is released":  func(w waiter) { w.e.Release("profile") },
		"the replica leaves":    func(w waiter) { _ = w.e.Leave(context.Background()) },
		"the replica ends":      func(w waiter) { _ = w.e.Close(context.Background()) },
		"another replica tells": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, r := room(t)
				first := claim(t, r[0], "profile")
				b.SetAway(true)
				pass(t, 5*time.Second)
				b.Empty()
				r[0].SetFrozen(true)
				b.SetAway(false)
				pass(t, 1100*time.Millisecond)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var c replicas.Claim
				var err error
				var all sync.WaitGroup
				begin := time.Now()
				all.Go(func() { c, err = r[1].Claim(ctx, "profile") })
				synctest.Wait()
				if end == nil {
					r[0].SetFrozen(false)
					all.Wait()
					if err != nil || c.Holder.Instance != "aaaa" || c.Epoch <= first.Epoch {
						t.Errorf("Claim = %+v, %v, want what aaaa has claimed anew", c, err)
					}
					return
				}
				end(waiter{r[1], cancel, b.SetAway})
				all.Wait()
				if err == nil || !errors.Is(err, replicas.ErrAway) && !errors.Is(err, replicas.ErrClosed) {
					t.Errorf("Claim = %+v, %v, want an error", c, err)
				}
				most := 10 * time.Millisecond
				if name == "the engine is away" { // which has to be noticed
					most = 3 * replicas.Heartbeat
				}
				if took := time.Since(begin); took > most {
					t.Errorf("it took %v, want up to %v", took, most)
				}
			})
		})
	}
}
