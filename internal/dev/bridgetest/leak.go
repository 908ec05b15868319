package bridgetest

import (
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// leakGrace is how long goroutines that were told to end may take to do so. It
// is long because a race build on a busy machine is slow, and costs nothing
// when nothing leaks.
const leakGrace = 10 * time.Second

// Main runs the tests of a package and returns the exit code for TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(bridgetest.Main(m)) }
//
// If the tests pass but goroutines outlive them by more than a few seconds,
// Main prints their stacks to standard error and returns 1. Connections kept
// idle by an [net/http.Transport] count: a test closes what it dialled.
func Main(m *testing.M) int {
	code := m.Run()
	if code == 0 && reportLeaks(os.Stderr, nil, leakGrace) {
		return 1
	}
	return code
}

// CheckLeaks fails t if goroutines started after this call outlive the test and
// the cleanups registered after it. It is for tests that do not run in
// parallel with others, and needless inside a synctest bubble, which reports
// its own leftovers.
func CheckLeaks(t testing.TB) {
	t.Helper()
	before := goroutines()
	t.Cleanup(func() {
		var report strings.Builder
		if !t.Failed() && reportLeaks(&report, before, leakGrace) {
			t.Error(report.String())
		}
	})
}

// reportLeaks waits up to grace for every goroutine not in before to end. It
// writes the stacks of those that remain to w, and says whether there are any.
func reportLeaks(w io.Writer, before map[string]string, grace time.Duration) bool {
	deadline := time.Now().Add(grace)
	pause := time.Millisecond
	for {
		left := goroutines()
		for id := range before {
			delete(left, id)
		}
		if len(left) == 0 {
			return false
		}
		if time.Now().After(deadline) {
			writeLeaks(w, left)
			return true
		}
		// Polling is the only way: a goroutine's end can't be waited for from
		// outside.
		time.Sleep(pause)
		pause = min(2*pause, 100*time.Millisecond)
	}
}

func writeLeaks(w io.Writer, left map[string]string) {
	fmt.Fprintf(w, "%d goroutines still running after the tests:\n", len(left))
	for _, id := range slices.Sorted(maps.Keys(left)) {
		fmt.Fprintf(w, "\n%s\n%s\n", id, left[id])
	}
}

// goroutines returns the stacks of all goroutines that tests may have started,
// keyed by "goroutine N", which is unique for the life of the process.
func goroutines() map[string]string {
	found := make(map[string]string)
	for g := range strings.SplitSeq(allStacks(), "\n\n") {
		header, stack, _ := strings.Cut(g, "\n")
		id, _, _ := strings.Cut(header, " [")
		if stack != "" && !expected(stack) {
			found[id] = stack
		}
	}
	return found
}

// allStacks is runtime.Stack of every goroutine, however many there are.
func allStacks() string {
	for size := 1 << 20; ; size *= 2 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, true); n < size {
			return string(buf[:n])
		}
	}
}

// expected reports whether a stack belongs to the runtime or to the testing
// package itself.
func expected(stack string) bool {
	for _, mark := range []string{
		"bridgetest.goroutines(",           // the one that asks
		"created by testing.(*T).Run",      // a test that waits for us, or runs beside us
		"created by testing.(*B).",         // a benchmark
		"created by testing.(*F).",         // a fuzz target
		"created by testing.runFuzz",       //
		"testing.(*M).Run(",                // the main goroutine
		"created by os/signal.",            // started once, never ends
		"created by runtime",               // collector, finalizers, tracing
		"created by internal/dev/fuzz.",    // the coordinator's pipes
		"created by testing.(*M).before",   // -test.trace, -test.cpuprofile
		"created by runtime/pprof.",        // the CPU profiler
		"created by runtime/trace.",        // the tracer
		"created by testing/synctest.Test", // a bubble reports its own
	} {
		if strings.Contains(stack, mark) {
			return true
		}
	}
	return false
}
