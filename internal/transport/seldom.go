package transport

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// seldomEvery is how often a Seldom logs at most.
const seldomEvery = 10 * time.Second

// A Seldom logs what a server may cause without end: the first time at once, later ones
// with how often it happened meanwhile. The zero value is ready to use. It is safe for
// concurrent use.
type Seldom struct {
	// mu guards the fields below. It is not held while anything is logged.
	mu     sync.Mutex
	told   time.Time
	untold int
}

// Warn logs a warning, unless one was logged a moment ago.
func (s *Seldom) Warn(log *slog.Logger, msg string, args ...any) {
	s.mu.Lock()
	s.untold++
	now, n := time.Now(), s.untold
	if now.Sub(s.told) < seldomEvery {
		s.mu.Unlock()
		return
	}
	s.told, s.untold = now, 0
	s.mu.Unlock()
	if n > 1 {
		args = append(args, "times", n)
	}
	log.Log(context.Background(), slog.LevelWarn, msg, args...)
}
