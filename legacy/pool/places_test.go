package pool

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// A scriptedSession is a session that takes a moment to end.
type scriptedSession struct {
	done chan struct{}
	once sync.Once
}

func (s *scriptedSession) Done() <-chan struct{} { return s.done }
func (s *scriptedSession) Alive() bool {
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}
func (s *scriptedSession) Err() error { return nil }
func (s *scriptedSession) Close(context.Context) {
	s.once.Do(func() { close(s.done) })
	time.Sleep(400 * time.Millisecond)
}

// placesPool returns a Pool of 16 places for each share whose sessions take a moment to
// open and to end.
func placesPool(t *testing.T, hits *backtest.Metrics) *Pool {
	dial := func(ctx context.Context, _ mcp.Profile) (Session, error) {
		time.Sleep(300 * time.Millisecond)
		return &scriptedSession{done: make(chan struct{})}, nil
	}
	r := newRig(t, Options{MaxSessions: 64, MaxSessionsEach: 16, Metrics: hits, Wait: time.Minute}, nil)
	r.Pool.dial = dial
	return r.Pool
}

// A resting is a client that rests as it says, and stays away once it is retired.
type resting func() (d time.Duration, begun, ok bool)

func (r resting) Rest() (time.Duration, bool, bool) { return r() }

func (r resting) Retire(least time.Duration) bool {
	d, _, ok := r()
	return ok && d >= least
}

// useOwn opens a session of a client's own, uses it, and leaves it: it ends it, or never
// does. It returns an error if the session ended while it was used.
func useOwn(ctx context.Context, p *Pool, share mcp.Share, ends bool) error {
	var mu sync.Mutex
	var since time.Time // zero while something is open
	rest := resting(func() (time.Duration, bool, bool) {
		mu.Lock()
		defer mu.Unlock()
		return time.Since(since), true, !since.IsZero()
	})
	s, leave, err := p.GetOwn(ctx, mcp.Profile{Scope: ownScope(), Share: share}, rest, p.dial)
	if err != nil {
		return err
	}
	for range 3 { // with a pause between two requests
		time.Sleep(100 * time.Millisecond)
		mu.Lock()
		since = time.Now()
		mu.Unlock()
		time.Sleep(200 * time.Millisecond)
		mu.Lock()
		since = time.Time{}
		mu.Unlock()
	}
	if !s.Alive() {
		return fmt.Errorf("the session ended while its client used it")
	}
	if ends {
		leave()
		return nil
	}
	mu.Lock()
	since = time.Now()
	mu.Unlock()
	go func() {
		<-s.Done() // as a front does
		leave()
	}()
	return nil
}

var scopes struct {
	sync.Mutex
	n int
}

// ownScope returns a scope that no other session has.
func ownScope() string {
	scopes.Lock()
	defer scopes.Unlock()
	scopes.n++
	return fmt.Sprint("own/", scopes.n)
}

// A client with a session per call has more sessions at a time than places, and hundreds one
// after another: each gets its turn, whether the client ends its sessions or never does.
func TestM2L02SessionsPerCallFindPlaces(t *testing.T) {
	for name, ends := range map[string]bool{"ended": true, "left": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hits := &backtest.Metrics{}
				p := placesPool(t, hits)
				ada := mcp.Share{Principal: "ada"}
				var all sync.WaitGroup
				for range 20 {
					all.Go(func() {
						if err := useOwn(t.Context(), p, ada, ends); err != nil {
							t.Errorf("one of 20 at once = %v", err)
						}
					})
				}
				all.Wait()
				for i := range 200 {
					if err := useOwn(t.Context(), p, ada, ends); err != nil {
						t.Fatalf("session %d of 200 in turn = %v", i, err)
					}
				}
				if n := hits.Count("limit command_sessions_each"); n != 0 {
					t.Errorf("%d were refused, want none", n)
				}
			})
		})
	}
}

// A client that has nothing open for less than two seconds keeps its session, though another waits
// for the place; it yields it then. One that has sent nothing but its handshake has 15 seconds.
func TestM2L02RestBeforeYielding(t *testing.T) {
	for name, tt := range map[string]struct {
		begun bool
		keeps time.Duration
	}{
		"between two requests": {true, yieldTime},
		"after the handshake":  {false, handshakeTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := placesPool(t, &backtest.Metrics{})
				ada := mcp.Share{Principal: "ada"}
				var since time.Time
				rest := resting(func() (time.Duration, bool, bool) { return time.Since(since), tt.begun, true })
				over := make(chan struct{})
				defer close(over)
				var sessions []Session
				for range 16 {
					s, leave, err := p.GetOwn(t.Context(), mcp.Profile{Scope: ownScope(), Share: ada, ClientInfo: []byte(`{"name":"c"}`)}, rest, p.dial)
					if err != nil {
						t.Fatal(err)
					}
					sessions = append(sessions, s)
					go func() { // as a front does
						select {
						case <-s.Done():
						case <-over:
						}
						leave()
					}()
				}
				since = time.Now()
				go func() {
					time.Sleep(tt.keeps - 100*time.Millisecond)
					for _, s := range sessions {
						if !s.Alive() {
							t.Errorf("a session has yielded before %v", tt.keeps)
						}
					}
				}()
				if err := useOwn(t.Context(), p, ada, true); err != nil {
					t.Errorf("who waited = %v", err)
				}
				if took := time.Since(since); took < tt.keeps || took > tt.keeps+2*time.Second {
					t.Errorf("it took %v until there was a place, and 0.9 s to use it", took)
				}
			})
		})
	}
}

// A session of which nothing was used but the handshake has been left only if the newcomer can't start
// beside it.
func TestM2L02LeftAfterTheHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := placesPool(t, &backtest.Metrics{})
		ada, info := mcp.Share{Principal: "ada"}, []byte(`{"name":"c"}`)
		opened := time.Now()
		s, leave, err := p.GetOwn(t.Context(), mcp.Profile{Scope: ownScope(), Share: ada, ClientInfo: info},
			resting(func() (time.Duration, bool, bool) { return time.Since(opened), false, true }), p.dial)
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
		time.Sleep(handshakeTime - time.Second)
		to := Newcomer{Share: ada, Info: info}
		if err := p.EndLeft(t.Context(), to, false); err != nil || !s.Alive() {
			t.Errorf("EndLeft() = %v, and the session is open: %t, want it open", err, s.Alive())
		}
		if err := p.EndLeft(t.Context(), to, true); err != nil || s.Alive() {
			t.Errorf("EndLeft() for one that starts alone = %v, and the session is open: %t, want it ended", err, s.Alive())
		}
	})
}

// A returning is a client that comes back just after it has said that it rests.
type returning struct{ asked atomic.Bool }

func (r *returning) Rest() (time.Duration, bool, bool) { return time.Hour, true, !r.asked.Swap(true) }

func (r *returning) Retire(time.Duration) bool { return false }

// A client that comes back before its session ends keeps it, whoever wants its place.
func TestM2L02WhoComesBackKeepsItsSession(t *testing.T) {
	ada, info := mcp.Share{Principal: "ada"}, []byte(`{"name":"c"}`)
	for name, want := range map[string]func(*testing.T, *Pool){
		"another needs a place": func(t *testing.T, p *Pool) {
			if err := useOwn(t.Context(), p, ada, true); err == nil || !strings.Contains(err.Error(), "all 16 sessions are in use") {
				t.Errorf("who waited = %v, want it refused", err)
			}
		},
		"it opens another": func(t *testing.T, p *Pool) {
			if err := p.EndLeft(t.Context(), Newcomer{Share: ada, Info: info}, true); err != nil {
				t.Errorf("EndLeft() = %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := placesPool(t, &backtest.Metrics{})
				for n := range 16 {
					s, leave, err := p.GetOwn(t.Context(), mcp.Profile{Scope: ownScope(), Share: ada, ClientInfo: info}, &returning{}, p.dial)
					if err != nil {
						t.Fatal(err)
					}
					defer leave()
					defer func() {
						if !s.Alive() {
							t.Errorf("session %d has ended, and its client has come back", n)
						}
					}()
				}
				want(t, p)
			})
		})
	}
}

// Who has waited as long as a session may take to open is refused, and told what to do.
func TestM2L02WaitingForAPlaceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hits := &backtest.Metrics{}
		p := placesPool(t, hits)
		share := mcp.NewShare(mcp.Anonymous, netip.MustParseAddr("192.0.2.66"))
		busy := resting(func() (time.Duration, bool, bool) { return 0, false, false })
		for range 16 {
			_, leave, err := p.GetOwn(t.Context(), mcp.Profile{Scope: ownScope(), Share: share}, busy, p.dial)
			if err != nil {
				t.Fatal(err)
			}
			defer leave()
		}
		begun := time.Now()
		_, _, err := p.GetOwn(t.Context(), mcp.Profile{Scope: "late", Share: share}, busy, p.dial)
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("refused after %v, want 1m", took)
		}
		for _, want := range []string{`server "scripted"`, "all 16 sessions are in use", "within 1m0s", "end sessions that are not needed", "raise limits.command_sessions_each"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the 17th = %v, want it to say %q", err, want)
			}
		}
		if n := hits.Count("limit command_sessions_each"); n != 1 {
			t.Errorf("counted %d times, want once", n)
		}
		if f := upstream.AsFailure(err); f != nil {
			t.Errorf("it counts as a failure of the server: %v", f)
		}
	})
}

// The places that become free go to who came first, and none of one share's crowd keeps
// another share from its first session.
func TestM2L02PlacesAreFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, peers := pipeRig(t, Options{MaxSessions: 2, MaxSessionsEach: 2, Wait: time.Minute})
		go runNext(peers, 5)
		var mu sync.Mutex
		var order []string
		get := func(name string, share mcp.Share) {
			_, leave, err := r.Get(t.Context(), mcp.Profile{Scope: name, Share: share}, true)
			if err != nil {
				t.Errorf("%s = %v", name, err)
				return
			}
			mu.Lock()
			order = append(order, name)
			mu.Unlock()
			time.Sleep(time.Second)
			leave()
		}
		ada, bob := mcp.Share{Principal: "ada"}, mcp.Share{Principal: "bob"}
		var all sync.WaitGroup
		for _, who := range []struct {
			name  string
			share mcp.Share
		}{{"a1", ada}, {"a2", ada}, {"a3", ada}, {"a4", ada}, {"b1", bob}} {
			all.Go(func() { get(who.name, who.share) })
			time.Sleep(10 * time.Millisecond)
		}
		all.Wait()
		if got := strings.Join(order, " "); got != "a1 a2 a3 b1 a4" && got != "a1 a2 b1 a3 a4" {
			t.Errorf("the order was %s, want b1 before a4, and a3 before a4", got)
		}
	})
}

// A session that is idle yields to another share only if its own holds more than an equal
// part.
func TestM2L02EqualParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, peers := pipeRig(t, Options{MaxSessions: 3, MaxSessionsEach: 3})
		go runNext(peers, 5)
		ada, bob := mcp.Share{Principal: "ada"}, mcp.Share{Principal: "bob"}
		get := func(scope string, share mcp.Share) error {
			_, leave, err := r.Get(t.Context(), mcp.Profile{Scope: scope, Share: share}, false)
			if err == nil {
				leave()
			}
			settle()
			return err
		}
		for _, scope := range []string{"a1", "a2", "a3"} {
			if err := get(scope, ada); err != nil {
				t.Fatal(err)
			}
		}
		if err := get("b1", bob); err != nil || len(r.Sessions("a1")) != 0 {
			t.Errorf("bob's first = %v with ada's oldest there %d times, want its place", err, len(r.Sessions("a1")))
		}
		if err := get("b2", bob); err != nil || len(r.Sessions("b1")) != 0 || len(r.Sessions("a2")) != 1 {
			t.Errorf("bob's second = %v, ada has %d, want his own to go", err, len(r.Sessions("a2")))
		}
	})
}
