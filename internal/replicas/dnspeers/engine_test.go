package dnspeers

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// street is a name, and who lives at its addresses.
type street struct {
	mu    sync.Mutex // guards the fields below
	addrs []string
	err   error
	at    map[string]*Engine
}

func (s *street) lookup(context.Context, string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addrs, s.err
}

func (s *street) hello(_ context.Context, addr string) (replicas.Replica, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.at[addr]; e != nil {
		r := e.View().Self
		r.Addr = addr
		return r, nil
	}
	return replicas.Replica{}, errors.New("connection refused")
}

func (s *street) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// join has a replica at an address; the name does not have it yet.
func (s *street) join(t *testing.T, instance, host string) *Engine {
	t.Helper()
	e := New(Options{Names: []string{"headless:2528"}, Hello: s.hello, Lookup: s.lookup})
	addr := net.JoinHostPort(host, "2528")
	s.set(func() { s.at[addr] = e })
	if err := e.Join(t.Context(), replicas.Replica{Instance: instance, Addr: addr, Version: "test"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close(context.Background()) })
	return e
}

func TestMembersOfAName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &street{addrs: []string{"10.0.0.1", "10.0.0.2", "10.0.0.9"}, at: make(map[string]*Engine)} // at the last one is nobody
		a, b := s.join(t, "aaaa", "10.0.0.1"), s.join(t, "bbbb", "10.0.0.2")
		time.Sleep(1100 * time.Millisecond)
		for _, e := range []*Engine{a, b} {
			if v := e.View(); len(v.Members) != 2 || !v.Fresh(time.Now()) {
				t.Fatalf("the view is %+v, want two members, fresh", v)
			}
		}
		self := b.View().Self
		self.Draining = true
		b.Update(self)
		time.Sleep(1100 * time.Millisecond)
		if r, ok := a.View().Member("bbbb"); !ok || !r.Draining {
			t.Errorf("Member = %+v, %v; want it draining", r, ok)
		}
		changed := a.View().Changed
		s.set(func() { delete(s.at, "10.0.0.2:2528") })
		time.Sleep(replicas.MemberTTL + replicas.Heartbeat)
		if n := len(a.View().Members); n != 1 {
			t.Errorf("%d members, want 1: the other does not answer", n)
		}
		select {
		case <-changed:
		default:
			t.Error("Changed is open")
		}
	})
}

func TestTheNameIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &street{addrs: []string{"10.0.0.1", "10.0.0.2"}, at: make(map[string]*Engine)}
		a, _ := s.join(t, "aaaa", "10.0.0.1"), s.join(t, "bbbb", "10.0.0.2")
		time.Sleep(1100 * time.Millisecond)
		s.set(func() { s.addrs, s.err = nil, &net.DNSError{Err: "server misbehaving", IsTemporary: true} })
		time.Sleep(10 * time.Second)
		if v := a.View(); v.Away.IsZero() || v.Fresh(time.Now()) || len(v.Members) != 2 {
			t.Errorf("the view is %+v: want it away, with those who answer still", v)
		}
		s.set(func() { s.err = &net.DNSError{Err: "no such host", IsNotFound: true} })
		time.Sleep(2 * time.Second)
		if v := a.View(); !v.Away.IsZero() || len(v.Members) != 2 {
			t.Errorf("the view is %+v: want it there; a name without addresses says so", v)
		}
	})
}

// A replica is found once a name has its address, however long that takes; then the others know
// it within a heartbeat.
func TestFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &street{err: &net.DNSError{Err: "no answer", IsTimeout: true}, at: make(map[string]*Engine)}
		a, b := s.join(t, "aaaa", "10.0.0.1"), s.join(t, "bbbb", "10.0.0.2")
		if a.AwaitFound(t.Context(), 10*time.Second) {
			t.Fatal("found while the name can't be looked up")
		}
		s.set(func() { s.addrs, s.err = []string{"10.0.0.2"}, nil })
		time.Sleep(1100 * time.Millisecond)
		if a.AwaitFound(t.Context(), 0) || !b.AwaitFound(t.Context(), time.Nanosecond) {
			t.Error("want b found alone, whose address the name has")
		}
		begun := time.Now()
		time.AfterFunc(4500*time.Millisecond, func() { s.set(func() { s.addrs = append(s.addrs, "10.0.0.1") }) })
		if !a.AwaitFound(t.Context(), 10*time.Second) || time.Since(begun) < 4500*time.Millisecond || time.Since(begun) > 5500*time.Millisecond {
			t.Errorf("found after %v, want it within a second of 4.5 s, when the name has the address", time.Since(begun))
		}
		time.Sleep(1100 * time.Millisecond)
		if n := len(b.View().Members); n != 2 {
			t.Errorf("b knows %d members, want both", n)
		}
	})
}

func TestNoClaims(t *testing.T) {
	e := New(Options{Names: []string{"headless:2528"}})
	if _, err := e.Claim(t.Context(), "profile"); !errors.Is(err, replicas.ErrNoClaims) {
		t.Errorf("Claim = %v, want ErrNoClaims", err)
	}
	if _, ok := e.Holder("profile"); ok {
		t.Error("somebody holds a name")
	}
	if _, err := e.Take(t.Context(), "record"); !errors.Is(err, replicas.ErrNoClaims) {
		t.Errorf("Take = %v, want ErrNoClaims", err)
	}
}

func TestNames(t *testing.T) {
	if got, err := Names("dns://a:1, b:2"); err != nil || len(got) != 2 || got[1] != "b:2" {
		t.Errorf("Names = %q, %v", got, err)
	}
	for _, bad := range []string{"a:1", "dns://a", "dns://a:1,b"} {
		if got, err := Names(bad); err == nil {
			t.Errorf("Names(%q) = %q, want an error", bad, got)
		}
	}
}
