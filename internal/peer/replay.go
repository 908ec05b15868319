package peer

import (
	"sync"
	"time"
)

const (
	// windowSize is by how many requests of one replica another may be overtaken.
	windowSize = 1 << 16
	// maxSenders bounds the replicas whose nonces are remembered, which takes 8 KiB each.
	maxSenders = 1024
)

var (
	errReplayed = refused("the envelope was used before")
	errSenders  = refused("too many replicas have sent requests to this one in the last 45 s: 1024, the limit")
)

// replays remembers the nonces of envelopes that were accepted: of each sender the highest,
// and which of those just below it.
type replays struct {
	mu sync.Mutex // guards by
	by map[string]*window
}

// A window has the nonces of one sender.
type window struct {
	highest uint64
	seen    [windowSize / 64]uint64 // a ring of bits
	last    time.Time               // when it was used
}

// accept returns an error unless a nonce is new. The envelope was verified, and is valid at now.
func (s *replays) accept(from string, nonce uint64, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.by[from]
	if w == nil {
		if s.forgetLocked(now); len(s.by) >= maxSenders {
			return errSenders
		}
		if s.by == nil {
			s.by = make(map[string]*window)
		}
		w = new(window)
		s.by[from] = w
	}
	w.last = now
	if !w.accept(nonce) {
		return errReplayed
	}
	return nil
}

// forgetLocked removes the windows of senders that have sent nothing for longer than their
// envelopes are valid.
func (s *replays) forgetLocked(now time.Time) {
	for from, w := range s.by {
		if now.Sub(w.last) > 3*lifetime {
			delete(s.by, from)
		}
	}
}

func (w *window) accept(nonce uint64) bool {
	switch {
	case nonce == 0 || nonce+windowSize <= w.highest || nonce+windowSize < nonce:
		return false
	case nonce > w.highest:
		w.clear(w.highest+1, nonce)
		w.highest = nonce
	}
	word, bit := &w.seen[nonce/64%uint64(len(w.seen))], uint64(1)<<(nonce%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}

// clear forgets what the ring has in the places of some nonces.
func (w *window) clear(from, to uint64) {
	if to-from >= windowSize {
		clear(w.seen[:])
		return
	}
	for n := from; n <= to; n++ {
		w.seen[n/64%uint64(len(w.seen))] &^= 1 << (n % 64)
	}
}
