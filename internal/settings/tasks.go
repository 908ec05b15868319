package settings

import (
	"cmp"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Tasks configure what becomes of tasks on the way to a server.
type Tasks struct {
	Mode     TaskMode      `koanf:"mode" default:"auto" enum:"auto on run off" doc:"auto: clients of 2026-07-28 hold tasks, and tools that run as tasks alone are run for all others; on: clients of 2025-11-25 hold tasks, too; run: nobody holds tasks across eras or is told of the extension, but such tools are run; off: not even that"`
	TTL      time.Duration `koanf:"ttl" default:"1h" min:"1s" max:"168h" doc:"how long a task of a server of 2025-11-25 is held for a client of 2026-07-28, from its creation"`
	Optional string        `koanf:"optional" default:"task" enum:"task call" doc:"what clients of 2026-07-28 that hold tasks get of a tool of a server of 2025-11-25 which can run as a task, but need not: a task, or a call"`
}

// A TaskMode says who holds tasks, and for whom tools are run that run as tasks alone.
type TaskMode string

// The modes. Empty means TasksAuto.
const (
	TasksAuto TaskMode = "auto" // clients of 2026-07-28 hold tasks
	TasksOn   TaskMode = "on"   // clients of 2025-11-25 do, too
	TasksRun  TaskMode = "run"  // nobody does, but tools are run
	TasksOff  TaskMode = "off"  // tools are not run either
)

// What Optional says. Empty means OptionalTask.
const (
	OptionalTask = "task"
	OptionalCall = "call"
)

// DefaultTaskTTL is how long a task is held.
const DefaultTaskTTL = time.Hour

// Life returns how long a task is held.
func (t Tasks) Life() time.Duration { return cmp.Or(t.TTL, DefaultTaskTTL) }

// HoldsTasks reports whether clients of 2026-07-28 may hold tasks.
func (s *Server) HoldsTasks() bool {
	return s.Tasks.Mode != TasksRun && s.Tasks.Mode != TasksOff && !s.hidesTasks()
}

// RunsTasks reports whether tools that run as tasks alone are run for clients that hold none.
func (s *Server) RunsTasks() bool { return s.Tasks.Mode != TasksOff && !s.hidesTasks() }

func (s *Server) hidesTasks() bool { return slices.Contains(s.Extensions.Hide, spec.ExtensionTasks) }

// Hidden returns the names of extensions and experimental capabilities that are not
// forwarded, including the tasks extension if nobody holds tasks.
func (s *Server) Hidden() []string {
	if s.HoldsTasks() || s.hidesTasks() {
		return s.Extensions.Hide
	}
	return append(s.Extensions.Hide[:len(s.Extensions.Hide):len(s.Extensions.Hide)], spec.ExtensionTasks)
}
