package natskv

import (
	"context"
	"errors"
	"time"
)

const (
	// beginTimeout bounds a question to the server while the buckets are opened: one that gets
	// no answer is asked anew.
	beginTimeout = 2 * time.Second
	// openTimeout bounds opening the buckets, and reading what is in them: that takes longer
	// than a question does if there are very many claims.
	openTimeout = 15 * time.Second
)

// errForgotten is the error of an opening by a connection that is another one by now.
var errForgotten = errors.New("the connection to NATS is another one")

// An opening opens the buckets, for all who wait for that.
type opening struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when it has ended
	b      *buckets      // read-only after, as is err
	err    error
}

// openLocked begins to open the buckets. Close waits for it.
func (s *Store) openLocked() *opening {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	o := &opening{cancel: cancel, done: make(chan struct{})}
	s.opening = o
	s.closing.Go(func() { // ends within openTimeout, or when it is forgotten
		defer cancel()
		o.b, o.err = s.openBuckets(ctx)
		s.opened(o)
		close(o.done)
		s.hints.Send()
	})
	return o
}

// opened uses the buckets, unless they were forgotten meanwhile.
func (s *Store) opened(o *opening) {
	s.mu.Lock()
	current := s.opening == o
	if current {
		s.opening, s.open, s.unused = nil, o.b, true
	}
	s.mu.Unlock()
	if current {
		return
	}
	if o.b != nil {
		o.b.stop()
	}
	o.b, o.err = nil, errForgotten
}

// kept returns the buckets, opened if they have to be. What is opened stays for later calls if
// ctx ends before.
func (s *Store) kept(ctx context.Context) (*buckets, error) {
	for {
		b, o, err := s.openedOrOpening()
		if o == nil {
			return b, err
		}
		select {
		case <-o.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if o.err != errForgotten {
			s.mu.Lock()
			s.unused = s.unused && s.open != o.b
			s.mu.Unlock()
			return o.b, o.err
		}
	}
}

// openedOrOpening returns the buckets, or what opens them.
func (s *Store) openedOrOpening() (*buckets, *opening, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open != nil && s.open.deaf(time.Now()) {
		s.dropLocked()
	}
	switch {
	case s.open != nil:
		s.unused = false
		return s.open, nil, nil
	case s.opening != nil:
		return nil, s.opening, nil
	case s.closed || !s.nc.IsConnected():
		return nil, nil, s.absence()
	}
	return nil, s.openLocked(), nil
}

// dropLocked has the buckets opened again.
func (s *Store) dropLocked() {
	if was := s.open; was != nil && !s.closed {
		s.closing.Go(was.stop) // it tells the server; Close waits for it
	}
	s.open, s.unused = nil, false
}

// refresh has the buckets opened again that were used before. An earlier Poll may not have
// waited until the others were open.
func (s *Store) refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.unused {
		s.dropLocked()
	}
}

// forget has the buckets opened again, also those that are about to be: the connection is
// another one, or something failed.
func (s *Store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked()
}

func (s *Store) forgetLocked() {
	s.dropLocked()
	if s.opening != nil {
		s.opening.cancel()
		s.opening = nil
	}
}
