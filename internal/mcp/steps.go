package mcp

import (
	"strconv"
	"time"
)

const (
	// quietStep is how long a client that wants progress gets none while nothing changes:
	// clients give up after a minute without messages.
	quietStep = 10 * time.Second
	// step is the increment of progress that the gateway invents: so small that the server's own
	// values are above it.
	step = 0.001
)

// Steps are the progress of a call whose server runs it as a task, which has none. The zero value
// is ready to use. Not safe for concurrent use.
type Steps struct {
	n    int
	told time.Time
}

// Next returns the next value if the client is to be told now: the task has changed, or the client
// was told of nothing for some seconds.
func (s *Steps) Next(changed bool) (value []byte, due bool) {
	if !changed && time.Since(s.told) < quietStep {
		return nil, false
	}
	s.told = time.Now()
	s.n++
	return strconv.AppendFloat(nil, float64(s.n)*step, 'f', 3, 64), true
}
