// Package metrics answers: how much of everything has there been?
//
// [Metrics] counts with plain methods that take strings. Whoever counts
// declares an interface of the few methods it needs; nobody below cmd imports
// this package. The counters live in a registry of their own, so that two
// gateways in one process do not meet.
//
// The package refuses to know what its labels mean, with one exception: the
// method of a request is chosen by clients, so methods outside the
// specification are counted together. Everything else that becomes a label
// comes from the configuration or the source code and is therefore bounded.
package metrics
