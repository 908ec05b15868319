package chaos

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

const (
	parkRounds   = 2
	ordinaryEach = 300 // ordinary calls beside the parked ones of a round
	crowd        = 32  // clients at a time
)

// parkings are the worlds in which calls are parked, and how many.
var parkings = []struct {
	setup
	count int
}{{setup{server: ", parked_ttl: 2m"}, 1000}, {setup{stdio: true, server: ", parked_ttl: 2m"}, 50}}

// TestM2L17ManyParkedCalls parks a great many calls on one server, has ordinary
// calls run beside them, and then answers them all in random order.
func TestM2L17ManyParkedCalls(t *testing.T) {
	t.Parallel()
	for _, tt := range parkings {
		t.Run(tt.String(), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(rig.Seed(t), 1))
			w := newWorld(t, tt.setup)
			w.ordinary(ordinaryEach) // caches, connections, the heap
			w.resume(w.park("warm", tt.count))
			before := w.quiet()
			for i := range parkRounds {
				calls := w.park(fmt.Sprint("round ", i), tt.count)
				if n := w.gauges()[parked]; n != float64(tt.count) {
					t.Fatalf("%v calls are parked, want %d", n, tt.count)
				}
				w.ordinary(ordinaryEach)
				rng.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
				w.resume(calls)
			}
			w.wantOnce((parkRounds+1)*(tt.count+ordinaryEach) + 1)
			w.wantNoMore(before, parked, goroutines, files)
		})
	}
}

// BenchmarkBesideParkedCalls tells how much longer an ordinary call takes while
// many are parked. The best round counts: another program disturbs one, or two.
func BenchmarkBesideParkedCalls(b *testing.B) {
	for _, tt := range parkings {
		b.Run(tt.String(), func(b *testing.B) {
			w := newWorld(b, tt.setup)
			w.ordinary(ordinaryEach)
			w.resume(w.park("warm", tt.count))
			best := math.Inf(1)
			for i := range 3 {
				without := median(w.ordinary(ordinaryEach))
				calls := w.park(fmt.Sprint("round ", i), tt.count)
				with := median(w.ordinary(ordinaryEach))
				best = min(best, float64(with)/float64(without))
				b.Logf("p50 of ordinary calls: %v with none parked, %v beside %d parked", without, with, tt.count)
				w.resume(calls)
			}
			rig.Judge(b, best, 1.2)
		})
	}
}

// TestM2L19AbandonedCallsLeaveNothing parks as many and comes back for none.
func TestM2L19AbandonedCallsLeaveNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		setup
		count int
	}{{setup{server: ", parked_ttl: 15s"}, 1000}, {setup{stdio: true, server: ", parked_ttl: 6s"}, 50}} {
		t.Run(tt.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.setup)
			w.resume(w.park("warm", 10))
			before := w.quiet()
			calls := w.park("abandoned", tt.count)
			during := w.gauges()
			if during[parked] != float64(tt.count) {
				t.Fatalf("%v calls are parked, want %d", during[parked], tt.count)
			}
			w.wantNoMore(before, parked, goroutines, files)
			t.Logf("%d calls parked: goroutines %v, files %v", tt.count, during[goroutines], during[files])
			cancelled := 0
			for _, e := range w.entries() {
				if e.What == "answer" && e.Answer == "cancel" {
					cancelled++
				}
			}
			if cancelled != tt.count {
				t.Errorf("the server heard of %d cancelled questions, want %d", cancelled, tt.count)
			}
			if got := w.tool(t.Context(), "ask", calls[0].args, calls[0].again.retry()); got.code != -32602 {
				t.Errorf("a retry after that = %s, want -32602", got.text)
			}
			w.ordinary(10)
		})
	}
}

// A parkedCall is one whose client has its question.
type parkedCall struct {
	args  map[string]any
	nonce string
	again round
}

// park has so many calls ask their clients, and wants each question to be its own
// call's.
func (w *world) park(label string, count int) []parkedCall {
	w.t.Helper()
	calls := make([]parkedCall, count)
	inParallel(w.t.Context(), count, func(ctx context.Context, i int) {
		nonce := fmt.Sprintf("%s %d", label, i)
		c := parkedCall{args: map[string]any{"nonce": nonce}, nonce: nonce}
		got := w.tool(ctx, "ask", c.args, "")
		if c.again = got.again; len(c.again.questions) != 1 || !got.again.asks(nonce) {
			w.t.Errorf("call %q = %v %s, want its question", nonce, got.err, got.text)
		}
		calls[i] = c
	})
	if w.t.Failed() {
		w.t.FailNow()
	}
	return calls
}

// asks reports whether all of a round's questions are about a nonce.
func (r round) asks(nonce string) bool {
	for _, message := range r.questions {
		if message != nonce {
			return false
		}
	}
	return true
}

// resume answers calls in their order, some at a time, and wants each to have the
// answer of its own client.
func (w *world) resume(calls []parkedCall) {
	w.t.Helper()
	inParallel(w.t.Context(), len(calls), func(ctx context.Context, i int) {
		c := calls[i]
		got := w.tool(ctx, "ask", c.args, c.again.retry())
		if got.problem() != "" || got.nonce != c.nonce || !slices.Equal(got.answers, []string{"re " + c.nonce}) {
			w.t.Errorf("call %q = %v %s, want its answer", c.nonce, got.err, got.text)
		}
	})
}

// ordinary makes so many calls, one after another, and returns what each took.
// Their client could be asked, as that of the parked calls: they share a session.
func (w *world) ordinary(count int) []time.Duration {
	w.t.Helper()
	took := make([]time.Duration, count)
	for i := range took {
		begun := time.Now()
		nonce := fmt.Sprint("ordinary ", lastID.Add(1))
		got := w.tool(w.t.Context(), "mark", map[string]any{"nonce": nonce}, "")
		took[i] = time.Since(begun)
		if got.problem() != "" || got.nonce != nonce {
			w.t.Fatalf("an ordinary call = %v %s", got.err, got.text)
		}
	}
	return took
}

// wantOnce wants so many calls in the ledger, none twice, all of one process.
func (w *world) wantOnce(count int) {
	w.t.Helper()
	calls, restarts := w.ran()
	for nonce, n := range calls {
		if n != 1 {
			w.t.Errorf("call %q ran %d times", nonce, n)
		}
	}
	if len(calls) != count || restarts != 0 {
		w.t.Errorf("%d calls ran, and the server was started anew %d times, want %d and none", len(calls), restarts, count)
	}
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

// inParallel does something for each number below count, some at a time.
func inParallel(ctx context.Context, count int, do func(context.Context, int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range crowd {
		wg.Go(func() {
			for i := range next {
				do(ctx, i)
			}
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	wg.Wait()
}
