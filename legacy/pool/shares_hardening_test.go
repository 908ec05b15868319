package pool

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// One client, or one address of anonymous ones, would have all the processes of a
// command, or end those of others by wanting more (CWE-770).
func TestCommandSessionsOfAShareAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hits := &backtest.Metrics{}
		r, peers := pipeRig(t, Options{Metrics: hits, MaxSessions: 3, MaxSessionsEach: 2})
		go runNext(peers, 3)
		open := func(scope, addr string) (func(), error) {
			share := mcp.NewShare(mcp.Anonymous, netip.MustParseAddr(addr))
			_, release, err := r.Get(t.Context(), mcp.Profile{Scope: scope, Share: share, Principal: mcp.Anonymous}, false)
			settle()
			return release, err
		}
		for _, scope := range []string{"a", "b"} {
			release, err := open(scope, "192.0.2.66")
			if err != nil {
				t.Fatal(err)
			}
			defer release()
		}
		if _, err := open("c", "192.0.2.66"); err == nil || !strings.Contains(err.Error(), "limits.command_sessions_each") {
			t.Errorf("mallory's third = %v, want an error that names limits.command_sessions_each", err)
		}
		release, err := open("d", "192.0.2.1")
		if err != nil {
			t.Fatalf("ada's first = %v, want a session", err)
		}
		release() // hers is idle
		if _, err := open("e", "192.0.2.2"); err == nil || !strings.Contains(err.Error(), "limits.command_sessions (") {
			t.Errorf("bob's first, of a fourth = %v, want an error that names limits.command_sessions", err)
		}
		if release, err = open("d", "192.0.2.1"); err != nil {
			t.Errorf("ada's again = %v, want her session", err)
		}
		release()
		for _, limit := range []string{"command_sessions", "command_sessions_each"} {
			if hits.Count("limit "+limit) != 1 {
				t.Errorf("%s was counted %d times, want once", limit, hits.Count("limit "+limit))
			}
		}
	})
}

// Before a command is started again, for servers that allow one process at a time, its
// idle sessions end: those of who wants it, and nobody else's.
func TestStartEndsNobodyElsesSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, peers := pipeRig(t, Options{MaxSessions: 3, MaxSessionsEach: 2})
		go runNext(peers, 3)
		ada, bob := mcp.Share{Principal: "ada"}, mcp.Share{Principal: "bob"}
		for scope, share := range map[string]mcp.Share{"a": ada, "b": bob, "probe": {}} {
			_, release, err := r.Get(t.Context(), mcp.Profile{Scope: scope, Share: share}, false)
			if err != nil {
				t.Fatal(err)
			}
			settle()
			release()
		}
		if err := r.EndLeft(t.Context(), Newcomer{Share: bob}, false); err != nil {
			t.Fatal(err)
		}
		if a, b, own := len(r.Sessions("a")), len(r.Sessions("b")), len(r.Sessions("probe")); a != 1 || b != 0 || own != 0 {
			t.Errorf("ada has %d sessions, bob %d, the gateway %d; want 1, 0 and 0", a, b, own)
		}
	})
}

// Who needs a process waits for the ends of its own sessions, and of those of others only if the
// command locks: clients that come and go would delay all others (CWE-400).
func TestM2L02NobodyElsesEndsAreAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{MaxSessionsEach: 2}, nil)
		r.Pool.dial = func(context.Context, mcp.Profile) (Session, error) {
			return &scriptedSession{done: make(chan struct{})}, nil
		}
		ada, bob := mcp.Share{Principal: "ada"}, mcp.Share{Principal: "bob"}
		for _, tt := range []struct {
			who   mcp.Share
			locks bool
			took  time.Duration
		}{{ada, false, 400 * time.Millisecond}, {bob, false, 0}, {bob, true, 400 * time.Millisecond}} {
			_, leave, err := r.Get(t.Context(), mcp.Profile{Scope: ownScope(), Share: ada}, true)
			if err != nil {
				t.Fatal(err)
			}
			leave()
			begun := time.Now()
			if err := r.EndLeft(t.Context(), Newcomer{Share: tt.who}, tt.locks); err != nil || time.Since(begun) != tt.took {
				t.Errorf("EndLeft for %s, locks %v = %v after %v, want %v", tt.who.Principal, tt.locks, err, time.Since(begun), tt.took)
			}
			time.Sleep(time.Second)
		}
	})
}
