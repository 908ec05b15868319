package live

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"
)

// A state is computed at most once in leastPause, and such that computing it takes at most
// one part in shareOfTime of the time.
const (
	leastPause  = 1500 * time.Millisecond
	shareOfTime = 2000
)

// A State is what a gateway holds, as JSON, for all who look. Safe for concurrent use.
type State struct {
	get func() any

	// mu guards the fields below. It is held while the state is computed.
	mu      sync.Mutex
	text    []byte
	version uint64
	next    time.Time
}

// NewState returns a State that get computes. What get returns has no time in it that
// changes with nothing else.
func NewState(get func() any) *State { return &State{get: get} }

// Latest returns the state, which may be somewhat old, and its version: another one is
// another text.
func (s *State) Latest() (text []byte, version uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	if began.Before(s.next) {
		return s.text, s.version
	}
	text, err := json.Marshal(s.get())
	if err == nil && !bytes.Equal(text, s.text) {
		s.text = text
		s.version++
	}
	now := time.Now()
	s.next = now.Add(max(leastPause, shareOfTime*now.Sub(began)))
	return s.text, s.version
}
