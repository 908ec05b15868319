package link

import (
	"math"
	"testing"
	"time"
)

func TestPacer(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	var c pacer
	for i, tt := range []struct {
		asked  time.Duration
		useful bool
		want   time.Duration
	}{
		{0, true, minRetry},
		{50 * ms, true, 50 * ms},
		{0, false, minRetry}, // the first that brings nothing
		{50 * ms, false, 50 * ms},
		{0, false, 1 * s},
		{0, false, 2 * s},
		{0, false, 4 * s},
		{0, false, 5 * s},
		{0, false, 5 * s},
		{9 * s, false, 9 * s}, // what is asked for is longer
		{50 * ms, true, 50 * ms},
		{0, false, minRetry},
		{0, false, minRetry},
		{0, false, 1 * s},
		{math.MaxInt64, true, maxRetry}, // with jitter, too, this is no overflow
	} {
		if got := c.after(tt.asked, tt.useful); got != tt.want {
			t.Errorf("%d: after(%v, %v) = %v, want %v", i, tt.asked, tt.useful, got, tt.want)
		}
	}
}
