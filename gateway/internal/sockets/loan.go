package sockets

import (
	"context"
	"crypto/rand"
)

// A Loan is the life of a WebSocket, which may be that of another replica's client.
type Loan struct {
	Name string          // by which the other replica ends it; empty if the client is this one's
	Live context.Context // ends when the WebSocket is to end in order
	End  context.CancelFunc
}

// Lend returns the life of a WebSocket that is about to be opened by way of another replica;
// empty for none. The caller must call End.
func (s *Set) Lend(via string) Loan {
	l := Loan{Live: s.live, End: func() {}}
	if via == "" {
		return l
	}
	l.Name = rand.Text()
	live, cancel := context.WithCancelCause(s.live)
	s.mu.Lock()
	s.lent[l.Name] = cancel
	s.mu.Unlock()
	l.Live, l.End = live, func() {
		cancel(nil)
		s.mu.Lock()
		delete(s.lent, l.Name)
		s.mu.Unlock()
	}
	return l
}

// Part begins to end a WebSocket that was lent: because of ErrYielded, or as Stop does if why is
// nil. It reports false if there is none of that name.
func (s *Set) Part(name string, why error) bool {
	s.mu.Lock()
	end := s.lent[name]
	s.mu.Unlock()
	if end != nil {
		end(why)
	}
	return end != nil
}

// Lent returns how many are lent.
func (s *Set) Lent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lent)
}

// Live ends when all WebSockets are to end in order.
func (s *Set) Live() context.Context { return s.live }
