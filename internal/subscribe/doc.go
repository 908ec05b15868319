// Package subscribe manages the subscriptions at one server: who subscribed to which
// changes, and what each waits for.
//
// A [Query] is one call of a server's Watch. A [Table] passes queries to the [Book] of
// their profile: one loop, which is started for the first query and ends when no topics are
// needed. The Book knows who waits for which topic, which topics were accepted, which have
// no subscribers but stay subscribed for a moment, and which changes may have been missed.
// Its [Driver] makes the subscriptions at the server: each era has its own.
package subscribe
