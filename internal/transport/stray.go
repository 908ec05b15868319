package transport

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// strayTime is how long the first line that is no message may wait for what the child does
	// next: the error of one that ends has the line, and a message says that it is a server.
	strayTime = time.Second
	// muteTime is how long a child may write text alone before it is said that it does.
	muteTime = 10 * time.Second
)

// What is logged of the first output that is no message, with the line as an attribute.
const (
	// MsgStray is logged once of each child, within a second.
	MsgStray = "skipping output that is not a message"
	// MsgMute is logged of a child that has written no message for 10 s after it.
	MsgMute = "server writes text, but no messages, to its standard output"
)

// StrayLine is the key of the line.
const StrayLine = "line"

// A strayOutput warns of the first output of a child that is no message.
type strayOutput struct {
	log   *slog.Logger
	level func() slog.Level // of a line that is in the error about the child's end, too

	timers sync.WaitGroup // the timer's call, until it has ended or was stopped

	// mu guards the fields below, and is not held while logging.
	mu     sync.Mutex
	line   string
	bytes  int         // of the whole line
	untold bool        // there is a line that nobody was told of
	timer  *time.Timer // nil if there is nothing to tell of later
}

// begin takes the first line, of which speaks says whether it comes after a message.
func (s *strayOutput) begin(line string, bytes int, speaks bool) {
	s.mu.Lock()
	s.line, s.bytes, s.untold = line, bytes, true
	if !speaks {
		s.startLocked(strayTime, s.late)
	}
	s.mu.Unlock()
	if speaks {
		s.warn(slog.LevelWarn)
	}
}

// startLocked has f called, in a goroutine that end waits for.
func (s *strayOutput) startLocked(after time.Duration, f func()) {
	s.timers.Add(1)
	s.timer = time.AfterFunc(after, func() {
		defer s.timers.Done()
		f()
	})
}

// late warns of a child that goes on without a message.
func (s *strayOutput) late() {
	s.mu.Lock()
	if s.timer != nil { // stop was not called
		s.startLocked(muteTime-strayTime, s.mute)
	}
	s.mu.Unlock()
	s.warn(slog.LevelWarn)
}

func (s *strayOutput) mute() {
	s.mu.Lock()
	line, stopped := s.line, s.timer == nil
	s.timer = nil
	s.mu.Unlock()
	if !stopped {
		s.log.Warn(MsgMute, StrayLine, line, "for", muteTime)
	}
}

// spoke notes that the child has written a message.
func (s *strayOutput) spoke() {
	s.stop()
	s.warn(slog.LevelWarn)
}

// end notes that the child has ended. Nothing is logged after it.
func (s *strayOutput) end() {
	s.stop()
	s.timers.Wait()
	s.warn(s.level())
}

func (s *strayOutput) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil && s.timer.Stop() {
		s.timers.Done()
	}
	s.timer = nil
}

// warn logs the line, unless that was done.
func (s *strayOutput) warn(level slog.Level) {
	s.mu.Lock()
	line, bytes, untold := s.line, s.bytes, s.untold
	s.untold = false
	s.mu.Unlock()
	if untold {
		s.log.Log(context.Background(), level, MsgStray, StrayLine, line, "bytes", bytes)
	}
}
