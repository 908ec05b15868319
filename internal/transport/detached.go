package transport

import (
	"crypto/rand"
	"log/slog"
	"time"
)

// MarkVar is an environment variable that each command gets, by which the processes are found that
// have left its process group. It is none of those that configure mcpbridge.
const MarkVar = "STARTED_BY_MCPBRIDGE"

const (
	// detachedGrace is how long detached processes have between SIGTERM and SIGKILL.
	detachedGrace = 500 * time.Millisecond
	// maxNamed bounds the detached processes that are logged for one command.
	maxNamed = 10
)

// newMark returns an entry for the environment of one command.
func newMark() string { return MarkVar + "=" + rand.Text() }

// A detached is a process that a command has started outside its process group.
type detached struct {
	pid     int
	command string // its command line
}

// reportDetached logs the processes that outlive the command, and ends them if that is
// wanted. What a command detaches on purpose would outlive a client that had started it.
func (c *Command) reportDetached() {
	left := findDetached(c.mark)
	if len(left) == 0 {
		return
	}
	what := "processes outlive their command: it started them in sessions of their own; end_detached: true ends them"
	if c.opts.EndDetached {
		what = "ending processes that outlive their command"
	}
	for _, d := range left[:min(len(left), maxNamed)] {
		c.log.Warn(what, "pid", d.pid, "command", c.opts.Secrets.Words(d.command), slog.Int("processes", len(left)))
	}
	if c.opts.EndDetached {
		endDetached(left, c.mark)
	}
}
