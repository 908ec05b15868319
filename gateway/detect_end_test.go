package gateway

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// What a probe has left ends while the server is served already. Close waits for it.
func TestDetectorGoesOnWhileTheProbeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const farewell = 3 * time.Second
		var given <-chan struct{}
		d, err := Detect(DetectOptions{
			Name: "s",
			Probe: func(context.Context) Finding {
				return Finding{Era: spec.Legacy, Why: "it said so", End: func() { time.Sleep(farewell) }}
			},
			Open: func(f Finding, gone <-chan struct{}) (Back, error) {
				given = gone
				return &eraBack{era: f.Era}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if _, err := d.Describe(t.Context(), &exchange.Request{}); err != nil || time.Since(begin) > 0 {
			t.Errorf("Describe() = %v after %v, want the verdict at once", err, time.Since(begin))
		}
		select {
		case <-given:
			t.Error("the back is told that the probe's process is gone")
		default:
		}
		if err := d.Close(t.Context()); err != nil || time.Since(begin) != farewell {
			t.Errorf("Close() = %v after %v, want it to wait the %v that the probe takes to end", err, time.Since(begin), farewell)
		}
		<-given
	})
}

// A probe that found nothing, or came too late, is ended all the same, and before the
// next one.
func TestDetectorEndsEveryProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open, most, probes, ended int // by run, and by the ends that it waits for
		d, err := Detect(DetectOptions{
			Name: "s",
			Probe: func(context.Context) Finding {
				probes++
				open++
				most = max(most, open)
				return Finding{Why: "silence", End: func() { time.Sleep(time.Minute); open--; ended++ }}
			},
			Open: func(Finding, <-chan struct{}) (Back, error) { return nil, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		d.Start()
		time.Sleep(10*time.Minute + time.Second)
		if err := d.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if most != 1 || probes < 5 || ended != probes {
			t.Errorf("%d probes, %d of them ended, at most %d at once; want all ended, one at a time", probes, ended, most)
		}
	})
}
