// Package fanout delivers change events to subscribers such that a slow subscriber delays
// neither the publisher nor other subscribers.
//
// An [Event] reports that a [Topic] changed. It does not contain the change: the client
// fetches the resource or list again. The later of two events of one topic therefore
// replaces the earlier one, which bounds memory: a [Mailbox] holds a set of pending
// topics, not a queue of messages. A mailbox belongs to one subscriber. Putting an event
// into it never blocks, and one goroutine drains it to the subscriber's stream.
//
// The package knows topics, but not eras: it has no JSON-RPC, no notification names and
// no subscription ids. Package index, not this one, knows who subscribes to what. The
// package starts no goroutines.
package fanout
