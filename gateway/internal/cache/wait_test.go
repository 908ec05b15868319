package cache

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// What becomes of ten who wait for a request of another, by what becomes of that.
func TestM2L08WaitersAfterTheirLeader(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(c *Cache, f *fetch, leave context.CancelFunc)
		lead int // how many ask the server themselves
		wait time.Duration
	}{
		{"kept", func(c *Cache, f *fetch, _ context.CancelFunc) { c.store(f, publicTools()); c.finish(f, true) }, 0, 0},
		{"its client left", func(c *Cache, f *fetch, _ context.CancelFunc) { c.finish(f, false) }, 1, 0},
		{"the server refused", func(c *Cache, f *fetch, _ context.CancelFunc) { c.finish(f, true) }, 10, 0},
		{"overtaken by a change", func(c *Cache, f *fetch, _ context.CancelFunc) {
			c.Evict(fanout.Event{Topic: fanout.Topic{Scope: f.key.scope, Kind: fanout.ToolsListChanged}})
			c.store(f, publicTools())
			c.finish(f, true)
		}, 1, 0},
		{"slow", func(c *Cache, f *fetch, _ context.CancelFunc) {
			time.Sleep(joinTimeout)
			synctest.Wait()
			c.finish(f, true)
		}, 10, joinTimeout},
		{"the waiters left", func(c *Cache, f *fetch, leave context.CancelFunc) { leave(); synctest.Wait(); c.finish(f, true) }, 10, 0},
	} {
		bridgetest.RunBubble(t, "M2L-08 "+tt.name, func(t *testing.T) {
			c := newTestCache(t)
			h := &cachingHandler{cache: c, server: "peer"}
			k := key{scope: "peer/1", method: spec.MethodToolsList}
			_, first, _ := c.lookup("peer", k, false)
			ctx, leave := context.WithCancel(t.Context())
			begin := time.Now()
			found := make(chan *fetch, 10)
			for range 10 {
				go func() { _, f := h.find(ctx, k); found <- f }()
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
				if f := <-found; f != nil {
					lead++
					c.store(f, publicTools()) // for those who wait on
					c.finish(f, true)
				}
			}
			if lead != tt.lead || len(c.joinable) != 0 {
				t.Errorf("%d of 10 asked the server, want %d; %d joinable left", lead, tt.lead, len(c.joinable))
			}
			leave()
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
		h := &cachingHandler{cache: newTestCache(t), server: "peer", methods: map[string]bool{"tools/list": true}, next: b}
		req := &mcp.Request{Method: "tools/list"}
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() { _, err := h.Serve(ctx, req, nil); left <- err }()
		synctest.Wait()
		for range 10 {
			go func() {
				if _, err := h.Serve(t.Context(), req, nil); err != nil {
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

func newTestCache(t *testing.T) *Cache {
	c, err := New(Options{Entries: 10, Bytes: 1 << 20, Memory: budget.New(1 << 30)})
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
