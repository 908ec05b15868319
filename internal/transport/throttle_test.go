package transport

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
		want time.Duration // for 16 MiB
	}{{"idle", false, 12 * time.Second}, {"busy", true, 375 * time.Millisecond}} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			r := Throttle{Busy: func() bool { return tt.busy }}
			begun := time.Now()
			for range 16 << 10 {
				r.Message(1<<10 - throttleMessage)
			}
			if took := time.Since(begun); took < tt.want-50*time.Millisecond || took > tt.want+50*time.Millisecond {
				t.Errorf("16 MiB took %v, want %v", took, tt.want)
			}
		})
	}
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
