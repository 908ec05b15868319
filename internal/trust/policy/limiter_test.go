package policy

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

func share(name string) mcp.Share { return mcp.Share{Principal: mcp.Principal(name)} }

// exceeded returns the bound that err names; empty for none.
func exceeded(err error) string {
	var e *ExceededError
	if errors.As(err, &e) {
		return e.Key
	}
	return ""
}

func TestLimiterRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(Rates{Principal: Rate{PerSecond: 2, Burst: 2}, Tools: map[string]Rate{"slow": {PerSecond: 0.5}}})
		take := func(who, tool string) error {
			ticket, err := l.Take(share(who), tool)
			ticket.Give()
			return err
		}
		for i, want := range []string{"", "", "rate.principal"} {
			if got := exceeded(take("ada", "")); got != want {
				t.Errorf("request %d: %q, want %q", i, got, want)
			}
		}
		if err := take("bob", ""); err != nil {
			t.Errorf("another principal: %v", err)
		}
		var e *ExceededError
		if errors.As(take("ada", ""), &e); e.Wait != 500*time.Millisecond {
			t.Errorf("wait = %v, want 500ms", e.Wait)
		}
		time.Sleep(e.Wait)
		if err := take("ada", "slow"); err != nil {
			t.Errorf("after the wait: %v", err)
		}
		if got := exceeded(take("eve", "slow")); got != "rate.tools" {
			t.Errorf("second call of the tool: %q, want rate.tools", got)
		}
	})
}

func TestLimiterConcurrency(t *testing.T) {
	l := NewLimiter(Rates{Principal: Rate{Concurrent: 2}, Server: Rate{Concurrent: 3}})
	first, err := l.Take(share("ada"), "")
	if err != nil {
		t.Fatal(err)
	}
	second, _ := l.Take(share("ada"), "")
	if _, err := l.Take(share("ada"), ""); exceeded(err) != "rate.principal" {
		t.Errorf("third of one principal: %v", err)
	}
	third, err := l.Take(share("bob"), "")
	if err != nil {
		t.Errorf("third of all: %v", err)
	}
	if _, err := l.Take(share("bob"), ""); exceeded(err) != "rate.server" {
		t.Errorf("fourth of all: %v", err)
	}
	for _, ticket := range []Ticket{first, second, third} {
		ticket.Give()
	}
	if n := l.server.inFlight.Load(); n != 0 {
		t.Errorf("%d in flight at the end", n)
	}
}

// Whoever makes up principals, or has many addresses, can't make the limiter grow, nor
// push out one that has a request in flight.
func TestLimiterIsBounded(t *testing.T) {
	l := NewLimiter(Rates{Principal: Rate{Concurrent: 1}})
	if _, err := l.Take(share("busy"), ""); err != nil {
		t.Fatal(err)
	}
	for i := range maxShares + 100 {
		ticket, err := l.Take(share(fmt.Sprint(i)), "")
		if err != nil {
			t.Fatal(err)
		}
		ticket.Give()
	}
	if n := l.shares.Len(); n > maxShares {
		t.Errorf("%d principals are remembered, want %d at most", n, maxShares)
	}
	if _, err := l.Take(share("busy"), ""); exceeded(err) != "rate.principal" {
		t.Errorf("the one with a request in flight was forgotten: %v", err)
	}
}
