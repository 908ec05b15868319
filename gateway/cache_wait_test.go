package gateway

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// All who ask for a list at once cost the server one request.
func TestM2L08ConcurrentMissesShareOneRequest(t *testing.T) {
	r := newKeepingRig(t, nil)
	hold := make(chan struct{})
	r.peer.hold["tools/list"] = hold
	r.peer.answer("tools/list", toolNamed("a"))
	var wg sync.WaitGroup
	const n = 50
	for range n {
		wg.Go(func() {
			if got := r.list(t, ""); got != "[{a}]" {
				t.Errorf("list = %s", got)
			}
		})
	}
	r.eventually(t, "one is on its way", func() bool { return len(r.peer.sent("tools/list")) == 1 })
	close(hold)
	wg.Wait()
	if got := len(r.peer.sent("tools/list")); got != 1 {
		t.Errorf("the server was asked %d times by %d clients, want once", got, n)
	}
}

// What becomes of ten who wait for a request of another, by what becomes of that.
func TestM2L08WaitersAfterTheirLeader(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(c *cache, l *load, leave context.CancelFunc)
		lead int // how many ask the server themselves
		wait time.Duration
	}{
		{"kept", func(c *cache, l *load, _ context.CancelFunc) { c.keep(l, publicTools()); c.leave(l, true) }, 0, 0},
		{"its client left", func(c *cache, l *load, _ context.CancelFunc) { c.leave(l, false) }, 1, 0},
		{"the server refused", func(c *cache, l *load, _ context.CancelFunc) { c.leave(l, true) }, 10, 0},
		{"overtaken by a change", func(c *cache, l *load, _ context.CancelFunc) {
			c.evict(fanout.Event{Topic: fanout.Topic{Scope: l.key.scope, Kind: fanout.ToolsListChanged}})
			c.keep(l, publicTools())
			c.leave(l, true)
		}, 1, 0},
		{"slow", func(c *cache, l *load, _ context.CancelFunc) { time.Sleep(joinFor); synctest.Wait(); c.leave(l, true) }, 10, joinFor},
		{"the waiters left", func(c *cache, l *load, leave context.CancelFunc) { leave(); synctest.Wait(); c.leave(l, true) }, 10, 0},
	} {
		t.Run("M2L-08 "+tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newTestCache(t)
				k := &keeper{cache: c, server: "peer"}
				key := cacheKey{scope: "peer/1", method: spec.MethodToolsList}
				_, first, _ := c.look("peer", key, false)
				ctx, leave := context.WithCancel(t.Context())
				begin := time.Now()
				found := make(chan *load, 10)
				for range 10 {
					go func() { _, l := k.find(ctx, key); found <- l }()
				}
				synctest.Wait()
				if len(found) != 0 {
					t.Fatalf("%d of 10 did not wait", len(found))
				}
				tt.end(c, first, leave)
				synctest.Wait()
				if took := time.Since(begin); took != tt.wait {
					t.Errorf("they waited %v, want %v", took, tt.wait)
				}
				lead := 0
				for n := 0; n < 10; n++ {
					if l := <-found; l != nil {
						lead++
						c.keep(l, publicTools()) // for those who wait on
						c.leave(l, true)
					}
				}
				if lead != tt.lead || len(c.leaders) != 0 {
					t.Errorf("%d of 10 asked the server, want %d; %d leaders left", lead, tt.lead, len(c.leaders))
				}
				leave()
			})
		})
	}
}

// A slowBack answers tools/list after a second, its first caller only once that
// has left.
type slowBack struct{ asked atomic.Int32 }

func (b *slowBack) Serve(ctx context.Context, _ *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
	if b.asked.Add(1) == 1 {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	time.Sleep(time.Second)
	return publicTools(), nil
}

// A client that leaves takes nobody with it, and makes no crowd of those who
// waited for its result.
func TestM2L08LeaderLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(slowBack)
		k := &keeper{cache: newTestCache(t), server: "peer", methods: map[string]bool{"tools/list": true}, next: b, metrics: noMetrics{}}
		req := &mcp.Request{Method: "tools/list"}
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() { _, err := k.Serve(ctx, req, nil); left <- err }()
		synctest.Wait()
		for range 10 {
			go func() {
				if _, err := k.Serve(t.Context(), req, nil); err != nil {
					t.Errorf("one who waited got %v", err)
				}
			}()
		}
		synctest.Wait()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who left got %v", err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := b.asked.Load(); got != 2 {
			t.Errorf("the server was asked %d times, want twice", got)
		}
	})
}

func newTestCache(t *testing.T) *cache {
	c, err := newCache(Options{CacheEntries: 10, CacheBytes: 1 << 20, Metrics: noMetrics{}}, budget.New(1<<30))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// publicTools is a result that is public for 5 s.
func publicTools() *mcp.Result {
	res := mcp.NewResult([]byte(`{"tools":[]}`), nil)
	res.Cache = mcp.CacheHint{TTL: 5000, Public: true}
	return res
}
