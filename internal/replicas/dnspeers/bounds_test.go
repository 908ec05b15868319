package dnspeers

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// silentFrom has addresses that swallow what is sent to them, as those of machines that are gone.
func silentFrom(hello func(context.Context, string) (replicas.Replica, error), lives func(addr string) bool) func(context.Context, string) (replicas.Replica, error) {
	return func(ctx context.Context, addr string) (replicas.Replica, error) {
		if lives(addr) && ctx.Err() == nil {
			return hello(ctx, addr)
		}
		select {
		case <-ctx.Done():
		case <-time.After(750 * time.Millisecond):
		}
		return replicas.Replica{}, context.DeadlineExceeded
	}
}

// Addresses that do not answer do not keep replicas from being asked that live, or have just
// been started.
func TestManyDeadAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &street{at: make(map[string]*Engine)}
		for i := range 200 {
			s.addrs = append(s.addrs, fmt.Sprintf("10.0.0.%d", i))
		}
		s.addrs = append(s.addrs, "10.9.0.1", "10.9.0.2") // asked last, if asked in order
		lives := func(addr string) bool { return addr == "10.9.0.1:2528" || addr == "10.9.0.2:2528" }
		var log bridgetest.Log
		join := func(instance, host string) *Engine {
			e := New(Options{Names: []string{"headless:2528"}, Hello: silentFrom(s.hello, lives), Lookup: s.lookup, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			addr := net.JoinHostPort(host, "2528")
			s.set(func() { s.at[addr] = e })
			if err := e.Join(t.Context(), replicas.Replica{Instance: instance, Addr: addr}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { e.Close(context.Background()) })
			return e
		}
		a, b := join("aaaa", "10.9.0.1"), join("bbbb", "10.9.0.2")
		time.Sleep(time.Minute)
		for range 30 {
			time.Sleep(time.Second)
			if na, nb := len(a.View().Members), len(b.View().Members); na != 2 || nb != 2 {
				t.Fatalf("they know %d and %d members, want both 2:\n%s", na, nb, log.String())
			}
		}
	})
}

// What replicas answer counts in the round as well in which their name is back.
func TestNameIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &street{addrs: []string{"10.0.0.1", "10.0.0.2"}, at: make(map[string]*Engine)}
		var away atomic.Bool
		lookup := func(ctx context.Context, host string) ([]string, error) {
			if away.Load() {
				return nil, &net.DNSError{Err: "server misbehaving", IsTemporary: true}
			}
			return s.lookup(ctx, host)
		}
		away.Store(true)
		e := New(Options{Names: []string{"headless:2528"}, Hello: s.hello, Lookup: lookup})
		s.set(func() { s.at["10.0.0.1:2528"] = e })
		s.join(t, "bbbb", "10.0.0.2")
		if err := e.Join(t.Context(), replicas.Replica{Instance: "aaaa", Addr: "10.0.0.1:2528"}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close(context.Background()) })
		time.Sleep(10 * time.Second)
		changed := e.View().Changed
		away.Store(false)
		<-changed
		if v := e.View(); len(v.Members) != 2 || !v.Away.IsZero() {
			t.Errorf("the view is %+v, want both members with the name", v)
		}
	})
}
