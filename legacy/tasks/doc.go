// Package tasks runs calls that a server executes as tasks of revision 2025-11-25. Some
// servers require that for certain tools: they answer the call at once with the id of a
// task, whose state the client polls until it has ended. A [Task] does that for one call;
// its result is the call's.
//
// It does not know sessions: its [Call] sends its requests. The tasks of the 2026 extension
// are a different feature.
package tasks
