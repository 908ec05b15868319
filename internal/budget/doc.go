// Package budget answers one question: is there memory left for this? A [Budget] is an
// amount of bytes; an [Account] draws on it for one owner. Nobody waits: what can't be
// had now is refused. What an owner may have shrinks with what is left, so that one
// that takes all it can get leaves something for the next.
//
// An account borrows in blocks and gives and takes within them without a lock. The
// package knows nothing of what the bytes are for.
package budget
