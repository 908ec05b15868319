package engines

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

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

// freePort returns a port that the system gives to no connection by itself, nor the tests of
// interop/go to a server, and that no other caller is given until the tests end: a server may
// stop, and listen on it again. The UDP port of the same number is kept as a sign of that.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		addr := fmt.Sprint("127.0.0.1:", 10_000+rand.IntN(10_000))
		sign, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			sign.Close()
			continue
		}
		defer l.Close()
		t.Cleanup(func() { sign.Close() })
		return l.Addr().(*net.TCPAddr).Port
	}
	t.Fatal("no port is free")
	return 0
}
