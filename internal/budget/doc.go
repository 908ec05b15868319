// Package budget shares a bounded amount of memory fairly between owners. A [Budget] is a
// number of bytes; an [Account] takes from it for one owner. Take never waits: it
// succeeds or fails at once. The share of one owner depends on how much is left, so that
// an owner that takes all it can get leaves memory for others.
//
// An account borrows memory in blocks; Take and Give within them need no lock. The
// package does not know what the bytes are used for.
package budget
