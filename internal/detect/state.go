package detect

import (
	"context"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A state is what is known of a server, and who waits for more to be known.
type state struct {
	// mu guards the fields below.
	mu   sync.Mutex
	back mcp.Back // of the verdict; nil before there is one
	era  spec.Era
	err  error // why there is no back; ErrStarting before the first probe has ended
	probeState
	verdict       verdict
	waiting       int           // requests that wait for a verdict
	openingRelays int           // relays that are being opened
	changed       chan struct{} // closed when one of these fields changes
	onReplaced    func(error)
	closed        bool
}

func newState() state {
	return state{err: mcp.ErrStarting, changed: make(chan struct{}), onReplaced: func(error) {}}
}

// Era returns the verdict, or spec.Unknown before there is one.
func (s *state) Era() spec.Era {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.era
}

// Err implements [mcp.Back].
func (s *state) Err() error {
	s.mu.Lock()
	back, err := s.back, s.err
	s.mu.Unlock()
	if back != nil {
		return back.Err()
	}
	return err
}

// current returns the back of the verdict; nil before there is one.
func (s *state) current() mcp.Back {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.back
}

// wait records that a request waits for a verdict, until the returned function is called.
func (s *state) wait() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.back != nil {
		return func() {} // AwaitClient is only called before the verdict
	}
	s.waiting++
	s.announceLocked()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.waiting--
	}
}

// AwaitClient returns when a request waits for a verdict, or ctx ends.
func (s *state) AwaitClient(ctx context.Context) {
	for {
		s.mu.Lock()
		waiting, changed := s.waiting, s.changed
		s.mu.Unlock()
		if waiting > 0 {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// replaced reports whether a back was replaced.
func (s *state) replaced(back mcp.Back) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.back != back && !s.closed
}

// beginRelay records that a relay is being opened, until the returned function is called.
func (s *state) beginRelay() (done func()) {
	s.addOpeningRelay(1)
	return func() { s.addOpeningRelay(-1) }
}

func (s *state) addOpeningRelay(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.openingRelays += n
	s.announceLocked()
}

// probeEnded records that a probe has ended. A client may request the next one after a
// pause.
func (s *state) probeEnded(pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probing = false
	s.probed++
	s.lastProbe = time.Now()
	s.nextProbe = s.lastProbe.Add(pause)
	s.announceLocked()
}

// announceLocked wakes the goroutines that wait for a change.
func (s *state) announceLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// WhenReplaced sets a function that is called when a verdict is replaced by the opposite one: clients
// then have to read everything again. Requests wait until it returns, so that it meets no client of the
// new verdict. It must not wait, nor call the Detector.
func (s *state) WhenReplaced(f func(reason error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onReplaced = f
}

// A probeState is the state of the probes.
type probeState struct {
	probing   bool      // a probe is in progress
	probed    int       // probes that have ended
	judged    int       // the probe that the verdict is of, which may not have ended; zero for none
	guessed   bool      // the era is that of the first client, or the server did not respond
	unsure    int       // how many findings in a row were unsure
	lastProbe time.Time // when the last one ended
	nextProbe time.Time // when a client may request another probe after a failed one
}
