package system

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestCalmProgramReturnsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		freeMemory()
		before := readHeap().held
		stop := ReleaseMemory(nil)
		defer stop()
		garbage := make([][]byte, 96)
		for i := range garbage {
			garbage[i] = make([]byte, 1<<20)
		}
		runtime.KeepAlive(garbage)
		if grown := readHeap().held - before; grown < 64<<20 {
			t.Fatalf("the heap has grown by %d MiB, want the garbage in it", grown>>20)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if grown := readHeap().held - before; grown >= releaseLeast {
			t.Errorf("%d MiB kept from the system after a calm minute, want less than %d", grown>>20, releaseLeast>>20)
		}
	})
}

func TestWhoTunesTheCollectorKeepsMemory(t *testing.T) {
	for _, entry := range []string{"GOGC=50", "GOMEMLIMIT=64MiB"} {
		before := runtime.NumGoroutine()
		stop := ReleaseMemory([]string{"HOME=/root", entry})
		if got := runtime.NumGoroutine(); got != before {
			t.Errorf("with %s: a releaser runs, want none", entry)
		}
		stop()
	}
}

// A scriptedHeap is what a test says.
type scriptedHeap struct {
	mu       sync.Mutex // guards the fields below
	is, left heap       // now, and once it is freed
	busy     bool       // it is collected between two looks
	frees    int
}

func (s *scriptedHeap) read() heap {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		s.is.cycles++
	}
	return s.is
}

func (s *scriptedHeap) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frees++
	s.is = heap{s.is.cycles + 2, s.left.live, s.left.held}
}

// become sets what is in use and held, in MiB. The next counts begin.
func (s *scriptedHeap) become(busy bool, is, left heap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy, s.frees = busy, 0
	s.is = heap{s.is.cycles + is.cycles, is.live << 20, is.held << 20}
	s.left = heap{0, left.live << 20, left.held << 20}
}

func (s *scriptedHeap) freed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frees
}

// Each step is a minute with a heap, which frees bring down to what is left.
func TestReleaserFreesOnceAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedHeap{is: heap{held: 10 << 20}}
		r := startReleaser(s.read, s.free)
		defer r.stop()
		for _, tt := range []struct {
			name     string
			busy     bool
			is, left heap
			want     int
		}{
			{"grown a little", false, heap{live: 10, held: 41}, heap{}, 0},
			{"much, and busy", true, heap{live: 10, held: 500}, heap{}, 0},
			{"calm", false, heap{live: 10, held: 500}, heap{live: 8, held: 60}, 1},
			{"no more can be freed", false, heap{live: 8, held: 60}, heap{}, 0},
			{"grown a little again", false, heap{live: 8, held: 91}, heap{}, 0},
			{"grown much again", false, heap{live: 8, held: 92}, heap{live: 8, held: 60}, 1},
			{"the runtime has returned some", false, heap{live: 8, held: 20}, heap{}, 0},
			{"and the heap grows from there", false, heap{live: 8, held: 55}, heap{live: 8, held: 20}, 1},
			{"of what is in use little is known", false, heap{live: 600, held: 700}, heap{live: 600, held: 700}, 1},
			{"little beside what is in use", false, heap{live: 600, held: 999}, heap{}, 0},
			{"much beside it", false, heap{live: 600, held: 1000}, heap{live: 600, held: 700}, 1},
			{"a collection found less in use", false, heap{live: 300, held: 700}, heap{live: 300, held: 400}, 1},
			{"very much is in use", false, heap{live: 1000, held: 1400}, heap{live: 1000, held: 1400}, 1},
			{"less of it is", false, heap{live: 600, held: 1400}, heap{live: 600, held: 1000}, 1},
		} {
			s.become(tt.busy, tt.is, tt.left)
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := s.freed(); got != tt.want {
				t.Errorf("%s: memory freed %d times, want %d", tt.name, got, tt.want)
			}
		}
	})
}

func TestReleaserWaitsOutACollection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(scriptedHeap)
		r := startReleaser(s.read, s.free)
		defer r.stop()
		s.become(false, heap{cycles: 1, held: 100}, heap{})
		time.Sleep(3*releaseLook - time.Second)
		if synctest.Wait(); s.freed() != 0 {
			t.Errorf("freed %v after a collection was seen, want %d looks of calm", 2*releaseLook-time.Second, releaseCalm)
		}
		time.Sleep(2 * time.Second)
		if synctest.Wait(); s.freed() != 1 {
			t.Errorf("freed %d times after %d calm looks, want once", s.freed(), releaseCalm)
		}
	})
}
