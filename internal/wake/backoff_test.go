package wake

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAfterDoublesUpToMax(t *testing.T) {
	b := Backoff{Min: 100 * time.Millisecond, Max: time.Second}
	for failures, want := range []time.Duration{100, 200, 400, 800, 1000, 1000} {
		if got := b.After(failures); got != want*time.Millisecond {
			t.Errorf("after %d failures: %v, want %v", failures, got, want*time.Millisecond)
		}
	}
	if got := b.After(1_000_000); got != b.Max {
		t.Errorf("after very many failures: %v, want %v", got, b.Max)
	}
}

func TestNextFollowsAfter(t *testing.T) {
	b := Backoff{Min: 30 * time.Millisecond, Max: time.Second}
	pause := time.Duration(0)
	for failures := range 10 {
		pause = b.Next(pause)
		if want := b.After(failures); pause != want {
			t.Errorf("pause %d is %v, After says %v", failures, pause, want)
		}
	}
}

func TestJitterAddsAtMostAQuarter(t *testing.T) {
	const pause = time.Second
	least, most := 2*pause, time.Duration(0)
	for range 1000 {
		d := Jitter(pause)
		least, most = min(least, d), max(most, d)
	}
	if least < pause || most > pause+pause/4 {
		t.Errorf("pauses of %v to %v, want %v to %v", least, most, pause, pause+pause/4)
	}
	if most-least < pause/8 {
		t.Errorf("1000 pauses lie within %v of each other", most-least)
	}
	if d := Jitter(0); d < 0 || d > 1 {
		t.Errorf("no pause became %v", d)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("the client left")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(gone) })
		begin := time.Now()
		if err := Wait(ctx, time.Minute); err != gone || time.Since(begin) != time.Second {
			t.Errorf("returned %v after %v, want %v after 1s", err, time.Since(begin), gone)
		}
		begin = time.Now()
		if err := Wait(t.Context(), time.Minute); err != nil || time.Since(begin) != time.Minute {
			t.Errorf("returned %v after %v, want no error after 1m0s", err, time.Since(begin))
		}
	})
}
