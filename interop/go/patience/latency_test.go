package patience

import (
	"context"
	"crypto/rand"
	"slices"
	"testing"
	"time"
)

// TestCancelLatency measures how long a cancellation takes from its client to the server's tool,
// in all four pairs of eras: 50 ms are wanted, which the log holds against. It fails only at what
// no busy machine explains.
func TestCancelLatency(t *testing.T) {
	const times, most = 50, 5 * time.Second
	w := newWorld(t)
	for _, of := range []string{legacyEra, modernEra} {
		for _, era := range []string{legacyEra, modernEra} {
			for _, over := range []string{"stdio", "http"} {
				server := era + "-" + over
				t.Run(of+" to "+server, func(t *testing.T) {
					t.Parallel()
					tr, err := client{of, "http"}.transport(t.Context(), w, server)
					cs := connect(t, of, tr, err)
					var took []time.Duration
					for range times {
						took = append(took, w.cancelOnce(t, func(ctx context.Context, nonce string) error {
							return wait(ctx, cs, nonce, time.Hour, false)
						}, server, rand.Text()))
					}
					slices.Sort(took)
					t.Logf("%d cancellations: median %v, most %v", times, took[times/2], took[times-1])
					if took[times-1] > most {
						t.Errorf("one took %v, want %v at most", took[times-1], most)
					}
				})
			}
		}
	}
}

// cancelOnce cancels a call once its server runs it, and returns when the server heard of it.
func (w *world) cancelOnce(t *testing.T, call func(context.Context, string) error, server, nonce string) time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- call(ctx, nonce) }() // ends with ctx
	w.heard(t, server, "call", nonce)
	began := time.Now()
	cancel()
	<-done
	w.heard(t, server, "cancelled", nonce)
	for _, e := range w.entries(t, server) {
		if e.What == "cancelled" && e.Nonce == nonce {
			return time.Unix(0, e.At).Sub(began)
		}
	}
	panic("it was heard")
}
