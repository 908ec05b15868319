package transport

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// warnEvery is the minimum time between two warnings of a WarnLimiter.
const warnEvery = 10 * time.Second

// A WarnLimiter logs warnings that a server may cause any number of times: the first one
// at once, and later ones with the number of skipped warnings. The zero value is ready to
// use. It is safe for concurrent use.
type WarnLimiter struct {
	// mu guards the fields below. It is not held while logging.
	mu     sync.Mutex
	told   time.Time
	untold int
}

// Warn logs a warning, unless one was logged recently.
func (s *WarnLimiter) Warn(log *slog.Logger, msg string, args ...any) {
	s.Log(log, slog.LevelWarn, msg, args...)
}

// Log is Warn for lines of another level.
func (s *WarnLimiter) Log(log *slog.Logger, level slog.Level, msg string, args ...any) {
	s.mu.Lock()
	s.untold++
	now, n := time.Now(), s.untold
	if now.Sub(s.told) < warnEvery {
		s.mu.Unlock()
		return
	}
	s.told, s.untold = now, 0
	s.mu.Unlock()
	if n > 1 {
		args = append(args, "times", n)
	}
	log.Log(context.Background(), level, msg, args...)
}
