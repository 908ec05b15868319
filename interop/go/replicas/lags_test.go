package replicas

import (
	"io"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Lags are the times in which a replica, this test or the machine was slow in everything:
// a request to /healthz, which needs nobody else, took long as well. They are measured
// beside requests that are judged by the time they take.
type lags struct {
	mu  sync.Mutex // guards all
	all []span
}

type span struct{ from, to time.Time }

const (
	lagEvery = 5 * time.Millisecond  // how often it is looked
	lagLeast = 10 * time.Millisecond // what is no lag
)

// watchLags looks until the end of the test.
func watchLags(t *testing.T, r *replica) *lags {
	t.Helper()
	s := new(lags)
	url, client := "http://"+r.admin+"/healthz", &http.Client{Transport: new(http.Transport)}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() { // ends with done
		defer close(ended)
		for due := time.Now(); ; due = due.Add(lagEvery) {
			select {
			case <-done:
				return
			case <-time.After(time.Until(due)):
			}
			res, err := client.Get(url)
			if err != nil {
				t.Errorf("%s: %v", url, err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body) // the connection is used again
			_ = res.Body.Close()
			if now := time.Now(); now.Sub(due) > lagLeast {
				s.add(span{due, now})
				due = now
			}
		}
	}()
	t.Cleanup(func() {
		close(done)
		<-ended
		client.CloseIdleConnections()
	})
	return s
}

func (s *lags) add(one span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, one)
}

// within returns how much of a time was lags.
func (s *lags) within(t span) (sum time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		from, to := one.from, one.to
		if from.Before(t.from) {
			from = t.from
		}
		if to.After(t.to) {
			to = t.to
		}
		sum += max(0, to.Sub(from))
	}
	return sum
}
