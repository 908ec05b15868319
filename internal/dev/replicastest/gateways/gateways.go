// Package gateways has gateways that join an engine, as programs that embed one do. It is apart
// from replicastest, since the gateway is made of what is tested with that.
package gateways

import (
	"context"
	"testing"

	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// Join returns a gateway that has joined an engine, which may be away. The test's end shuts it
// down.
func Join(t *testing.T, e gateway.Engine) *gateway.Gateway {
	t.Helper()
	g, err := gateway.New(gateway.Options{Replicas: &gateway.Replicas{Engine: e, Keys: []string{"0123456789abcdef"}, Listen: "127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	if err := g.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g
}

// Meet has two gateways meet at an engine, and none of another prefix.
func Meet(t *testing.T, engine func(prefix string) gateway.Engine) {
	t.Helper()
	a, b, other := Join(t, engine("")), Join(t, engine("mcpbridge")), Join(t, engine("other"))
	bridgetest.Eventually(t, "the engine is there, and two members know each other", func() bool {
		return There(a) && There(b) && There(other) && members(a) == 2 && members(b) == 2
	})
	if n := members(other); n != 1 {
		t.Errorf("a gateway with another prefix knows %d members, want itself alone", n)
	}
}

// There reports whether a gateway reaches its engine.
func There(g *gateway.Gateway) bool { return g.Snapshot().Replicas.Away.IsZero() }

func members(g *gateway.Gateway) int { return len(g.Snapshot().Replicas.Members) }
