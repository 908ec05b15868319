package detect

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

var unsure = Finding{Era: spec.Legacy, Why: "it answered initialize, and nothing else", Unsure: true}

// probedAs returns a Detector of a server that is found to be so, in turn and then always as in the
// end, and when it was probed.
func probedAs(t *testing.T, findings ...Finding) (d *Detector, probes *[]time.Duration) {
	t.Helper()
	probes = new([]time.Duration)
	begun := time.Now()
	d, err := New(Options{
		Name: "s",
		Probe: func(context.Context) Finding {
			f := findings[min(len(*probes), len(findings)-1)]
			*probes = append(*probes, time.Since(begun).Truncate(time.Second))
			return f
		},
		Open: func(f Finding) (mcp.Back, error) { return &eraBack{era: f.Era}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) }) // which fails for no reason of the test's
	return d, probes
}

// A legacy verdict that is unsure is checked soon, less and less often. A server of both eras that was
// slow is served as what it is then, and status says what it was last found by.
func TestU02UnsureVerdictIsCheckedSoon(t *testing.T) {
	modern := Finding{Era: spec.Modern, Why: "it answered"}
	for _, tt := range []struct {
		name     string
		findings []Finding
		last     time.Duration // of the first hour, at most a tenth later
		probes   int
	}{
		{"it was slow once", []Finding{unsure, modern}, 10 * time.Second, 2},
		{"it was slow for a minute", []Finding{unsure, unsure, unsure, unsure, modern}, 150 * time.Second, 5},
		{"it is silent always", []Finding{unsure}, 2550 * time.Second, 9},
		{"it is away meanwhile", []Finding{unsure, {Why: "away"}, unsure, modern}, 40 * time.Second, 4},
		{"it refuses in the end", []Finding{unsure, {Era: spec.Legacy, Why: "it refused"}}, 10 * time.Second, 2},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			d, probes := probedAs(t, tt.findings...)
			d.Start()
			time.Sleep(time.Hour)
			synctest.Wait()
			last := (*probes)[len(*probes)-1]
			if len(*probes) != tt.probes || last < tt.last || last > tt.last*11/10 {
				t.Errorf("probes at %v, want %d, and the last at %v or a tenth later", *probes, tt.probes, tt.last)
			}
			var told status.Upstream
			d.Tell(&told)
			if want := tt.findings[len(tt.findings)-1]; d.Era() != want.Era || told.EraReason != want.Why {
				t.Errorf("the verdict is %v since %q, want %v since %q", d.Era(), told.EraReason, want.Era, want.Why)
			}
		})
	}
}

// What clients have open at a modern server does not end because it was slow once when it was in doubt.
func TestU02ModernVerdictFallsByTwoUnsureOnes(t *testing.T) {
	modern := Finding{Era: spec.Modern, Why: "it answered"}
	for _, tt := range []struct {
		name     string
		findings []Finding
		want     spec.Era
		probes   int // within a minute of the doubt
	}{
		{"slow once", []Finding{modern, unsure, modern}, spec.Modern, 3},
		{"away meanwhile", []Finding{modern, unsure, {Why: "away"}, modern}, spec.Modern, 4},
		{"slow twice", []Finding{modern, unsure, unsure, {Era: spec.Legacy, Why: "it refused"}}, spec.Legacy, 4},
		{"it refuses", []Finding{modern, {Era: spec.Legacy, Why: "it refused"}}, spec.Legacy, 2},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			d, probes := probedAs(t, tt.findings...)
			var replaced int
			d.WhenReplaced(func(error) { replaced++ })
			d.Start()
			time.Sleep(time.Minute)
			d.Doubt("a test says so")
			time.Sleep(time.Minute)
			synctest.Wait()
			if n := map[spec.Era]int{spec.Legacy: 1}[tt.want]; d.Era() != tt.want || replaced != n || len(*probes) != tt.probes {
				t.Errorf("the verdict is %v, replaced %d times, after probes at %v, want %v, %d and %d", d.Era(), replaced, *probes, tt.want, n, tt.probes)
			}
		})
	}
}
