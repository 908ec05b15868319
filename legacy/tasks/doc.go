// Package tasks has calls that a server executes as tasks of revision 2025-11-25: it answers them
// at once with the id of a task, whose state is polled until it has ended. A [Run] is the task of a
// call whose client does not know of it; its result is the call's. A [Held] is one that a client of
// 2026-07-28 holds under an id of the gateway's own, as the tasks extension has it; a [Holding] serves
// such clients.
//
// Both are sources of an [upstream.Task], which says when they are looked at. The package does not
// know sessions: a [Call] or a [Session] sends its requests.
package tasks
