// Package subscribe answers one question: who asked an upstream for which changes,
// and what do they wait for?
//
// A [Query] is one call of an upstream's Watch. A [Table] gives queries to the [Book] of
// their profile: one loop, started for the first query and gone when nothing is wanted any
// more. The Book knows who waits for which topic, what was promised, what nobody wants any
// more but is kept for a moment, and which changes may have been missed. Its [Driver] gets
// the server to tell of what is wanted: each era has its own.
package subscribe
