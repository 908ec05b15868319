package engines

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// logger shows errors; ENGINES_LOG=debug shows all.
func logger() *slog.Logger {
	level := slog.LevelError
	if os.Getenv("ENGINES_LOG") != "" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

func parse(t *testing.T, text string) *replicas.URL {
	t.Helper()
	u, err := replicas.ParseURL(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// patience bounds what a test waits for that is not what it measures, on a busy machine.
const patience = 5 * time.Minute

// eventually waits for a condition.
func eventually(t *testing.T, d time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(d); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, d)
		}
	}
}

// closing closes an engine at the test's end.
func closing(t *testing.T, e replicas.Engine) replicas.Engine {
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return e
}

// freePort returns the port of a [bridgetest.FreeAddr], below those that the tests of interop/go give to
// servers: a server may stop, and listen on it again.
func freePort(t *testing.T) int {
	t.Helper()
	return int(netip.MustParseAddrPort(bridgetest.FreeAddr(t)).Port())
}
