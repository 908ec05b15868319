package transport

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// loggedLines is the maximum of logged lines of one child per loggedPeriod.
	loggedLines  = 200
	loggedPeriod = time.Second
)

// A lineLimit bounds how many lines of a child are logged. It counts the dropped lines,
// and logs the count at the end of each period.
type lineLimit struct {
	log    *slog.Logger
	source string // "standard error"

	tellers sync.WaitGroup // the timer's call, until it has ended or was stopped

	// mu guards the fields below, and is not held while logging.
	mu      sync.Mutex
	begun   time.Time // of the period
	logged  int
	omitted int
	level   slog.Level  // of the last dropped line
	timer   *time.Timer // of the period's end; nil if no line was dropped
	over    bool        // see end
}

// allows reports whether to log a line of this level.
func (l *lineLimit) allows(level slog.Level) bool {
	if !l.log.Enabled(context.Background(), level) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	now := time.Now()
	if now.Sub(l.begun) >= loggedPeriod && l.omitted == 0 {
		l.begun, l.logged = now, 0
	}
	if l.logged < loggedLines {
		l.logged++
		return true
	}
	l.omitted++
	l.level = level
	if l.timer == nil {
		l.tellers.Add(1)
		l.timer = time.AfterFunc(loggedPeriod-now.Sub(l.begun), l.period) // end waits for it
	}
	return false
}

// period ends a period in which lines were dropped.
func (l *lineLimit) period() {
	defer l.tellers.Done()
	l.tell()
}

// tell logs the number of dropped lines, and begins a period.
func (l *lineLimit) tell() {
	l.mu.Lock()
	n, level := l.omitted, l.level
	l.omitted, l.logged, l.begun, l.timer = 0, 0, time.Now(), nil
	l.mu.Unlock()
	if n > 0 {
		l.log.Log(context.Background(), level, "server wrote more than is logged", "to", l.source, "lines", n, "limit", loggedLines, "per", loggedPeriod)
	}
}

// end logs the number of dropped lines. Later lines are not logged.
func (l *lineLimit) end() {
	l.mu.Lock()
	l.over = true
	if l.timer != nil && l.timer.Stop() {
		l.tellers.Done()
	}
	l.mu.Unlock()
	l.tellers.Wait()
	l.tell()
}
