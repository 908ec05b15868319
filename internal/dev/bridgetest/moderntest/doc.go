// Package moderntest has what tests of a modern front share: its clients, over HTTP and
// over a connection, and what stands behind it.
//
// It knows a front by its methods alone, so that the front's own tests and those that
// put a front before a back can both use it. It is imported by tests only.
package moderntest
