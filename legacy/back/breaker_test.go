package back

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
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
				_ = wake.Wait(t.Context(), 50*time.Millisecond)
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

// A URL is tried for each request, also after failures, as a client of its own would try it: so the
// next request is served once the server is back.
func TestAURLIsTriedForEachRequest(t *testing.T) {
	var tried atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		tried.Add(1)
		http.Error(w, "starting", http.StatusServiceUnavailable)
	}))
	defer s.Close()
	b := newTestBack(t, Options{Options: upstream.Options{URL: s.URL}})
	for range 10 {
		before := tried.Load()
		if _, err := b.Serve(t.Context(), ask("tools/call", `{"name":"t"}`), &backtest.Client{Answer: backtest.NeverAnswers}); err == nil || tried.Load() == before {
			t.Fatalf("Serve = %v after %d requests to the server, want an attempt for each", err, tried.Load())
		}
	}
}
