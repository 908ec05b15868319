package tasks

import (
	"strconv"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Limits of the time between two polls of a task, whatever its server asks for.
const (
	defaultPoll = time.Second
	minPoll     = 50 * time.Millisecond
	maxPoll     = 15 * time.Second
)

// A state is the state of a task, as the server describes it.
type state struct {
	status, message, updated string
	poll                     time.Duration // the time to the next poll
}

func readState(text []byte) state {
	s := state{poll: defaultPoll}
	s.status, _ = wire.GetString(text, "status")
	s.message, _ = wire.GetString(text, "statusMessage")
	s.updated, _ = wire.GetString(text, "lastUpdatedAt")
	if ms, err := strconv.ParseFloat(string(wire.Get(text, "pollInterval")), 64); err == nil {
		ms = min(max(ms, 0), float64(maxPoll/time.Millisecond))
		s.poll = max(time.Duration(ms)*time.Millisecond, minPoll)
	}
	return s
}

// over reports whether the status is final.
func (s state) over() bool {
	return s.status == "completed" || s.status == "failed" || s.status == "cancelled"
}

// differs reports whether the state has something new.
func (s state) differs(before state) bool {
	return before.status != s.status || before.message != s.message || before.updated != s.updated
}
