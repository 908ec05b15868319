package sockets

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

type conn struct {
	closed, yielded atomic.Bool
	since           time.Time
	busy            bool
}

func (c *conn) Close() error            { c.closed.Store(true); return nil }
func (c *conn) Yield()                  { c.yielded.Store(true) }
func (c *conn) Idle() (time.Time, bool) { return c.since, c.busy }

func share(p mcp.Principal) mcp.Share { return mcp.Share{Principal: p} }

func newSet(all, each int) *Set {
	s := New()
	s.Bound(all, each)
	return s
}

func TestPlaces(t *testing.T) {
	s := newSet(2, 1)
	ada := new(conn)
	if _, err := s.Reserve(share("ada")); err != nil {
		t.Fatal(err)
	}
	s.Add(share("ada"), ada)
	full := (*LimitError)(nil)
	if _, err := s.Reserve(share("ada")); !errors.As(err, &full) || full.Limit != limits.WebSocketsEach {
		t.Errorf("a second one of a share = %v", err)
	}
	if _, err := s.Reserve(share("bob")); err != nil {
		t.Errorf("one of another share = %v", err)
	}
	if _, err := s.Reserve(share("cyd")); !errors.As(err, &full) || full.Limit != limits.WebSockets {
		t.Errorf("a third one = %v", err)
	}
	s.Release(share("bob"), nil) // its handshake has failed
	s.Release(share("ada"), ada)
	if _, err := s.Reserve(share("ada")); err != nil || s.Len() != 0 {
		t.Errorf("after all were given back: %v, %d open", err, s.Len())
	}
	s.Release(share("ada"), nil)
	s.Bound(0, 0)
	if _, err := s.Reserve(share("ada")); err == nil {
		t.Error("a place beyond a limit that was lowered")
	}
}

// Two clients that hold all WebSockets keep nobody out: of who has the most the one ends that has
// been idle for longest, without calls if possible. Its place is given once.
func TestHardeningBiggestHolderOfSocketsYields(t *testing.T) {
	s, begin := newSet(7, 5), time.Now()
	open := func(who mcp.Principal, wantYield bool) {
		t.Helper()
		if yielded, err := s.Reserve(share(who)); yielded != wantYield || err != nil {
			t.Errorf("Reserve() of %s = %v, %v, want %v", who, yielded, err, wantYield)
		}
	}
	full := func(who mcp.Principal) {
		t.Helper()
		if yielded, err := s.Reserve(share(who)); yielded || !errors.As(err, new(*LimitError)) {
			t.Errorf("Reserve() of %s = %v, %v, want a limit", who, yielded, err)
		}
	}
	var ada []*conn
	for i, busy := range []bool{true, false, false, true} {
		c := &conn{since: begin.Add(time.Duration(i) * time.Second), busy: busy}
		ada = append(ada, c)
		open("ada", false)
		s.Add(share("ada"), c)
	}
	open("ada", false) // in the handshake
	for range 2 {
		eve := &conn{since: begin.Add(-time.Hour)}
		open("eve", false)
		s.Add(share("eve"), eve)
		defer func() {
			if eve.yielded.Load() {
				t.Error("one of who has few has yielded")
			}
		}()
	}
	for i, yields := range []int{1, 2, 0} { // ada had 5, and has 2 now
		open(mcp.Principal("new"+string(rune('a'+i))), true)
		for at, c := range ada {
			if c.yielded.Load() != (at == yields) {
				t.Errorf("number %d: WebSocket %d has yielded: %v", i, at, c.yielded.Load())
			}
			c.yielded.Store(false)
		}
	}
	full("newa")
	full("newd")
	for _, at := range []int{1, 2, 0} {
		s.Release(share("ada"), ada[at])
	}
	full("newd") // their places were given before
	s.Release(share("ada"), ada[3])
	open("newd", false)
	full("newe")
	if n := s.Len(); n != 2 {
		t.Errorf("%d are open, want 2", n)
	}
}

// All are waited for, and cut when there is no more time.
func TestStopAndWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newSet(2, 2), new(conn)
		if _, err := s.Reserve(share("ada")); err != nil {
			t.Fatal(err)
		}
		s.Add(share("ada"), c)
		s.Stop()
		if _, err := s.Reserve(share("ada")); !errors.Is(err, mcp.ErrShutdown) || s.Live().Err() == nil {
			t.Errorf("after Stop: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Wait(ctx) }()
		synctest.Wait()
		if len(done) > 0 || c.closed.Load() {
			t.Fatal("it was not waited for")
		}
		cancel()
		synctest.Wait()
		if !c.closed.Load() {
			t.Error("it was not cut")
		}
		s.Release(share("ada"), c)
		if err := <-done; err == nil {
			t.Error("nobody is told that it was cut")
		}
	})
}

// What was lent ends by its name, with all, and leaves nothing.
func TestLoans(t *testing.T) {
	s := newSet(2, 2)
	if own := s.Lend(""); own.Name != "" || own.Live != s.Live() {
		t.Error("the WebSocket of a client of this replica is lent")
	}
	a, b := s.Lend("replica"), s.Lend("replica")
	if a.Name == b.Name || len(a.Name) < 20 || s.Lent() != 2 {
		t.Errorf("two loans: %q and %q, %d kept", a.Name, b.Name, s.Lent())
	}
	if s.Part("", nil) || s.Part("other", nil) || a.Live.Err() != nil {
		t.Error("something ends by another name")
	}
	if !s.Part(a.Name, ErrYielded) || context.Cause(a.Live) != ErrYielded || b.Live.Err() != nil {
		t.Error("it does not end by its name, or another one does")
	}
	s.Stop()
	if b.Live.Err() == nil {
		t.Error("it does not end with all")
	}
	b.End()
	a.End()
	if s.Lent() != 0 {
		t.Errorf("%d are kept", s.Lent())
	}
}
