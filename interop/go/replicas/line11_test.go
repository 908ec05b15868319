package replicas

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestLine11Cost: what a forwarded call costs beside a local one, in mcpbridge's own CPU
// time, that of both replicas.
func TestLine11Cost(t *testing.T) {
	over(t, both, func(t *testing.T, engine string) {
		w := newWorld(t, setup{engine: engine, warn: true})
		a, b := w.replicas[0], w.replicas[1]
		s := w.mustOpen(a, "legacy", nil)
		if ratio := w.compare(t, s, a, b, 1<<10, size(100, 1000)); ratio > 3 {
			t.Errorf("a forwarded call of 1 KiB costs %.2f times a local one, want 3 at most", ratio)
		}
		w.compare(t, s, a, b, 1<<20, size(4, 40))
	})
}

// compare has the session call at its holder, and at a replica that forwards, by turns: what
// else the machine does is the same for both. It returns how many times as much the latter
// costs, over all rounds.
func (w *world) compare(t *testing.T, s *session, holder, forwards *replica, bytes, calls int) float64 {
	t.Helper()
	const rounds = 10
	cost := func(r *replica) time.Duration {
		before := w.cpu(holder, forwards)
		for range calls {
			if got := s.call(t.Context(), r, "text", map[string]any{"size": bytes}); got.problem() != "" {
				t.Fatalf("a call at %s: %.300s", r.name, got.problem())
			}
		}
		return w.cpu(holder, forwards) - before
	}
	cost(holder) // connections, the heap
	cost(forwards)
	var local, forwarded time.Duration
	for range rounds {
		local += cost(holder)
		forwarded += cost(forwards)
	}
	each := func(d time.Duration) time.Duration {
		return (d / time.Duration(rounds*calls)).Round(time.Microsecond)
	}
	ratio := float64(forwarded) / float64(local)
	t.Logf("%d bytes: a local call costs %v, a forwarded one %v, %.2f times as much", bytes, each(local), each(forwarded), ratio)
	return ratio
}

// TestLine11Engine: the engine is told of no call: what it is told while there are calls is
// what it is told in any such time.
func TestLine11Engine(t *testing.T) {
	beside(t)
	over(t, both, func(t *testing.T, engine string) {
		beside(t)
		w := newWorld(t, setup{engine: engine, warn: true})
		s, at := w.mustOpen(w.replicas[0], "legacy", nil), w.replicas[1]
		const calls = 300
		begun, before := time.Now(), w.engine.messages()
		for i := range calls {
			if got := s.mark(t.Context(), at, fmt.Sprint("told ", i)); got.problem() != "" {
				t.Fatal(got.problem())
			}
			if got := w.mark(t.Context(), at.url("modern"), fmt.Sprint("told modern ", i)); got.problem() != "" {
				t.Fatal(got.problem())
			}
		}
		took := max(time.Since(begun), 2*time.Second)
		time.Sleep(time.Until(begun.Add(took)))
		busy := w.engine.messages() - before
		time.Sleep(took)
		idle := w.engine.messages() - before - busy
		t.Logf("the engine had %d messages in %v with %d calls, %d in as long without", busy, took.Round(time.Millisecond), 2*calls, idle)
		if busy > idle+calls/2 { // one message for a call would be 300 more, or 600
			t.Errorf("the engine had %d messages with %d calls and %d without, want the same", busy, 2*calls, idle)
		}
	})
}

// cpu returns the CPU time that replicas have used, to the nanosecond.
func (w *world) cpu(replicas ...*replica) (sum time.Duration) {
	w.t.Helper()
	for _, r := range replicas {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", r.p.Pid()))
		if err != nil || len(tasks) == 0 {
			w.t.Fatalf("no tasks of %s: %v", r.name, err)
		}
		for _, task := range tasks {
			text, err := os.ReadFile(task)
			if err != nil {
				continue // a thread that has ended; Go's hardly ever do
			}
			n, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
			if err != nil {
				w.t.Fatalf("%s: %q", task, text)
			}
			sum += time.Duration(n)
		}
	}
	return sum
}

// TestLine11Alone: a replica without an engine costs what the program that BASELINE names
// costs, which is one of before. Without that, it says what it costs.
func TestLine11Alone(t *testing.T) {
	programsOf := map[string]string{"this one": programs.Bridge}
	if baseline := os.Getenv("BASELINE"); baseline != "" {
		programsOf["the baseline"] = baseline
	}
	best := map[string]time.Duration{}
	for range size(1, 5) {
		for name, program := range programsOf {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, setup{count: 1, warn: true, program: program})
				r, calls := w.replicas[0], size(1000, 10_000)
				var before time.Duration
				for i := range calls + calls/5 {
					if i == calls/5 {
						before = w.cpu(r)
					}
					if got := w.callTool(t.Context(), r.url("legacy"), "text", map[string]any{"size": 1 << 10}, "", nil); got.problem() != "" {
						t.Fatal(got.problem())
					}
				}
				took := (w.cpu(r) - before) / time.Duration(calls)
				t.Logf("a call of 1 KiB costs %v", took.Round(100*time.Nanosecond))
				if b, ok := best[name]; !ok || took < b {
					best[name] = took
				}
			})
		}
	}
	if baseline, ok := best["the baseline"]; ok && float64(best["this one"]) > 1.05*float64(baseline) {
		t.Errorf("a call costs %v, and %v in the baseline", best["this one"], baseline)
	}
}
