// Package owner checks whether a task or a requestState that a client names belongs to its
// principal.
//
// A server can tell its clients apart by their credentials, but behind a gateway all are
// one client to it, and whoever knows the name of a task or requestState could use it. So
// the gateway stores the principals of tasks, and adds a tag to requestStates. Those of
// other principals are treated as if they did not exist.
//
// The package does not know who a principal is, or what a server stores under the names.
package owner
