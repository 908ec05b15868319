package fanout

import (
	"cmp"
	"sync"
)

// DefaultMaxSubresources is how many sub-resources of one topic may be pending
// before the topic's own URI stands for them.
const DefaultMaxSubresources = 64

// smallPending is the number of pending events up to which they are found by
// looking at each: few streams ever have more, and a map costs more than it
// saves.
const smallPending = 4

// MailboxOptions configures a [Mailbox]. The zero value is ready to use.
type MailboxOptions struct {
	// MaxSubresources is how many distinct sub-resource URIs of one topic may be
	// pending. Past it, one event under the topic's own URI stands for them all.
	// Zero means DefaultMaxSubresources; negative means that every sub-resource
	// is told under the topic's own URI.
	MaxSubresources int
}

// A Mailbox holds what one subscriber has yet to be told. Anybody may Put; one
// writer waits for Ready and then calls Next until there is nothing:
//
//	for ended := false; !ended; _, ended = mail.Ended() {
//		<-mail.Ready()
//		for ev, ok := mail.Next(); ok; ev, ok = mail.Next() {
//			// write ev
//		}
//	}
//
// An event is pending once for its topic and the URI it names. Putting it again
// changes neither its place nor the number of pending events; the latest one's
// Meta, or lack of it, replaces the former. So a mailbox never holds more than
// MaxSubresources+1 events for each topic that its subscriber has, however slow
// the writer is. Events come out in the order in which they became pending.
type Mailbox struct {
	// Set by NewMailbox, read-only after.
	ready  chan struct{} // capacity 1, so that waking the writer never blocks
	subMax int           // not negative

	// mu guards the fields below, for work in memory only: ready is signalled
	// after it is released.
	mu      sync.Mutex
	queue   []Event // consumed before head; a zero Event was dropped
	head    int
	live    int                // events pending in queue
	places  map[mark]int       // position in queue; nil up to smallPending
	nested  map[Topic]*nesting // topics with sub-resources pending or collapsed
	refused map[Topic]struct{}
	end     *ending // nil until End
}

// An ending is why a mailbox ended. It is apart because ten thousand idle
// streams have none.
type ending struct{ reason error }

// A mark is the identity of a pending event.
type mark struct {
	topic Topic
	uri   string
}

// A nesting is what is pending of a topic's sub-resources: either some of them,
// or an event under the topic's own URI that stands for them all.
type nesting struct {
	at        []int // positions in queue, ascending
	collapsed bool
}

// NewMailbox returns an empty Mailbox. It needs no closing.
func NewMailbox(opts MailboxOptions) *Mailbox {
	return &Mailbox{
		ready:  make(chan struct{}, 1),
		subMax: max(0, cmp.Or(opts.MaxSubresources, DefaultMaxSubresources)),
	}
}

// Put makes ev pending, in constant time and without blocking. After End it
// does nothing, nor does it for a refused topic or an invalid kind.
func (m *Mailbox) Put(ev Event) {
	if !ev.Topic.Kind.Valid() {
		return
	}
	ev.URI = ev.named()
	m.mu.Lock()
	added := m.putLocked(ev)
	m.mu.Unlock()
	if added {
		m.wake()
	}
}

// Ready returns a channel that receives when there may be something to do: an
// event became pending, or the mailbox ended. One receive may stand for many,
// and some for nothing, so the writer calls Next until it reports false.
func (m *Mailbox) Ready() <-chan struct{} { return m.ready }

// Next takes the event that has been pending longest. It reports false if there
// is none. An event's URI is never empty if its topic has one.
func (m *Mailbox) Next() (Event, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.head < len(m.queue) {
		at := m.head
		ev := m.queue[at]
		m.head++
		if ev.Topic.Kind.Valid() {
			m.unnestLocked(ev)
			m.clearLocked(at)
			return ev, true
		}
	}
	return Event{}, false
}

// Drop takes back what is pending for topics, as when the subscriber has left
// them. An event that is put afterwards becomes pending as ever.
func (m *Mailbox) Drop(topics ...Topic) {
	dropped := setOf(topics)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropLocked(dropped)
}

// Refuse drops topics for good: nothing of them comes out of Next any more, not
// even an event that somebody who looked the subscriber up before is about to
// put. It is for topics that were registered before the upstream's answer was
// known, and were then not acknowledged: they are remembered until the mailbox
// is gone.
//
// Spec: 2026-07-28, basic/patterns/subscriptions, Acknowledgment.
func (m *Mailbox) Refuse(topics ...Topic) {
	if len(topics) == 0 {
		return
	}
	dropped := setOf(topics)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refused == nil {
		m.refused = make(map[Topic]struct{}, len(topics))
	}
	for topic := range dropped {
		m.refused[topic] = struct{}{}
	}
	m.dropLocked(dropped)
}

// Accept takes back what Refuse said of topics. What was dropped stays dropped.
func (m *Mailbox) Accept(topics ...Topic) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range topics {
		delete(m.refused, t)
	}
}

// End says that nothing more will come, and why. What is pending stays to be
// drained. The first reason counts; reason may be nil.
func (m *Mailbox) End(reason error) {
	m.mu.Lock()
	if m.end == nil {
		m.end = &ending{reason}
	}
	m.mu.Unlock()
	m.wake()
}

// Ended reports whether the mailbox has ended and is drained, and the reason
// that was given to End. As long as something is pending it reports false.
func (m *Mailbox) Ended() (reason error, ended bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.end == nil || m.live > 0 {
		return nil, false
	}
	return m.end.reason, true
}

// Len returns the number of pending events.
func (m *Mailbox) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live
}

func (m *Mailbox) wake() {
	select {
	case m.ready <- struct{}{}:
	default: // the writer has yet to notice the last time
	}
}
