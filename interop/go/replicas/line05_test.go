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
// as long as others hold the dead for alive and after that, and the dead is hardly dialed.
func TestLine05Killed(t *testing.T) {
	over(t, []string{nats, redis, peers}, func(t *testing.T, engine string) {
		beside(t)
		w := newWorld(t, setup{engine: engine, strict: true})
		a := w.replicas[0]
		sessions := w.openMany(a, "modern", size(150, 500))
		if err := each(len(sessions), func(i int) error {
			return fails(sessions[i].mark(t.Context(), w.replicas[1+i%2], fmt.Sprint("alive ", i)))
		}); err != nil {
			t.Fatal(err)
		}
		bereft := w.newBereft(t, sessions, w.replicas[1:])
		dials, counted := countDials(t, a.peer)
		begun := time.Now()
		a.kill()
		bereft.askAll(t, 0)
		bereft.askAll(t, 5*time.Second) // after 3 s the others know
		w.wantMembers(w.replicas[1:]...)
		bereft.askAll(t, 0)
		bereft.judge(t)
		if counted {
			t.Logf("%d dials of the dead in %v, at most %d in a second", len(dials.since(begun)), time.Since(begun).Round(time.Millisecond), dials.most(begun))
			each := 1
			if engine == peers {
				each = 2 // who is at the addresses is asked each second, too
			}
			if most := dials.most(begun); most > 2*each {
				t.Errorf("%d dials of the dead within a second, want %d of each replica at most: after it was killed %v", most, each, dials.since(begun))
			}
		}
		a.start()
		if got := sessions[0].mark(t.Context(), w.replicas[1], "anew"); got.status != http.StatusNotFound {
			t.Errorf("a session of before at a replica that was started anew = %d %s, want 404", got.status, got.text)
		}
	})
}

// Bereft are sessions whose holder is dead, and what their requests took.
type bereft struct {
	sessions []*session
	replicas []*replica
	lags     map[*replica]*lags

	mu    sync.Mutex // guards the field below
	asked []asked
}

// An asked request of such a session.
type asked struct {
	span
	at *replica
}

func (w *world) newBereft(t *testing.T, sessions []*session, replicas []*replica) *bereft {
	t.Helper()
	b := &bereft{sessions: sessions, replicas: replicas, lags: make(map[*replica]*lags)}
	for _, r := range replicas {
		b.lags[r] = watchLags(t, r)
	}
	return b
}

// askAll has each session ask one of the replicas, few at a time, spread over a time.
func (b *bereft) askAll(t *testing.T, over time.Duration) {
	t.Helper()
	var wg sync.WaitGroup
	next := make(chan int)
	for range 4 {
		wg.Go(func() { // ends when next is closed
			for i := range next {
				b.ask(t, b.sessions[i], b.replicas[i%len(b.replicas)])
			}
		})
	}
	for i := range b.sessions {
		next <- i
		time.Sleep(over / time.Duration(len(b.sessions)))
	}
	close(next)
	wg.Wait()
}

func (b *bereft) ask(t *testing.T, s *session, at *replica) {
	begun := time.Now()
	got := s.mark(t.Context(), at, "gone")
	took := span{begun, time.Now()}
	if got.status != http.StatusNotFound || got.code != -32001 {
		t.Errorf("a call of a session whose holder is dead = %v %d %s, want 404 and -32001", got.err, got.status, got.text)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, asked{took, at})
}

// judge holds each request against the bounds of the statement. What else was slow at the
// same time is not counted.
func (b *bereft) judge(t *testing.T) {
	t.Helper()
	var took []time.Duration
	most := time.Duration(0)
	for _, one := range b.asked {
		whole := one.to.Sub(one.from)
		lagged := b.lags[one.at].within(one.span)
		took, most = append(took, whole), max(most, whole)
		if own := whole - lagged; own > 100*time.Millisecond {
			t.Errorf("a request at %s took %v, and %v more while others were slow, too; want 100 ms at most", one.at.name, own, lagged)
		}
		if whole > time.Second {
			t.Errorf("a request at %s took %v, want none over 1 s", one.at.name, whole)
		}
	}
	slices.Sort(took)
	t.Logf("%d requests of sessions that are gone: median %v, p99 %v, at most %v", len(took), took[len(took)/2], took[len(took)*99/100], most)
}

// TestLine05Silent stops the holder, which holds its connections: requests have a word soon,
// and are served when it is back.
func TestLine05Silent(t *testing.T) {
	beside(t)
	over(t, both, func(t *testing.T, engine string) {
		t.Parallel() // most of the time it waits
		w := newWorld(t, setup{engine: engine, strict: true})
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
