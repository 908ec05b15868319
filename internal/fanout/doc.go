// Package fanout answers: what has changed, and how does everyone who asked
// hear of it without anyone waiting for anyone else?
//
// An [Event] says that a [Topic] changed. It is a cue to fetch anew, not the
// change itself, so that two events of one topic are worth no more than the
// later one. That is what keeps memory bounded: a [Mailbox] holds a set of
// pending topics, not a queue of messages. It belongs to one subscriber, never
// blocks whoever puts something in, and is drained by the one goroutine that
// writes the subscriber's stream. A [Bus] carries events from where changes
// are noticed to where mailboxes are, which may be other processes.
//
// The package knows topics, not eras: it holds no JSON-RPC, no notification
// names, no subscription ids. It does not know who subscribed to what either;
// that is package index. It starts no goroutines.
package fanout
