package subscribe

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// allowed returns allowances of a rate, and how often a limit was hit.
func allowed(rate int) (*Allowances, func() int) {
	c := &counter{}
	o := &upstream.Options{Subscribes: rate, Metrics: c}
	o.Fill(spec.Legacy)
	return NewAllowances(o), func() int { return c.limits }
}

// A counter counts how often a limit was hit.
type counter struct {
	mcp.NoMetrics
	limits int
}

func (c *counter) Limit(string, string) { c.limits++ }

func TestAllowanceBoundsTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		as, hits := allowed(10)
		a := as.Of(mcp.Share{Principal: "alice"})
		var atOnce, later, refused int
		for range 1000 {
			switch wait, ok := a.Subscribe(); {
			case !ok:
				refused++
			case wait > 0:
				later++
			default:
				atOnce++
			}
		}
		// 10 s of the rate were saved, 5 s can be waited for.
		if atOnce != 101 || later != 50 || refused != 849 {
			t.Errorf("of 1000 subscribes %d leave at once, %d later, %d never; want 101, 50, 849", atOnce, later, refused)
		}
		if hits() != later+refused {
			t.Errorf("%d hits counted, want %d", hits(), later+refused)
		}
		if wait, ok := as.Of(mcp.Share{Principal: "bob"}).Subscribe(); wait != 0 || !ok {
			t.Errorf("another share's Subscribe = %v, %v, want at once", wait, ok)
		}
		time.Sleep(6 * time.Second)
		if wait, ok := a.Subscribe(); wait != 0 || !ok {
			t.Errorf("Subscribe 6s later = %v, %v, want at once", wait, ok)
		}
		for range 101 {
			a.Unsubscribe()
		}
		if wait := a.Unsubscribe(); wait != 100*time.Millisecond {
			t.Errorf("the 102nd Unsubscribe waits %v, want 100ms", wait)
		}
	})
}

func TestAllowanceLingersLongerForWhoChurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		as, _ := allowed(10)
		a := as.Of(mcp.Share{Principal: "alice"})
		for _, tt := range []struct {
			subscribes int
			want       time.Duration
		}{{40, 2 * time.Second}, {20, 30 * time.Second}} {
			for range tt.subscribes {
				a.Subscribe()
			}
			if got := a.Linger(2 * time.Second); got != tt.want {
				t.Errorf("Linger after %d more subscribes = %v, want %v", tt.subscribes, got, tt.want)
			}
		}
		if got := a.Linger(time.Minute); got != time.Minute {
			t.Errorf("Linger(1m) = %v, want no less", got)
		}
	})
}

func TestAllowanceBoundsWhatIsOnItsWay(t *testing.T) {
	as, _ := allowed(10)
	a := as.Of(mcp.Share{Principal: "alice"})
	n := 0
	for ; a.Enter(); n++ {
	}
	if n != 256 {
		t.Errorf("%d requests at once, want 256", n)
	}
	a.Leave()
	if !a.Enter() || a.Enter() {
		t.Error("a place that was left is not had again, once")
	}
}

// Names of shares may be invented without end.
func TestAllowancesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		as, _ := allowed(10)
		seen := make(map[*Allowance]bool)
		for i := range 10_000 {
			a := as.Of(mcp.Share{Principal: mcp.Principal(fmt.Sprint(i))})
			a.Subscribe()
			seen[a] = true
		}
		if len(seen) > 4097 {
			t.Errorf("%d allowances in use, want 4097 at most", len(seen))
		}
		time.Sleep(time.Minute)
		if a := as.Of(mcp.Share{Principal: "new"}); seen[a] {
			t.Error("who comes when all others rest has no allowance of its own")
		}
	})
}
