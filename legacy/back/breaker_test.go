package back

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// A child that dies as it starts is started now and then, however many ask for it,
// and they hear its last lines, but no secrets.
func TestM2L02ACrashingChildIsNotStartedInALoop(t *testing.T) {
	dir := t.TempDir()
	marks := filepath.Join(dir, "starts")
	script := `echo x >> "$0"; read line; echo "no licence, API_TOKEN=hunter2hunter2" >&2; exit 3`
	b := newTestBack(t, Options{Dial: func(context.Context) (transport.Conn, error) {
		return transport.StartCommand(transport.CommandOptions{Argv: []string{"/bin/sh", "-c", script, marks}, Name: "crashing"})
	}})
	begin := time.Now()
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			for time.Since(begin) < 2*time.Second {
				asked := time.Now()
				_, err := b.Serve(t.Context(), ask("tools/call", `{"name":"t"}`), &backtest.Client{Answer: backtest.NeverAnswers})
				if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no licence") {
					t.Errorf("Serve = %v, want how it ended", err)
					return
				}
				if strings.Contains(err.Error(), "hunter2") {
					t.Errorf("Serve = %v, want no secret", err)
				}
				// The machine may be busy.
				if waited := time.Since(asked); waited > 10*upstream.MaxWait {
					t.Errorf("a caller waited %v", waited)
				}
				_ = backoff.Wait(t.Context(), 50*time.Millisecond)
			}
		})
	}
	all.Wait()
	starts, err := os.ReadFile(marks)
	if n := strings.Count(string(starts), "x"); err != nil || n < 2 || n > 10 {
		t.Errorf("the child was started %d times in 2s, %v, want a few", n, err)
	}
}

var _ mcp.Caller = (*backtest.Client)(nil)
