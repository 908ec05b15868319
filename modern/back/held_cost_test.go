package back

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A live task that a client of 2025-11-25 holds, and nobody looks at, costs at most 2 KiB, no goroutine
// and no request.
func TestT21TasksThatNobodyLooksAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10_000
		s := &taskServer{looks: sequence(stillWorking)}
		opts := holding()
		opts.Limits = limits.Set{limits.Tasks.Key: 2 * n, limits.TasksEach.Key: 2 * n}
		b, end := s.back(t, opts)
		defer end()
		holdOne(t, b)
		before, goroutines := bridgetest.HeapInUse(), runtime.NumGoroutine()
		for range n {
			holdOne(t, b)
		}
		s.mu.Lock()
		s.calls = nil
		s.mu.Unlock()
		after, more := bridgetest.HeapInUse(), runtime.NumGoroutine()-goroutines
		if more > 5 {
			t.Errorf("%d tasks have %d goroutines", n, more)
		}
		if each := (after - before) / n; each > 2<<10 {
			t.Errorf("a task takes %d bytes, want 2 KiB at most", each)
		}
		time.Sleep(time.Hour)
		if s.n != 0 || b.held.Len() != n+1 {
			t.Errorf("the server got %d requests about %d tasks", s.n, b.held.Len())
		}
		time.Sleep(24 * time.Hour)
		after, more = bridgetest.HeapInUse(), runtime.NumGoroutine()-goroutines
		if b.held.Len() != 0 || more > 5 {
			t.Errorf("%d tasks and %d goroutines are left", b.held.Len(), more)
		}
		if left := (after - before) / n; left > 256 { // empty maps keep their size
			t.Errorf("of each task %d bytes are left", left)
		}
	})
}

// However many wait for a task, one poller looks at it, and nothing is left once they end.
func TestT23ManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		s := &taskServer{looks: sequence(stillWorking)}
		b, end := s.back(t, holding())
		defer end()
		id := holdOne(t, b)
		bridgetest.Breathe(4 * n)
		before, goroutines := bridgetest.HeapInUse(), runtime.NumGoroutine()
		ctx, leave := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for range n {
			waiting.Go(func() {
				_, _ = upBody(b.Serve(ctx, heldRequest(spec.MethodTaskResult, id), &backtest.Caller{}))
			})
		}
		time.Sleep(10 * time.Second)
		first := s.looked()
		time.Sleep(40 * time.Second)
		if looks := s.looked() - first; looks != 100 {
			t.Errorf("%d looks in 40 s, want those of one poller, each 400 ms", looks)
		}
		leave()
		waiting.Wait()
		first = s.looked()
		time.Sleep(2 * time.Hour) // also timers that were stopped are gone
		// The heap first: while the world is not stopped, the runtime counts some that have ended as alive.
		after, more := bridgetest.HeapInUse(), runtime.NumGoroutine()-goroutines
		if looks := s.looked() - first; looks != 0 || more > 5 {
			t.Errorf("%d looks, and %d goroutines are left", looks, more)
		}
		if left := (after - before) / n; left > 512 {
			t.Errorf("of each who waited %d bytes are left", left)
		}
	})
}

func (s *taskServer) looked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}
