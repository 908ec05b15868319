package tasks

import (
	"time"

	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A state is the state of a task, as the server describes it.
type state struct {
	text            []byte // the whole task
	status, message string
	pause           time.Duration // the time to the next look
}

func readState(text []byte) state {
	s := state{text: text, pause: upstream.PauseOf(wire.Get(text, "pollInterval"))}
	s.status, _ = wire.GetString(text, "status")
	s.message, _ = wire.GetString(text, "statusMessage")
	return s
}

// IsOver reports whether a task, as its server returns it, is over.
func IsOver(task []byte) bool { return upstream.TaskOver(readState(task).status) }
