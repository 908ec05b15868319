package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// Sessions that die at once must not make us open others in a tight loop.
func TestWatchBacksOffFromDyingSessions(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.Listen(uriTopic("a")).WantHonored("a")
		for range 10 * 60 {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			st.server.lose(nil)
		}
		if n := st.server.count(func(s *script) int { return s.opened }); n < 10 || n > 40 {
			t.Errorf("%d sessions opened in a minute, want between 10 and 40", n)
		}
		time.Sleep(time.Minute)
		st.wantSubscribed("a")
	})
}

// Who subscribes waits for a server that starts as long as other requests do.
func TestWatchWaitsForAServerThatStarts(t *testing.T) {
	for _, tt := range []struct {
		name string
		dial time.Duration
		want time.Duration // until the error; 0: none
	}{
		{"in time", 55 * time.Second, 0},
		{"too late", 2 * time.Minute, time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := &upstream.Options{Settings: settings.Server{Timeouts: settings.Timeouts{Connect: time.Minute}}}
			withRig(t, options{Options: o}, func(t *testing.T, st *rig) {
				st.server.dial = tt.dial
				st.server.answer = func(string, string) (time.Duration, error) { return subscribe.Patience - time.Second, nil }
				first := st.GoListen(uriTopic("a"))
				time.Sleep(time.Second)
				begun := time.Now()
				s := st.Listen(uriTopic("b"))
				if tt.want == 0 {
					(<-first).WantHonored("a")
					s.WantHonored("b")
					return
				}
				if took := time.Since(begun); (<-first).Err == nil || s.Err == nil || took != tt.want {
					t.Errorf("Watch = %v after %v, want that there is no session after %v", s.Err, took, tt.want)
				}
			})
		})
	}
}

// A session that a call has opened is used at once, not after the pause that has grown.
func TestM2L37WatchUsesASessionThatIsOpen(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.ws.Respond(testScope) // nobody watches
		st.Listen(uriTopic("a")).WantHonored("a")
		st.server.lose(errAway)
		time.Sleep(time.Minute)
		late := st.GoListen(uriTopic("b"))
		synctest.Wait()
		st.server.set(func(s *script) { s.away = nil })
		st.wantSubscribed()
		st.Log.Take()
		st.ws.Respond(testScope)
		st.wantSubscribed("a", "b")
		(<-late).WantHonored("b")
		if told := st.Log.Take(); !slices.Contains(told, "event a") {
			t.Errorf("told %q, want also that a may have changed", told)
		}
	})
}

func TestWatchRedialIsGivenUpWhenNobodyWaits(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		s := st.Listen(uriTopic("a"))
		st.server.lose(errAway)
		time.Sleep(time.Second)
		s.Close()
		time.Sleep(upstream.DefaultLinger)
		st.wantEnded()
		if _, err := st.Ended(uriTopic("a")); err != nil {
			t.Errorf("ended with %v what nobody wanted", err)
		}
	})
}

func TestWatchDialIsHungUpWhenNobodyWaits(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		t.Run(fmt.Sprint("deaf=", deaf), func(t *testing.T) {
			withRig(t, options{}, func(t *testing.T, st *rig) {
				st.server.dial, st.server.deaf = 5*time.Second, deaf
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if s := st.ListenCtx(ctx, uriTopic("a")); s.Err == nil {
					t.Error("Watch succeeded without a session")
				}
				synctest.Wait()
				again := st.GoListen(uriTopic("a")) // hanging up is no failure to it
				(<-again).WantHonored("a")
				st.wantCalls("subscribe a")
				if n := st.server.count(func(s *script) int { return s.held }); n != 1 {
					t.Errorf("%d sessions held, want 1", n)
				}
			})
		})
	}
}

// That a dial was hung up on says nothing of the server: who came meanwhile
// waits for another.
func TestWatchDialHungUpOnIsNoFailure(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.server.dial, st.server.deaf = 4*time.Second, true
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		st.ListenCtx(ctx, uriTopic("a"))
		again := st.GoListen(uriTopic("a"))
		st.server.set(func(s *script) { s.away = errAway })
		time.Sleep(5 * time.Second)
		st.server.set(func(s *script) { s.away = nil })
		(<-again).WantHonored("a")
	})
}

func TestWatchDialEndsWithNobodyLeft(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.server.dial, st.server.deaf = 5*time.Second, true
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		st.ListenCtx(ctx, uriTopic("a"))
		time.Sleep(5 * time.Second)
		st.wantEnded()
	})
}

func TestWatchCloseWhileDialing(t *testing.T) {
	withRig(t, options{}, func(t *testing.T, st *rig) {
		st.server.dial, st.server.deaf = 5*time.Second, true
		waiting := st.GoListen(uriTopic("a"))
		time.Sleep(time.Second)
		st.ws.Close()
		if s := <-waiting; !errors.Is(s.Err, mcp.ErrShutdown) {
			t.Errorf("Watch = %v, want %v", s.Err, mcp.ErrShutdown)
		}
		st.wantEnded() // the session that came after all was let go
	})
}

func TestWatchOfNobodyIsTold(t *testing.T) {
	var w *Watch // of a profile for which nothing is wanted
	w.Changed(fanout.ResourceUpdated, "a", nil)
	w.ListenChanged(true)
	w.ListenChanged(false)
}
