package replicas

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/listen"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// A crowd is many listen streams on few resources of one server, at all replicas, while the
// resources change.
type crowd struct {
	w    *world
	f    *fixture
	uris []string

	mu      sync.Mutex // guards streams
	streams []*stream
}

// Claims and what they are for, as a replica counts them.
const (
	ownClaims   = `mcpbridge_replica_claims{holder="self"}`
	otherClaims = `mcpbridge_replica_claims{holder="other"}`
)

// newCrowd opens count streams on so many resources, each on one of them, and waits for
// them.
func newCrowd(t *testing.T, w *world, f *fixture, count, uris int) *crowd {
	t.Helper()
	c := &crowd{w: w, f: f, uris: f.list(uris), streams: make([]*stream, count)}
	t.Cleanup(c.close)
	if err := each(count, func(i int) (err error) {
		c.streams[i], err = c.listen(w.replicas[i%len(w.replicas)], c.uris[i/len(w.replicas)%uris])
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return c
}

// listen opens a stream, and waits until it is acknowledged.
func (c *crowd) listen(r *replica, uri string) (*stream, error) {
	s, err := c.w.listen(r, c.f.name, uri)
	if err != nil {
		return nil, err
	}
	if err := s.Wait(recovery); err != nil {
		s.Close()
		return nil, fmt.Errorf("at %s: %w", r.name, err)
	}
	return s, nil
}

func (c *crowd) all() []*stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.streams)
}

func (c *crowd) close() {
	for _, s := range c.all() {
		if s != nil {
			s.Close()
		}
	}
}

// steady changes each resource until each stream is told once, rounds times in a row. While the
// owner merges its streams at a modern server, which it does some time after the last topic came,
// two of them have a topic.
func (c *crowd) steady(t *testing.T, rounds int) {
	t.Helper()
	inOrder := 0
	rig.Until(t, recovery, fmt.Sprintf("each stream is told once, %d times in a row", rounds), func() string {
		if more := c.round(t); len(more) > 0 {
			inOrder = 0
			return fmt.Sprintf("%s, and %d others", more[0], len(more)-1)
		}
		if inOrder++; inOrder < rounds {
			return fmt.Sprintf("%d times in a row", inOrder)
		}
		return ""
	})
}

// round changes each resource once, waits until each stream is told, and returns those that
// are told more than once.
func (c *crowd) round(t *testing.T) (more []string) {
	t.Helper()
	since := time.Now().UnixNano()
	c.f.touch(c.uris...)
	rig.Until(t, recovery, "each stream is told", func() string { return c.missing(since) })
	time.Sleep(300 * time.Millisecond) // a second frame would come now
	for _, s := range c.all() {
		if n := s.Count(s.want[0], since); n != 1 {
			more = append(more, fmt.Sprintf("a stream at %s was told %d times of %s", s.at.name, n, s.want[0]))
		}
	}
	return more
}

// missing names a stream that was not told since a time.
func (c *crowd) missing(since int64) string {
	missing, first := 0, ""
	for _, s := range c.all() {
		if s.First(s.want[0], since) == 0 {
			if missing++; missing == 1 {
				ending, problems := s.Status()
				first = fmt.Sprintf("a stream at %s (%s, %.200q) was not told of %s", s.at.name, ending, problems, s.want[0])
			}
		}
	}
	if missing == 0 {
		return ""
	}
	return fmt.Sprintf("%s, and %d others", first, missing-1)
}

// change changes resources at random until the returned function is called, which returns
// what was changed.
func (c *crowd) change(t *testing.T, pause time.Duration) (stop func() []entry) {
	done, ended := make(chan struct{}), make(chan struct{})
	var touches []entry
	go func() { // ends with stop
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(pause):
			}
			touched, err := c.f.tell().Touch(1, c.uris[rand.IntN(len(c.uris))])
			if err != nil {
				t.Errorf("a change: %v", err)
				return
			}
			touches = append(touches, touched...)
		}
	}()
	return func() []entry {
		close(done)
		<-ended
		return touches
	}
}

// owed returns for each change and each stream that was open when it happened how long it
// took until the stream was told, the longest first, and the streams that were never told
// although they are open. Streams that broke within that time are owed nothing.
func (c *crowd) owed(touches []entry) (longest time.Duration, lost []string) {
	byURI := make(map[string][]int64)
	for _, e := range touches {
		byURI[e.URI] = append(byURI[e.URI], e.At)
	}
	for _, s := range c.all() {
		next, told, endAt := 0, s.Frames(), s.EndAt()
		_, ackAt := s.Ack()
		for _, at := range byURI[s.want[0]] {
			if ackAt == 0 || ackAt > at || endAt != 0 && endAt < at {
				continue
			}
			for next < len(told) && told[next].At < at {
				next++
			}
			switch {
			case next < len(told):
				longest = max(longest, time.Duration(told[next].At-at))
			case endAt == 0:
				lost = append(lost, fmt.Sprintf("a stream at %s was not told of %s, changed at %s", s.at.name, s.want[0], clock(at)))
			}
		}
	}
	return longest, lost
}

func clock(at int64) string { return time.Unix(0, at).Format("15:04:05.000") }

// settle waits until nothing is owed, and returns the longest that anything took.
func (c *crowd) settle(t *testing.T, d time.Duration, touches []entry) time.Duration {
	t.Helper()
	var longest time.Duration
	rig.Until(t, d, fmt.Sprintf("%d changes are told to all", len(touches)), func() string {
		var lost []string
		if longest, lost = c.owed(touches); len(lost) > 0 {
			return fmt.Sprintf("%s, and %d others", lost[0], len(lost)-1)
		}
		return ""
	})
	return longest
}

// wantOpen wants all streams to be open, and to have kept to the rules.
func (c *crowd) wantOpen(t *testing.T) {
	t.Helper()
	for _, s := range c.all() {
		if ending, problems := s.Status(); ending != listen.Open || len(problems) > 0 {
			t.Errorf("a stream at %s: %s %q", s.at.name, ending, problems)
		}
	}
}

// broken waits until the streams at a replica that was killed have ended.
func (c *crowd) broken(t *testing.T, at *replica) {
	t.Helper()
	for _, s := range c.all() {
		if s.at != at {
			continue
		}
		select {
		case <-s.Done:
		case <-time.After(recovery):
			t.Fatalf("a stream at %s, which was killed, does not end", at.name)
		}
	}
}

// reopen opens streams that have ended anew, at the replicas that run.
func (c *crowd) reopen(t *testing.T, living []*replica) int {
	t.Helper()
	all := c.all()
	var ended []int
	for i, s := range all {
		select {
		case <-s.Done:
			ended = append(ended, i)
		default:
		}
	}
	if err := each(len(ended), func(i int) error {
		at := ended[i]
		s, err := c.listen(living[i%len(living)], all[at].want[0])
		if err != nil {
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.streams[at] = s
		return nil
	}); err != nil {
		t.Fatalf("streams that are opened anew: %v", err)
	}
	return len(ended)
}

// owner returns the replica with most claims.
func (w *world) owner() (owner *replica) {
	w.t.Helper()
	rig.Until(w.t, recovery, "somebody has claims", func() string {
		most := 0.0
		for _, r := range w.replicas {
			if r.p == nil {
				continue
			}
			if n := r.gauges()[ownClaims]; n > most {
				owner, most = r, n
			}
		}
		if most == 0 {
			return "nobody has"
		}
		return ""
	})
	return owner
}

// others returns the replicas but one.
func (w *world) others(r *replica) []*replica {
	return slices.DeleteFunc(slices.Clone(w.replicas), func(other *replica) bool { return other == r })
}
