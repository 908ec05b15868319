package report

import (
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// legacyTasks has what becomes of the tasks of 2025-11-25 of a server.
var legacyTasks = []row{
	{"tools that must be run as tasks", Changes, "T-09", taskTools("required", holdsTasks),
		"clients of 2026-07-28 that declare the tasks extension hold a task; for others the gateway runs them, and answers the call with the result; clients of 2025-11-25 use them as the server says"},
	{"tools that must be run as tasks", Changes, "M2L-07", taskTools("required", runsTasks),
		"the gateway runs them as tasks, and answers the call with the result; clients of 2026-07-28 hold no tasks (tasks: run); those of 2025-11-25 use them as the server says"},
	{"tools that must be run as tasks", Refused, "T-08", taskTools("required", leavesTasks),
		"they are called plainly (tasks: off, or extensions.hide), which the server refuses; clients of 2025-11-25 use them as the server says"},
	{"tools that may be run as tasks", Changes, "T-09", taskTools("optional", prefersTasks),
		"clients of 2026-07-28 that declare the tasks extension hold a task; for others they are called as any other; clients of 2025-11-25 use them as the server says"},
	{"tools that may be run as tasks", Crosses, "T-08", taskTools("optional", prefersCalls),
		"they are called as any other, as tasks has it; clients of 2025-11-25 use them as the server says"},
	{"tools with taskSupport", Crosses, "T-09", strayTaskTools,
		"the server does not declare that calls run as tasks (tasks.requests.tools.call): they are called as any other"},
	{"tasks that a client holds (tasks/*)", Changes, "T-05", taskServer(holdsTasks),
		"clients of 2026-07-28 are told the tasks extension, and hold tasks in its form, under ids of the gateway's; clients of 2025-11-25 hold them as the server has them"},
	{"tasks that a client holds (tasks/*)", Refused, "T-08", taskServer(holdsNoTasks),
		"clients of 2026-07-28 are told nothing of tasks, and hold none (tasks: run, tasks: off, or extensions.hide); clients of 2025-11-25 hold them as the server has them"},
	{"tasks that a client holds (tasks/*)", NotOffered, "T-05", strayTasks,
		"the server runs no calls of tools as tasks (tasks.requests.tools.call)"},
}

// modernTasks has what becomes of the tasks extension of a server.
var modernTasks = []row{
	{"the tasks extension", Changes, "T-20", tasksKey(bothHold),
		"clients of 2025-11-25 hold tasks in the form of their revision, if a call asks for one; tools that run as tasks alone are run by mcpbridge for all others, and answered as ordinary calls"},
	{"the tasks extension", Changes, "T-24", tasksKey(modernHold),
		"clients hold no tasks; tools that run as tasks alone are run by mcpbridge, and answered as ordinary calls; with tasks: on, clients of 2025-11-25 hold tasks"},
	{"tools that run as tasks alone", Changes, "T-24", keyless(runsTasks),
		"they are run by mcpbridge for clients of 2025-11-25 and before, and answered as ordinary calls; nobody holds tasks (tasks: run)"},
	{"tasks that a client holds (tasks/*)", NotOffered, "L2M-10", noneHeld,
		"a server of 2026-07-28 has none of those of 2025-11-25: -32601"},
}

// heldByOld is what clients of 2025-11-25 get of the tasks extension under tasks: on.
var heldByOld = Treatment{Changes, "clients of 2025-11-25 hold tasks in the form of their revision, under sealed ids; tools that run as tasks alone are run by mcpbridge for all others", "T-20"}

// The conditions on the settings of tasks; nil are those of no configuration.

func holdsTasks(set *settings.Server) bool   { return set.HoldsTasks() }
func holdsNoTasks(set *settings.Server) bool { return !set.HoldsTasks() }
func runsTasks(set *settings.Server) bool    { return set.RunsTasks() && !set.HoldsTasks() }
func leavesTasks(set *settings.Server) bool  { return !set.RunsTasks() }
func bothHold(set *settings.Server) bool {
	return set.HoldsTasks() && set.Tasks.Mode == settings.TasksOn
}
func modernHold(set *settings.Server) bool {
	return set.HoldsTasks() && set.Tasks.Mode != settings.TasksOn
}

func prefersTasks(set *settings.Server) bool {
	return set.HoldsTasks() && set.Tasks.Optional != settings.OptionalCall
}
func prefersCalls(set *settings.Server) bool { return !prefersTasks(set) }

// runsCalls reports whether the server runs calls of tools as tasks, as 2025-11-25 has them.
func (s *probed) runsCalls() bool {
	return s.declares("tasks.requests.tools.call") && len(s.Revisions) > 0 && s.Revisions[0] >= spec.Rev20251125
}

// taskTools holds if the server runs calls as tasks, has tools with a taskSupport, and settings that so
// is true of.
func taskTools(support string, so func(*settings.Server) bool) func(*probed) ([]string, bool) {
	return func(s *probed) ([]string, bool) {
		if !s.runsCalls() || !so(&s.Settings) {
			return nil, false
		}
		return tools(runsAsTask(support))(s)
	}
}

// strayTaskTools holds if tools have a taskSupport that means nothing.
func strayTaskTools(s *probed) ([]string, bool) {
	if s.runsCalls() {
		return nil, false
	}
	return tools(func(tool []byte) bool { return runsAsTask("required")(tool) || runsAsTask("optional")(tool) })(s)
}

// taskServer holds if the server runs calls as tasks, and so is true of its settings.
func taskServer(so func(*settings.Server) bool) func(*probed) ([]string, bool) {
	return func(s *probed) ([]string, bool) { return nil, s.runsCalls() && so(&s.Settings) }
}

// strayTasks holds if the server declares tasks, and runs no calls as such.
func strayTasks(s *probed) ([]string, bool) { return nil, s.declares("tasks") && !s.runsCalls() }

// tasksKey holds if the server declares the tasks extension, and so is true of its settings; keyless does
// so for settings that hide it.
func tasksKey(so func(*settings.Server) bool) func(*probed) ([]string, bool) {
	return func(s *probed) ([]string, bool) {
		if !so(&s.Settings) {
			return nil, false
		}
		return members("extensions", true)(s)
	}
}

func keyless(so func(*settings.Server) bool) func(*probed) ([]string, bool) {
	return func(s *probed) ([]string, bool) {
		return nil, so(&s.Settings) && s.hasKey() && slices.Contains(s.Settings.Hidden(), spec.ExtensionTasks)
	}
}

// noneHeld holds if clients of 2025-11-25 hold no tasks of the server.
func noneHeld(s *probed) ([]string, bool) { return nil, !s.hasKey() || !bothHold(&s.Settings) }

func (s *probed) hasKey() bool {
	all, _ := members("extensions", true)(&probed{Verdict: s.Verdict}) // also if it is hidden
	return len(all) > 0
}
