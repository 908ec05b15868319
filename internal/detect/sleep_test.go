package detect

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A ledger is a Memory that learns of the era from others.
type ledger struct {
	notepad
	now sync.Mutex // guards the fields below
	of  spec.Era
	n   int // times that it was asked
}

func (l *ledger) Era() spec.Era {
	l.now.Lock()
	defer l.now.Unlock()
	l.n++
	return l.of
}

func (l *ledger) learn(era spec.Era) {
	l.now.Lock()
	defer l.now.Unlock()
	l.of = era
}

func (l *ledger) asked() int {
	l.now.Lock()
	defer l.now.Unlock()
	return l.n
}

func newSleeper(t *testing.T, f Finding, l *ledger) *scene {
	s := newScene(t, f)
	s.opts.OnDemand, s.opts.Memory = true, l
	recall, err := newRecall(s.Detector)
	if err != nil {
		t.Fatal(err)
	}
	s.recall = recall
	return s
}

// With OnDemand nothing is started before a request; then the server is asked as any other, and
// what was found is stored.
func TestOnDemandStartsWithARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		s := newSleeper(t, Finding{Era: spec.Legacy, Why: "it said so"}, l)
		defer s.Close(t.Context())
		s.Start()
		time.Sleep(time.Hour)
		if n := s.probes.Load(); n != 0 || !s.Asleep() || s.Era() != spec.Unknown || !errors.Is(s.Err(), mcp.ErrStarting) {
			t.Errorf("asleep: %d probes, era %v, %v", n, s.Era(), s.Err())
		}
		if got, err := s.serve(t); got != `{"era":"legacy"}` || s.Asleep() {
			t.Errorf("Serve() = %s, %v", got, err)
		}
		synctest.Wait() // it is stored beside the answer
		if found, _ := l.stored(); len(found) != 1 || s.opened[0].started.Load() != 1 {
			t.Errorf("stored %v; the back was started %d times", found, s.opened[0].started.Load())
		}
	})
}

// The era that others have found is known without a process, whenever they have found it; a
// request starts what was learned, and asks the server no more.
func TestOnDemandLearnsTheEra(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		s := newSleeper(t, Finding{Era: spec.Legacy}, l)
		defer s.Close(t.Context())
		s.Start()
		for range 100 {
			s.Learn()
		}
		if n := l.asked(); n != 1 {
			t.Errorf("the memory was asked %d times in a moment, want once", n)
		}
		l.learn(spec.Legacy)
		time.Sleep(learnEvery)
		s.Learn()
		if s.Era() != spec.Legacy || !s.Asleep() || len(s.opened) != 1 || s.opened[0].started.Load() != 0 || s.probes.Load() != 0 {
			t.Fatalf("learned: era %v, asleep %v, %d backs, %d probes", s.Era(), s.Asleep(), len(s.opened), s.probes.Load())
		}
		if got, err := s.serve(t); got != `{"era":"legacy"}` || s.Asleep() || len(s.opened) != 1 || s.opened[0].started.Load() != 1 {
			t.Errorf("Serve() = %s, %v of %d backs", got, err, len(s.opened))
		}
		s.Learn()
		if len(s.opened) != 1 {
			t.Error("it has learned again what it knows")
		}
	})
}

// What ends asleep ends what it has learned of, and starts nothing.
func TestOnDemandEndsAsleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		l.learn(spec.Legacy)
		s := newSleeper(t, Finding{Era: spec.Legacy}, l)
		s.Start()
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if b := s.opened[0]; b.started.Load() != 0 || b.closed.Load() != 1 {
			t.Errorf("the back was started %d times, and closed %d times", b.started.Load(), b.closed.Load())
		}
		if s.Start(); s.opened[0].started.Load() != 0 {
			t.Error("it was started after the end")
		}
	})
}
