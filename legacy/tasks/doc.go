// Package tasks answers "what became of a call that its server runs as a task?". Some
// servers of 2025-11-25 want certain tools run so: the call is answered at once with the
// name of a task, which is then asked after until it is over. A [Task] does that for one
// call; its result is the call's.
//
// It sends nothing by itself and knows no sessions: both are its [Call]'s. The tasks of the
// extension of 2026 are another thing.
package tasks
