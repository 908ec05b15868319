package engines

import (
	"context"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/engineurl"
)

// directly runs a test as it is.
func directly(t *testing.T, f func(*testing.T)) { f(t) }

// logger shows errors; ENGINES_LOG=debug shows all.
func logger() *slog.Logger {
	level := slog.LevelError
	if os.Getenv("ENGINES_LOG") != "" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

func parse(t *testing.T, text string) *engineurl.URL {
	t.Helper()
	u, err := engineurl.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

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

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
