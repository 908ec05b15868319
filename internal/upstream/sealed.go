package upstream

import (
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// endless is how long a task is listed that its server keeps for ever, and longest how long any is.
	endless = 24 * time.Hour
	longest = 10 * 365 * 24 * time.Hour
)

// Sealed are Tasks whose ids tell the gateway alone what they name: an id is good as long as the task
// and the gateway's keys, and the list has what was used of late. It is safe for concurrent use.
type Sealed struct {
	*Tasks
	// Again returns the source of a task that is to be listed again, which has an id at its server and
	// runs a tool, and what is known of it. Set it before the first use.
	Again func(task *Task, id, tool string) (TaskSource, TaskState)

	listing sync.Mutex // held while a task is listed again; Tasks.mu may be taken under it
}

// Name gives a task an id for its client: it says which task of the server it is, and for how long the
// server keeps it, in milliseconds; ttl is no number if that is for ever. Name returns for how long the
// task is to be held.
func (s *Sealed) Name(task *Task, id, tool string, ttl []byte) (life time.Duration) {
	of := requeststate.Task{ID: id, Tool: tool}
	if ms, ok := Milliseconds(ttl); ok {
		life = min(time.Duration(min(ms, longest.Milliseconds()))*time.Millisecond, longest)
		of.Expires = time.Now().Add(life)
	} else {
		life = endless
	}
	task.ID = s.opts.Sealer.SealTask(of, s.binding(task.owner))
	return life
}

// binding says whose the id of a task is.
func (s *Sealed) binding(owner mcp.Principal) string {
	return string(wire.AppendString(wire.AppendString(nil, s.opts.Server), string(owner))) // quotes separate them
}

// Find returns the task of an id, if it is the own one of the principal of a request; see [Tasks.Find].
// If it is not listed any more, it is listed again.
func (s *Sealed) Find(req *mcp.Request, id string) (*Task, error) {
	task, err := s.Tasks.Find(req.Principal, id)
	if err == nil || s.opts.Sealer.CheckHandle(id) != requeststate.ErrInvalid {
		return task, err
	}
	of, err := s.opts.Sealer.OpenTask(id, s.binding(req.Principal))
	life := endless
	if !of.Expires.IsZero() {
		life = time.Until(of.Expires)
	}
	if err != nil || life <= 0 {
		return nil, s.Unknown(err)
	}
	s.listing.Lock()
	defer s.listing.Unlock()
	if task, err := s.Tasks.Find(req.Principal, id); err == nil {
		return task, nil
	}
	if task = s.Take(req); task == nil {
		return nil, mcp.RefuseForNow("the gateway holds as many tasks of server %q, or of this client, as it may; ask again when some are over, or %s or %s", s.opts.Server, limits.Tasks.Raise(), limits.TasksEach.Raise())
	}
	task.ID, task.tool = id, of.Tool
	source, first := s.Again(task, of.ID, of.Tool)
	if !task.Hold(source, first, life) {
		task.Drop()
		return nil, mcp.ErrShutdown
	}
	return task, nil
}

// Milliseconds returns a number of milliseconds, rounded up, if it is one that is not negative.
func Milliseconds(text []byte) (int64, bool) {
	ms, err := strconv.ParseFloat(string(text), 64)
	if err != nil || ms < 0 || ms > 1<<53 {
		return 0, false
	}
	return int64(math.Ceil(ms)), true
}
