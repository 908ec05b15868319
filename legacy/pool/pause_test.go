package pool

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/legacy/link"
)

// A server that crashes as soon as it stands is not started in a loop.
func TestCrashLoopRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, peers := pipeRig(t, Options{})
		dials := 0
		go func() {
			for p := range peers {
				dials++
				p.Handshake(legacytest.Everything)
				p.Read()
				_ = p.Conn.Close()
			}
		}()
		start := time.Now()
		for time.Since(start) < time.Minute {
			if err := r.list(t.Context(), "a"); err == nil {
				t.Fatal("a request = nil error from a server that crashes")
			}
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if dials < 3 || dials > 30 {
			t.Errorf("%d children in a minute of crashes, want a few", dials)
		}
	})
}

// hammer has callers of so many profiles ask again and again for a while. It returns the
// longest wait of those who came once the server's habit was known.
func hammer(t *testing.T, r *rig, callers, profiles int, after, until time.Duration) (longest time.Duration) {
	var mu sync.Mutex
	var all sync.WaitGroup
	begin := time.Now()
	for i := range callers {
		all.Go(func() {
			for time.Since(begin) < until {
				asked := time.Now()
				_, _, err := r.Get(t.Context(), of(strings.Repeat("p", 1+i%profiles)), false)
				if f := upstream.AsFailure(err); f == nil || f.Fate != upstream.NotSent {
					t.Errorf("Get = %v, want the failure of what was not sent", err)
					return
				}
				mu.Lock()
				if asked.Sub(begin) >= after {
					longest = max(longest, time.Since(asked))
				}
				mu.Unlock()
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	all.Wait()
	return longest
}

var errRefused = errors.New("connection refused")

// A server that is away is tried now and then, by one for all; nobody waits long to hear
// of it, whatever its profile.
func TestADeadServerIsNewsAtOnce(t *testing.T) {
	refusal := func(context.Context, *link.Link) error { return errRefused }
	silence := func(ctx context.Context, _ *link.Link) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for _, tt := range []struct {
		name     string
		server   connector
		profiles int
		known    time.Duration // when two attempts have failed
		atMost   int64         // attempts within a minute
	}{
		{"refuses connections", refusal, 1, 0, 20},
		{"refuses connections, many profiles", refusal, 50, 0, 50 + 20},
		{"swallows packets", silence, 1, 2 * upstream.DefaultConnectTimeout, 12},
		{"swallows packets, many profiles", silence, 50, 2 * upstream.DefaultConnectTimeout, 2*50 + 12},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			var dials atomic.Int64
			r := newRig(t, Options{}, func(ctx context.Context, l *link.Link) error {
				dials.Add(1)
				return tt.server(ctx, l)
			})
			if longest := hammer(t, r, 100, tt.profiles, tt.known+time.Second, time.Minute); longest > upstream.MaxWait {
				t.Errorf("a caller waited %v, want at most %v", longest, upstream.MaxWait)
			}
			if n := dials.Load(); n > tt.atMost {
				t.Errorf("%d attempts in a minute, want at most %d", n, tt.atMost)
			}
			t.Logf("%d attempts", dials.Load())
		})
	}
}

// onceUp dials a server that refuses until up, and then takes a while.
func onceUp(up *atomic.Bool, takes time.Duration, dial func(context.Context) (transport.Conn, error)) connector {
	return over(func(ctx context.Context) (transport.Conn, error) {
		if !up.Load() {
			return nil, errRefused
		}
		time.Sleep(takes)
		return dial(ctx)
	})
}

// A server that comes back is found within the longest rest.
func TestADeadServerThatComesBackIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		dial, peers := legacytest.Pipes(t)
		r := newRig(t, Options{}, onceUp(&up, 0, dial))
		hammer(t, r, 10, 3, time.Hour, time.Minute)
		up.Store(true)
		go runNext(peers, 1)
		begin := time.Now()
		for r.list(t.Context(), "a") != nil {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("it was found after %v, want at most the longest pause", took)
		}
	})
}

// A client that gives up during the one attempt that a failing server gets leaves the next one to
// others.
func TestAnAttemptThatIsGivenUpIsNotTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var state atomic.Int64 // 0 refuses, 1 is silent, 2 serves
		dial, peers := legacytest.Pipes(t)
		r := newRig(t, Options{}, over(func(ctx context.Context) (transport.Conn, error) {
			switch state.Load() {
			case 0:
				return nil, errRefused
			case 1:
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			return dial(ctx)
		}))
		for range 3 {
			_, _, _ = r.Get(t.Context(), of("a"), true)
			time.Sleep(upstream.MaxWait)
		}
		state.Store(1)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, _, err := r.Get(ctx, of("a"), true); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Get = %v, want that it was given up", err)
		}
		synctest.Wait()
		state.Store(2)
		go runNext(peers, 1)
		if _, release, err := r.Get(t.Context(), of("a"), true); err != nil {
			t.Fatalf("Get = %v, want a session of the server that serves again", err)
		} else {
			settle()
			release()
		}
	})
}

// A private session that takes long to open is waited for, also if the server failed before.
func TestASlowStartAfterFailuresIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		dial, peers := legacytest.Pipes(t)
		r := newRig(t, Options{}, onceUp(&up, 5*upstream.MaxWait, dial))
		for range 3 {
			_, _, _ = r.Get(t.Context(), of("a"), true)
		}
		up.Store(true)
		time.Sleep(10 * time.Second)
		go runNext(peers, 1)
		if _, release, err := r.Get(t.Context(), of("a"), true); err != nil {
			t.Errorf("Get = %v, want a session", err)
		} else {
			settle()
			release()
		}
	})
}

// An eager pool makes each attempt at once, so that a server that is back serves the next request.
func TestEagerAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		dial, peers := legacytest.Pipes(t)
		r := newRig(t, Options{Eager: true}, onceUp(&up, 0, dial))
		if longest := hammer(t, r, 10, 3, 0, time.Minute); longest > 0 {
			t.Errorf("a caller waited %v for the refusal", longest)
		}
		up.Store(true)
		go runNext(peers, 1)
		if err := r.list(t.Context(), "a"); err != nil {
			t.Errorf("a request = %v, want a result once the server is back", err)
		}
		settle()
	})
}
