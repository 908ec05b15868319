package replicas

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestLine05Killed kills the holder of many sessions: each next request has its 404 at once,
// and the dead is hardly dialed.
func TestLine05Killed(t *testing.T) {
	over(t, []string{nats, redis, peers}, func(t *testing.T, engine string) {
		w := newWorld(t, setup{engine: engine})
		a := w.replicas[0]
		sessions := w.openMany(a, "modern", size(150, 500))
		if err := each(len(sessions), func(i int) error {
			return fails(sessions[i].mark(t.Context(), w.replicas[1+i%2], fmt.Sprint("alive ", i)))
		}); err != nil {
			t.Fatal(err)
		}
		dials, counted := countDials(t, a.peer)
		a.kill()
		took := w.wantGone(sessions, w.replicas[1:])
		took = append(took, w.wantGone(sessions, w.replicas[1:])...)
		slices.Sort(took)
		t.Logf("%d requests of sessions that are gone: median %v, p99 %v, at most %v", len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
		// The bounds are of the statement. In the short form the machine may do other things.
		if most := took[len(took)-1]; most > time.Second {
			t.Errorf("a request took %v, want none over 1 s", most)
		}
		if n := len(took) * size(97, 100) / 100; took[n-1] > 100*time.Millisecond {
			t.Errorf("p%d is %v, want 100 ms at most", size(97, 100), took[n-1])
		}
		if counted {
			t.Logf("%d dials of the dead, at most %d in a second", dials.total(), dials.most())
			each := 1
			if engine == peers {
				each = 2 // who is at the addresses is asked each second, too
			}
			if most := dials.most(); most > 2*each {
				t.Errorf("%d dials of the dead within a second, want %d of each replica at most", most, each)
			}
		}
		a.start()
		if got := sessions[0].mark(t.Context(), w.replicas[1], "anew"); got.status != http.StatusNotFound {
			t.Errorf("a session of before at a replica that was started anew = %d %s, want 404", got.status, got.text)
		}
	})
}

// TestLine05Silent stops the holder, which holds its connections: requests have a word soon,
// and are served when it is back.
func TestLine05Silent(t *testing.T) {
	over(t, both, func(t *testing.T, engine string) {
		t.Parallel() // most of the time it waits
		w := newWorld(t, setup{engine: engine})
		a := w.replicas[0]
		sessions := w.openMany(a, "modern", 20)
		for i, s := range sessions {
			if problem := fails(s.mark(t.Context(), w.replicas[1+i%2], fmt.Sprint("alive ", i))); problem != nil {
				t.Fatal(problem)
			}
		}
		a.pause()
		time.Sleep(100 * time.Millisecond) // all its threads have stopped
		begun := time.Now()
		var waiting sync.WaitGroup
		for i, s := range sessions {
			waiting.Go(func() {
				for time.Since(begun) < 8*time.Second {
					sent := time.Since(begun)
					got := s.ask(t.Context(), w.replicas[1+i%2], "ping", "{}")
					switch {
					case got.status == http.StatusBadGateway && strings.Contains(got.text, "may have taken effect") && sent < 2*time.Second: // it was sent
					case got.status == http.StatusServiceUnavailable && strings.Contains(got.text, "does not answer") && sent < 5*time.Second:
					case got.status == http.StatusNotFound && got.code == -32001:
					default:
						t.Errorf("%v after the holder stopped: %v %d %s after %v", sent, got.err, got.status, got.text, got.took)
					}
					if got.took > 7*time.Second || sent > 2*time.Second && got.took > time.Second {
						t.Errorf("%v after the holder stopped a request took %v", sent, got.took)
					}
					time.Sleep(50 * time.Millisecond)
				}
			})
		}
		waiting.Wait()
		a.resume()
		until(t, "the sessions are served again", func() bool {
			return !slices.ContainsFunc(sessions, func(s *session) bool { return fails(s.mark(t.Context(), w.replicas[1], "again")) != nil })
		})
	})
}

func fails(a answer) error {
	if problem := a.problem(); problem != "" {
		return fmt.Errorf("%s", problem)
	}
	return nil
}

// openMany opens sessions at a replica.
func (w *world) openMany(r *replica, server string, n int) []*session {
	w.t.Helper()
	all := make([]*session, n)
	if err := each(n, func(i int) (err error) {
		all[i], err = w.open(w.t.Context(), r, server, nil)
		return err
	}); err != nil {
		w.t.Fatal(err)
	}
	return all
}

// wantGone has each session ask one of replicas, few at a time, and returns what the 404s
// took.
func (w *world) wantGone(sessions []*session, replicas []*replica) []time.Duration {
	w.t.Helper()
	took := make([]time.Duration, len(sessions))
	var wg sync.WaitGroup
	next := make(chan int)
	for range 4 {
		wg.Go(func() { // ends when next is closed
			for i := range next {
				got := sessions[i].mark(w.t.Context(), replicas[i%len(replicas)], "gone")
				took[i] = got.took
				if got.status != http.StatusNotFound || got.code != -32001 {
					w.t.Errorf("a call of a session whose holder is dead = %v %d %s, want 404 and -32001", got.err, got.status, got.text)
				}
			}
		})
	}
	for i := range sessions {
		next <- i
	}
	close(next)
	wg.Wait()
	return took
}
