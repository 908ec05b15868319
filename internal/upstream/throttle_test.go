package upstream

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

func TestRation(t *testing.T) {
	for _, tt := range []struct {
		name string
		busy bool
		mib  int
		want time.Duration
	}{{"idle", false, 16, 12 * time.Second}, {"busy", true, 32, 0}, {"busy for long", true, 64, 500 * time.Millisecond}} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			r := Throttle{Busy: func() bool { return tt.busy }}
			if took := flood(&r, tt.mib); took < tt.want-50*time.Millisecond || took > tt.want+50*time.Millisecond {
				t.Errorf("%d MiB took %v, want %v", tt.mib, took, tt.want)
			}
		})
	}
}

// flood returns how long the reading of unneeded messages takes.
func flood(r *Throttle, mib int) time.Duration {
	begun := time.Now()
	for range mib << 10 {
		r.Message(1<<10 - throttleMessage)
	}
	return time.Since(begun)
}

// What a call has used up is not to be had again from the next one at once, and is none of what may
// come between the two.
func TestRationOfCallsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := true
		r := Throttle{Busy: func() bool { return busy }}
		for i, want := range []time.Duration{0, 0, 2500 * time.Millisecond} {
			if took := flood(&r, []int{32, 4, 160}[i]); took < want-50*time.Millisecond || took > want+50*time.Millisecond {
				t.Errorf("flood %d took %v, want %v", i, took, want)
			}
			busy = !busy
		}
	})
}

func TestRationEndsWithItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		r := Throttle{Busy: func() bool { return false }, Done: done}
		close(done)
		begun := time.Now()
		r.Bytes(1 << 30)
		if took := time.Since(begun); took != 0 {
			t.Errorf("a pause outlives its reader by %v", took)
		}
	})
}
