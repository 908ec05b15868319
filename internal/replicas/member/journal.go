package member

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// warnings bounds how often a minute what is wrong in records is logged.
	warnings = 1
	// changes bounds how often a minute the same change of replicas is logged.
	changes = 50
)

// A journal logs what happens to replicas, and bounds how often a minute it says the same. It is safe
// for concurrent use.
type journal struct {
	logger *slog.Logger

	mu     sync.Mutex     // guards the fields below; a leaf, not held while logging
	minute time.Time      // since when lines are counted
	lines  map[string]int // in this minute, by their message
}

func newJournal(logger *slog.Logger) *journal {
	return &journal{logger: logger, lines: make(map[string]int)}
}

// log logs a line, unless the same message was logged often enough in this minute.
func (j *journal) log(most int, level slog.Level, msg string, args ...any) {
	j.mu.Lock()
	j.lines[msg]++
	often := j.lines[msg] > most
	j.mu.Unlock()
	if !often {
		j.logger.Log(context.Background(), level, msg, args...)
	}
}

// gather begins another minute, and tells how often changes were not logged in the last one.
func (j *journal) gather(now time.Time) {
	j.mu.Lock()
	if now.Sub(j.minute) < time.Minute {
		j.mu.Unlock()
		return
	}
	lines := j.lines
	j.minute, j.lines = now, make(map[string]int)
	j.mu.Unlock()
	for msg, n := range lines {
		if n > changes {
			j.logger.Warn("the same of more replicas in the last minute", "what", msg, "times", n-changes)
		}
	}
}
