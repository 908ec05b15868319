package node

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// Replicas that accept each other are ready. One that all others refuse, or that refuses them, is
// not, and says why; those others stay ready.
func TestStanding(t *testing.T) {
	t.Parallel()
	const key, other = "0123456789abcdef", "fedcba9876543210"
	server, client := material(t, "replicas.example")
	for _, tt := range []struct {
		name                 string
		keys                 []string
		serverTLS, clientTLS *tls.Config
		why                  string // of the third
	}{
		{"as the others", []string{key}, nil, nil, ""},
		{"with keys in steps", []string{key, other}, nil, nil, ""},
		{"with another key", []string{other}, nil, nil, "compare"},
		{"with TLS", []string{key}, server, client, "TLS"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			addrs := freeAddrs(t, 3)
			peers := "dns://" + strings.Join(addrs, ",")
			var all []*Node
			for i, addr := range addrs {
				o := Options{Peers: peers, Keys: []string{key}, Listen: addr}
				if i == 2 {
					o.Keys, o.ServerTLS, o.ClientTLS = tt.keys, tt.serverTLS, tt.clientTLS
				}
				all = append(all, joinAs(t, o))
				if i < 2 {
					bridgetest.Eventually(t, "the first ones are ready", func() bool { return all[i].Standing().Ready })
				}
			}
			bridgetest.Eventually(t, "it is judged", func() bool {
				s := all[2].Standing()
				return s.Ready == (tt.why == "") && strings.Contains(strings.Join(s.Reasons, "\n"), tt.why)
			})
			for _, n := range all[:2] {
				n.judge(t.Context(), 0)
				if s := n.Standing(); !s.Ready {
					t.Errorf("one of the others stands so: %+v", s)
				}
			}
			if s := all[2].Standing(); tt.why == "" && len(s.Reasons) > 0 {
				t.Errorf("it is degraded: %q", s.Reasons)
			}
		})
	}
}

// A clock that is off, but by less than has requests refused, is told of and delays nothing; one
// that is off by more has to be mended first.
func TestStandingWithAnotherClock(t *testing.T) {
	t.Parallel()
	for ahead, wantReady := range map[time.Duration]bool{-5 * time.Second: true, 10 * time.Second: true, -10 * time.Second: true, 20 * time.Second: false, -20 * time.Second: false} {
		t.Run(ahead.String(), func(t *testing.T) {
			t.Parallel()
			addrs := freeAddrs(t, 2)
			o := Options{Peers: "dns://" + strings.Join(addrs, ","), Keys: []string{"0123456789abcdef"}}
			o.Listen = addrs[0]
			first := joinAhead(t, o, ahead)
			bridgetest.Eventually(t, "the first one is ready", func() bool { return first.Standing().Ready })
			o.Listen = addrs[1]
			n := joinAs(t, o)
			n.judge(t.Context(), 0)
			s := n.Standing()
			told := strings.Contains(strings.Join(s.Reasons, "\n"), "its clock is ")
			if s.Ready != wantReady || ahead.Abs() > 2*replicas.ClockTolerance-time.Second && !told {
				t.Errorf("beside a clock that is %v ahead it stands so: %+v, want ready %v, and told", ahead, s, wantReady)
			}
		})
	}
}

// An engine that is out of reach is waited for, and then done without; one that is there again
// changes nothing.
func TestStandingWithoutEngine(t *testing.T) {
	t.Parallel()
	broker := replicastest.New()
	broker.SetAway(true)
	n := joinAs(t, Options{Engine: broker, Keys: []string{"0123456789abcdef"}, Listen: "127.0.0.1:0"})
	if s := n.Standing(); s.Ready || !strings.Contains(strings.Join(s.Reasons, "\n"), "the engine: it can't be reached") {
		t.Errorf("at first it stands so: %+v", s)
	}
	n.judge(t.Context(), aloneAfter)
	if s := n.Standing(); !s.Ready || len(s.Reasons) != 1 {
		t.Errorf("after %v it stands so: %+v, want ready and degraded", aloneAfter, s)
	}
	n.judge(t.Context(), 0)
	if s := n.Standing(); !s.Ready {
		t.Errorf("it is not ready any more: %+v", s)
	}
	broker.SetAway(false)
	bridgetest.Eventually(t, "the engine is heard", func() bool { return !n.engine.View().Heard.IsZero() })
	n.judge(t.Context(), 0)
	if s := n.Standing(); !s.Ready || len(s.Reasons) > 0 {
		t.Errorf("with its engine it stands so: %+v", s)
	}
}
