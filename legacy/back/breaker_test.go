package back

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// hammer has callers of so many profiles ask again and again for a while. It
// returns the longest wait of those who came once the server's habit was known.
func hammer(t *testing.T, b *Back, callers, profiles int, after, until time.Duration) (longest time.Duration) {
	var mu sync.Mutex
	var all sync.WaitGroup
	begin := time.Now()
	for i := range callers {
		all.Go(func() {
			for time.Since(begin) < until {
				req := ask("tools/call", `{"name":"t"}`)
				req.Profile.Scope = strings.Repeat("p", 1+i%profiles)
				asked := time.Now()
				_, err := b.Serve(t.Context(), req, &backtest.Client{Answer: backtest.NeverAnswers})
				if err == nil || !strings.Contains(err.Error(), `server "scripted" can't be reached`) {
					t.Errorf("Serve = %v, want it to name the server and the cause", err)
					return
				}
				mu.Lock()
				if asked.Sub(begin) >= after {
					longest = max(longest, time.Since(asked))
				}
				mu.Unlock()
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	all.Wait()
	return longest
}

// A server that is away is tried now and then, by one for all; nobody waits long
// to hear of it, whatever its profile.
func TestADeadServerIsNewsAtOnce(t *testing.T) {
	refusedDial := func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", os.ErrNotExist)}
	}
	silence := func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	for _, tt := range []struct {
		name     string
		server   tripper
		profiles int
		known    time.Duration // when two attempts have failed
		atMost   int64         // attempts within a minute
	}{
		{"refuses connections", refusedDial, 1, 0, 20},
		{"refuses connections, many profiles", refusedDial, 50, 0, 50 + 20},
		{"swallows packets", silence, 1, 2 * upstream.DefaultConnectTimeout, 12},
		{"swallows packets, many profiles", silence, 50, 2 * upstream.DefaultConnectTimeout, 2*50 + 12},
	} {
		bridgetest.RunBubble(t, tt.name, func(t *testing.T) {
			var dials atomic.Int64
			b := newTestBack(t, Options{Options: upstream.Options{URL: "http://dead.example/mcp", RoundTripper: tripper(func(r *http.Request) (*http.Response, error) {
				dials.Add(1)
				return tt.server(r)
			})}})
			if longest := hammer(t, b, 100, tt.profiles, tt.known+time.Second, time.Minute); longest > upstream.MaxWait {
				t.Errorf("a caller waited %v, want at most %v", longest, upstream.MaxWait)
			}
			if n := dials.Load(); n > tt.atMost {
				t.Errorf("%d attempts in a minute, want at most %d", n, tt.atMost)
			}
			t.Logf("%d attempts", dials.Load())
		})
	}
}

// A server that comes back is found within the longest rest.
func TestADeadServerThatComesBackIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		b := newAsker(t, Options{}, func(a *legacytest.Server) { a.Call = func(*legacytest.ServerCall) string { return said("back") } })
		dial := b.opts.Dial
		b.opts.Dial = func(ctx context.Context) (transport.Conn, error) {
			if !up.Load() {
				return nil, os.ErrNotExist
			}
			return dial(ctx)
		}
		hammer(t, b, 10, 3, time.Hour, time.Minute)
		up.Store(true)
		begin := time.Now()
		for {
			if _, err := body(b.Serve(t.Context(), ask("tools/call", `{"name":"t"}`), &backtest.Client{Answer: backtest.NeverAnswers})); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("it was found after %v, want at most the longest pause", took)
		}
	})
}

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
