package bridgetest

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func blockUntil(running chan<- struct{}, done <-chan struct{}) {
	close(running)
	<-done
}

func TestReportLeaksFindsGoroutine(t *testing.T) {
	running, done := make(chan struct{}), make(chan struct{})
	before := goroutines()
	go blockUntil(running, done) // ends when done is closed
	<-running

	var out strings.Builder
	if !reportLeaks(&out, before, 10*time.Millisecond) {
		t.Error("reportLeaks with a blocked goroutine = false, want true")
	}
	if !strings.Contains(out.String(), "blockUntil") {
		t.Errorf("report does not name the leaking function:\n%s", out.String())
	}

	close(done)
	out.Reset()
	if reportLeaks(&out, before, leakGrace) {
		t.Errorf("reportLeaks after the goroutine ended = true:\n%s", out.String())
	}
}

func TestReportLeaksIgnoresEarlierGoroutines(t *testing.T) {
	running, done := make(chan struct{}), make(chan struct{})
	defer close(done)
	go blockUntil(running, done) // ends when the test returns
	<-running
	var out strings.Builder
	if reportLeaks(&out, goroutines(), 0) {
		t.Errorf("reportLeaks counts a goroutine from before:\n%s", out.String())
	}
}

// recorder stands for the test that CheckLeaks guards.
type recorder struct {
	testing.TB
	cleanups []func()
	failed   bool
}

func (r *recorder) Helper()          {}
func (r *recorder) Failed() bool     { return r.failed }
func (r *recorder) Error(...any)     { r.failed = true }
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func TestCheckLeaks(t *testing.T) {
	done := make(chan struct{})
	rec := &recorder{TB: t}
	CheckLeaks(rec)
	running := make(chan struct{})
	go blockUntil(running, done) // ends when done is closed
	<-running
	close(done)
	rec.cleanups[0]()
	if rec.failed {
		t.Error("CheckLeaks failed a test that left nothing")
	}
}
