package node

import (
	"crypto/tls"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
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
