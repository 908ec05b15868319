package back

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A live task that nobody looks at costs at most 2 KiB, no goroutine and no request.
func TestT14TasksThatNobodyLooksAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10_000
		ts := &legacytest.TaskServer{Stages: []string{`"status":"working"`}}
		many := limits.Set{limits.Tasks.Key: 2 * n, limits.TasksEach.Key: 2 * n}
		r := &holderRig{newTaskBack(t, ts, Options{Options: upstream.Options{Limits: many}}), t, ts}
		r.create()
		before, goroutines := bridgetest.HeapInUse(), runtime.NumGoroutine()
		for range n {
			r.create()
		}
		ts.ForgetCalls()
		after, more := bridgetest.HeapInUse(), runtime.NumGoroutine()-goroutines
		if more > 5 {
			t.Errorf("%d tasks have %d goroutines", n, more)
		}
		if each := (after - before) / n; each > 2<<10 {
			t.Errorf("a task takes %d bytes, want 2 KiB at most", each)
		}
		time.Sleep(30 * time.Minute)
		if got := ts.Count("tasks/get") + ts.Count("tasks/result"); got != 0 || r.holding.Len() != n+1 {
			t.Errorf("the server got %d requests about %d tasks", got, r.holding.Len())
		}
		for range n + 1 {
			<-ts.Cancelled // at the end of their time
		}
		time.Sleep(2 * time.Hour) // also timers that were stopped are gone
		after, more = bridgetest.HeapInUse(), runtime.NumGoroutine()-goroutines
		if r.holding.Len() != 0 || more > 5 {
			t.Errorf("%d tasks and %d goroutines are left", r.holding.Len(), more)
		}
		if left := (after - before) / n; left > 256 { // empty maps keep their size
			t.Errorf("of each task %d bytes are left", left)
		}
	})
}

// However many streams follow a task, one poller looks at it, and nothing is left once they end.
func TestT18ManyStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		ts := &legacytest.TaskServer{Stages: []string{`"status":"working"`}, Interval: 10_000}
		r := newHolder(t, ts, settings.Server{Tasks: settings.Tasks{TTL: 24 * time.Hour}})
		id := r.create()
		r.get(id)
		bridgetest.Breathe(4 * n)
		before, goroutines := bridgetest.HeapInUse(), runtime.NumGoroutine()
		ctx, leave := context.WithCancel(t.Context())
		var following sync.WaitGroup
		clients := make([]*backtest.Client, n)
		for i := range clients {
			clients[i] = &backtest.Client{Answer: backtest.NeverAnswers}
			following.Go(func() {
				_, _ = r.Serve(ctx, holding("ada", spec.MethodListen, `{"notifications":{"taskIds":[`+string(wire.Quote(id))+`]}}`), clients[i])
			})
		}
		time.Sleep(time.Second)
		ts.ForgetCalls()
		time.Sleep(100 * time.Second)
		if looks := ts.Count("tasks/get"); looks != 10 {
			t.Errorf("%d looks in 100 s, want those of one poller", looks)
		}
		ts.SetStages(`"status":"working","statusMessage":"half"`)
		time.Sleep(10 * time.Second)
		for _, c := range clients {
			if heard := c.Heard(); len(heard) != 3 || !strings.Contains(heard[2], "half") {
				t.Fatalf("a stream got %q, want the acknowledgment, the state and the change", heard)
			}
		}
		leave()
		following.Wait()
		clear(clients)
		ts.ForgetCalls()
		time.Sleep(2 * time.Hour) // also timers that were stopped are gone
		// The heap first: while the world is not stopped, the runtime counts some that have ended as alive.
		after, more := bridgetest.HeapInUse(), runtime.NumGoroutine()-goroutines
		if looks := ts.Count("tasks/get"); looks != 0 || more > 5 {
			t.Errorf("%d looks, and %d goroutines are left", looks, more)
		}
		if left := (after - before) / n; left > 512 {
			t.Errorf("of each stream %d bytes are left", left)
		}
	})
}
