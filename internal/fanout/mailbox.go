package fanout

import (
	"cmp"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// DefaultMaxSubresources is how many sub-resources of one topic may be pending before one
// event with the topic's own URI replaces them.
const DefaultMaxSubresources = 64

// MaxMessages is how many log messages may be pending in a mailbox, and MaxMessageBytes how many
// bytes of them. For those beyond, one event says that they were left out.
const (
	MaxMessages     = 64
	MaxMessageBytes = 64 << 10
)

// smallPending is the number of pending events up to which a linear search is used. Few
// streams have more, and for so few events a map costs more than it saves.
const smallPending = 4

// MailboxOptions configures a [Mailbox]. The zero value is ready to use.
type MailboxOptions struct {
	// MaxSubresources is how many distinct sub-resource URIs of one topic may be pending.
	// Beyond that, one event with the topic's own URI replaces them all. Zero means
	// DefaultMaxSubresources. If it is negative, every event of a sub-resource gets the
	// topic's own URI.
	MaxSubresources int
	// Ready is the signal of several mailboxes, if one writer drains them all. Nil means one
	// of its own.
	Ready wake.Signal
}

// A Mailbox holds the events that have not yet been sent to one subscriber. Any goroutine
// may call Put; one writer waits for Ready and then calls Next until the mailbox is
// empty:
//
//	for ended := false; !ended; _, ended = mail.Ended() {
//		<-mail.Ready()
//		for ev, ok := mail.Next(); ok; ev, ok = mail.Next() {
//			// write ev
//		}
//	}
//
// At most one event is pending per topic and URI. A repeated event keeps the position of
// the first, and only replaces its Meta and, by a higher one, its Number. So a mailbox never holds more than
// MaxSubresources+1 events per topic of its subscriber, however slow the writer is. Of log
// messages none replaces another: there are at most MaxMessages. Next
// returns events in the order in which they became pending.
type Mailbox struct {
	maxSubresources int // not negative; set by NewMailbox

	// mu guards the fields below. It is released before the writer is told.
	mu      sync.Mutex
	ready   wake.Signal // the writer has something to do; nil before Ready
	turns   *wake.Turns // told instead, unless it is nil
	queue   []Event     // consumed before head; a zero Event was dropped
	head    int
	live    int                    // events pending in queue
	places  map[eventKey]int       // position in queue; nil up to smallPending
	subs    map[Topic]*pendingSubs // topics with sub-resources pending or collapsed, or log messages
	ignored *ignored               // nil if nothing is
	end     *ending                // nil until End
}

// ignored is what a mailbox ignores. It is allocated separately, as few do.
type ignored struct {
	topics map[Topic]struct{}
	hides  func(Event) bool // nil for none
}

// An ending is why a mailbox ended. It is allocated separately, to keep the mailboxes of
// idle streams small.
type ending struct{ reason error }

// An eventKey identifies a pending event.
type eventKey struct {
	topic Topic
	uri   string
}

// A pendingSubs tells which sub-resources of a topic are pending: either some of them,
// or one event with the topic's own URI for all of them.
type pendingSubs struct {
	at        []int // positions in queue, ascending
	collapsed bool
	messages  pendingMessages
}

// pendingMessages tells which log messages of a topic are pending.
type pendingMessages struct {
	last  uint64 // the number of the last one, which tells them apart
	count int
	bytes int
}

// NewMailbox returns an empty Mailbox. It need not be closed.
func NewMailbox(opts MailboxOptions) *Mailbox {
	return &Mailbox{
		ready:           opts.Ready,
		maxSubresources: max(0, cmp.Or(opts.MaxSubresources, DefaultMaxSubresources)),
	}
}

// Put makes ev pending, in constant time and without blocking. It does nothing after End,
// for a refused topic, for a hidden sub-resource, and for an invalid kind.
func (m *Mailbox) Put(ev Event) {
	if !ev.Topic.Kind.Valid() {
		return
	}
	ev.URI = ev.named()
	m.mu.Lock()
	added := m.putLocked(ev)
	ready, turns := m.ready, m.turns
	m.mu.Unlock()
	if added {
		tell(ready, turns)
	}
}

// tell tells the writer that there is something to do.
func tell(ready wake.Signal, turns *wake.Turns) {
	if turns != nil {
		turns.Send()
		return
	}
	ready.Send()
}

// Ready returns a channel from which the writer can receive when an event may have become
// pending, or the mailbox may have ended. One value may stand for several events or for
// none, so the writer calls Next until it reports false.
func (m *Mailbox) Ready() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ready == nil {
		m.ready = wake.NewSignal()
		if m.isDueLocked() {
			m.ready.Send()
		}
	}
	return m.ready
}

// Notify has turns sent to instead of Ready, and at once if the writer has something to do. Nil is
// for Ready again.
func (m *Mailbox) Notify(turns *wake.Turns) {
	m.mu.Lock()
	m.turns = turns
	due, ready := m.isDueLocked(), m.ready
	m.mu.Unlock()
	if due {
		tell(ready, turns)
	}
}

func (m *Mailbox) isDueLocked() bool { return m.live > 0 || m.end != nil }

// Next removes and returns the event that has been pending longest. It reports false if
// there is none. The event's URI is not empty if its topic has one.
func (m *Mailbox) Next() (Event, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.head < len(m.queue) {
		at := m.head
		ev := m.queue[at]
		m.head++
		if ev.Topic.Kind.Valid() {
			m.takenLocked(ev)
			m.clearLocked(at)
			return ev, true
		}
	}
	return Event{}, false
}

// Refuse removes the pending events of topics, and makes the mailbox ignore later ones.
// This includes an event that another goroutine is about to put because it looked up the
// subscriber before. Refuse is for topics that were registered before the upstream server
// answered, and that the server did not acknowledge. The mailbox remembers them until
// Accept.
//
// Spec: 2026-07-28, basic/patterns/subscriptions, Acknowledgment.
func (m *Mailbox) Refuse(topics ...Topic) {
	if len(topics) == 0 {
		return
	}
	dropped := setOf(topics)
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.ignoredLocked()
	if i.topics == nil {
		i.topics = make(map[Topic]struct{}, len(topics))
	}
	for topic := range dropped {
		i.topics[topic] = struct{}{}
	}
	m.dropLocked(dropped)
}

// Hide makes the mailbox ignore later events of sub-resources for which hides, or one that was
// given before, returns true. It must be quick, and safe for concurrent use.
func (m *Mailbox) Hide(hides func(Event) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.ignoredLocked()
	if before := i.hides; before != nil {
		i.hides = func(ev Event) bool { return before(ev) || hides(ev) }
		return
	}
	i.hides = hides
}

func (m *Mailbox) ignoredLocked() *ignored {
	if m.ignored == nil {
		m.ignored = new(ignored)
	}
	return m.ignored
}

// has reports whether an event is ignored.
func (i *ignored) has(ev Event) bool {
	if i == nil {
		return false
	}
	_, refused := i.topics[ev.Topic]
	return refused || i.hides != nil && ev.Topic.Kind == ResourceUpdated && ev.isSubresource() && i.hides(ev)
}

// Accept undoes Refuse for later events of topics.
func (m *Mailbox) Accept(topics ...Topic) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ignored == nil {
		return
	}
	for _, t := range topics {
		delete(m.ignored.topics, t)
	}
}

// End makes the mailbox ignore later events, for a reason that may be nil. Pending events
// can still be drained. Further calls do not change the reason.
func (m *Mailbox) End(reason error) {
	m.mu.Lock()
	if m.end == nil {
		m.end = &ending{reason}
	}
	ready, turns := m.ready, m.turns
	m.mu.Unlock()
	tell(ready, turns)
}

// Ended reports whether the mailbox has ended and is drained, and the reason that was
// given to End. It reports false as long as an event is pending.
func (m *Mailbox) Ended() (reason error, ended bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.end == nil || m.live > 0 {
		return nil, false
	}
	return m.end.reason, true
}

// Closed reports whether End was called, also if events are still pending.
func (m *Mailbox) Closed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.end != nil
}

// Len returns the number of pending events.
func (m *Mailbox) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live
}
