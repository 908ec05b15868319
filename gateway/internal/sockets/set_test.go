package sockets

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

type conn struct{ closed atomic.Bool }

func (c *conn) Close() error { c.closed.Store(true); return nil }

func share(p mcp.Principal) mcp.Share { return mcp.Share{Principal: p} }

func TestPlaces(t *testing.T) {
	s := New(2, 1)
	ada := new(conn)
	if err := s.Reserve(share("ada")); err != nil {
		t.Fatal(err)
	}
	s.Add(ada)
	full := (*LimitError)(nil)
	if err := s.Reserve(share("ada")); !errors.As(err, &full) || full.Limit != limits.WebSocketsEach {
		t.Errorf("a second one of a share = %v", err)
	}
	if err := s.Reserve(share("bob")); err != nil {
		t.Errorf("one of another share = %v", err)
	}
	if err := s.Reserve(share("cyd")); !errors.As(err, &full) || full.Limit != limits.WebSockets {
		t.Errorf("a third one = %v", err)
	}
	s.Release(share("bob"), nil) // its handshake has failed
	s.Release(share("ada"), ada)
	if err := s.Reserve(share("ada")); err != nil || s.Len() != 0 {
		t.Errorf("after all were given back: %v, %d open", err, s.Len())
	}
	s.Release(share("ada"), nil)
	s.Bound(0, 0)
	if s.Reserve(share("ada")) == nil {
		t.Error("a place beyond a limit that was lowered")
	}
}

// All are waited for, and cut when there is no more time.
func TestStopAndWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := New(2, 2), new(conn)
		if err := s.Reserve(share("ada")); err != nil {
			t.Fatal(err)
		}
		s.Add(c)
		s.Stop()
		if err := s.Reserve(share("ada")); !errors.Is(err, mcp.ErrShutdown) || s.Live().Err() == nil {
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
	s := New(2, 2)
	if own := s.Lend(""); own.Name != "" || own.Live != s.Live() {
		t.Error("the WebSocket of a client of this replica is lent")
	}
	a, b := s.Lend("replica"), s.Lend("replica")
	if a.Name == b.Name || len(a.Name) < 20 || s.Lent() != 2 {
		t.Errorf("two loans: %q and %q, %d kept", a.Name, b.Name, s.Lent())
	}
	if s.Part("") || s.Part("other") || a.Live.Err() != nil {
		t.Error("something ends by another name")
	}
	if !s.Part(a.Name) || a.Live.Err() == nil || b.Live.Err() != nil {
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
