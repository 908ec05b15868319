package patience

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// soon is how long something may take until it is heard of. The calls take an hour, and whatever else
// would end one, as a ping or keep-alive of TCP, does so after 30 s.
const soon = 20 * time.Second

// length returns how long calls take: longer than what used to end them, or PATIENCE.
func length(t *testing.T) time.Duration {
	d, err := time.ParseDuration(os.Getenv("PATIENCE"))
	if os.Getenv("PATIENCE") == "" {
		return 75 * time.Second
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestM2L14CallsThatTakeLong has calls of all pairs take long at the same time. Beside them
// are calls whose servers are killed, and calls that are cancelled.
func TestM2L14CallsThatTakeLong(t *testing.T) {
	w, d := newWorld(t), length(t)
	t.Run("all", func(t *testing.T) { // which ends when all have
		for _, c := range clients() {
			for _, era := range []string{legacyEra, modernEra} {
				w.lasting(t, c, era, d)
			}
			if c.over == "http" {
				w.ending(t, c)
			}
		}
		for server := range w.urls {
			w.lastingDirectly(t, server, d)
		}
		for _, server := range []string{"legacy-stdio", "modern-stdio"} {
			w.lastingDirectly(t, server, d)
		}
	})
}

// lasting is the calls of a client to the servers of an era.
func (w *world) lasting(t *testing.T, c client, era string, d time.Duration) {
	over := []string{"stdio", "block-" + c.String()}
	if c.over != "stdio" {
		over = append(over, "http", "ws")
		if era == legacyEra {
			over = append(over, "sse")
		}
	}
	for _, o := range over {
		server := era + "-" + o
		t.Run(c.String()+" to "+server, func(t *testing.T) {
			t.Parallel()
			tr, err := c.transport(t.Context(), w, server)
			cs := connect(t, c.era, tr, err)
			if err := wait(t.Context(), cs, t.Name(), d, false); err != nil {
				t.Error(err)
			}
		})
	}
	if c.over == "http" { // one pair of transports: it is 50 messages a second
		t.Run(c.String()+" to "+era+" with progress", func(t *testing.T) {
			t.Parallel()
			tr, err := c.transport(t.Context(), w, era+"-http")
			cs := connect(t, c.era, tr, err)
			if err := wait(t.Context(), cs, t.Name(), d, true); err != nil {
				t.Error(err)
			}
		})
	}
}

// lastingDirectly is a call with nothing in between.
func (w *world) lastingDirectly(t *testing.T, server string, d time.Duration) {
	if strings.Contains(server, "-reset-") {
		return
	}
	t.Run("directly to "+server, func(t *testing.T) {
		t.Parallel()
		era, _, _ := strings.Cut(server, "-")
		tr, err := w.direct(t.Context(), server)
		cs := connect(t, era, tr, err)
		if err := wait(t.Context(), cs, t.Name(), d, false); err != nil {
			t.Error(err)
		}
	})
}

// ending is the calls of a client that don't come to their end.
func (w *world) ending(t *testing.T, c client) {
	for _, era := range []string{legacyEra, modernEra} {
		for _, over := range []string{"stdio", "http", "ws"} {
			t.Run(c.String()+" cancels at "+era+"-"+over, func(t *testing.T) {
				t.Parallel()
				w.cancels(t, c, era+"-"+over)
			})
		}
	}
	t.Run(c.String()+" loses its servers", func(t *testing.T) {
		t.Parallel()
		for _, era := range []string{legacyEra, modernEra} {
			w.loses(t, c, era+"-killed-"+c.era)
			w.loses(t, c, era+"-reset-"+c.era)
		}
	})
}

// begin begins a call that takes an hour, and returns when the server runs it.
func (w *world) begin(ctx context.Context, t *testing.T, c client, server string) <-chan error {
	tr, err := c.transport(t.Context(), w, server)
	cs := connect(t, c.era, tr, err)
	done := make(chan error, 1)
	go func() { done <- wait(ctx, cs, t.Name()+server, time.Hour, false) }() // ends with ctx or the server
	w.heard(t, server, "call", t.Name()+server)
	return done
}

// heard waits until a server has written something down.
func (w *world) heard(t *testing.T, server, what, nonce string) {
	t.Helper()
	rig.Until(t, time.Minute, server+" hears of it: "+what, func() string {
		for _, e := range w.entries(t, server) {
			if e.What == what && e.Nonce == nonce {
				return ""
			}
		}
		return "it has not"
	})
}

func (w *world) cancels(t *testing.T, c client, server string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := w.begin(ctx, t, c, server)
	begun := time.Now()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v, want its cancellation", err)
	}
	w.heard(t, server, "cancelled", t.Name()+server)
	for _, e := range w.entries(t, server) {
		if took := time.Unix(0, e.At).Sub(begun); e.What == "cancelled" && e.Nonce == t.Name()+server && took > soon {
			t.Errorf("the server heard of it after %v", took)
		}
	}
}

// loses kills all processes of a server while one of them runs a call.
func (w *world) loses(t *testing.T, c client, server string) {
	done := w.begin(t.Context(), t, c, server)
	began := time.Now()
	for _, e := range w.entries(t, server) {
		if e.What == "start" {
			_ = syscall.Kill(e.PID, syscall.SIGKILL) // it may be gone
		}
	}
	select {
	case err := <-done:
		if err == nil || time.Since(began) > soon {
			t.Errorf("%s: the client heard %v after %v, want an error within %v", server, err, time.Since(began), soon)
		}
	case <-time.After(soon):
		t.Errorf("%s: the client has heard nothing for %v", server, soon)
	}
}
