package fanout

import "strconv"

// putLocked makes ev pending, and reports whether the mailbox has one more event.
func (m *Mailbox) putLocked(ev Event) (added bool) {
	if m.end != nil || m.ignored.has(ev) {
		return false
	}
	if ev.IsMessage() {
		ev = m.messageLocked(ev)
	}
	if m.collapsedLocked(ev) {
		ev.URI = ev.Topic.URI
	}
	if at, ok := m.findLocked(ev); ok {
		m.replaceLocked(at, ev)
		return false
	}
	if ev.isSubresource() && m.fullLocked(ev.Topic) {
		return m.collapseLocked(ev)
	}
	m.appendLocked(ev)
	return true
}

// messageLocked returns the event of a log message, with a URI of its own; or, if there is no room
// for it, the one that stands for those that are left out.
func (m *Mailbox) messageLocked(ev Event) Event {
	t := &m.pendingSubsLocked(ev.Topic).messages
	if t.count >= MaxMessages || t.bytes+len(ev.Meta) > MaxMessageBytes {
		return Event{Topic: ev.Topic, URI: LeftOut}
	}
	t.last++
	t.count++
	t.bytes += len(ev.Meta)
	ev.URI = LeftOut + strconv.FormatUint(t.last, 10) // which no server has as its name
	return ev
}

// collapsedLocked reports whether an event with the topic's own URI replaces ev.
func (m *Mailbox) collapsedLocked(ev Event) bool {
	n := m.subs[ev.Topic]
	return n != nil && n.collapsed && ev.isSubresource()
}

// fullLocked reports whether topic has the maximum of pending sub-resources.
func (m *Mailbox) fullLocked(topic Topic) bool {
	if n := m.subs[topic]; n != nil {
		return len(n.at) >= m.maxSubresources
	}
	return m.maxSubresources == 0
}

// collapseLocked replaces the pending sub-resources of ev's topic by one event with the
// topic's own URI and the Meta of ev. It reports whether the mailbox has one more event.
// The position is that of the pending event with the topic's own URI, or else that of the
// first sub-resource.
func (m *Mailbox) collapseLocked(ev Event) (added bool) {
	ev.URI = ev.Topic.URI
	n := m.pendingSubsLocked(ev.Topic)
	replaced := n.at
	n.at, n.collapsed = nil, true
	for _, at := range replaced {
		ev.Number = max(ev.Number, m.queue[at].Number)
	}
	at, ok := m.findLocked(ev)
	if !ok && len(replaced) == 0 {
		m.appendLocked(ev)
		return true
	}
	if !ok {
		at = replaced[0]
		replaced = replaced[1:]
		m.unplaceLocked(at)
		m.placeLocked(ev, at)
	}
	m.replaceLocked(at, ev)
	for _, at := range replaced {
		m.clearLocked(at)
	}
	return false
}

// replaceLocked has ev stand for the pending event at a position, too.
func (m *Mailbox) replaceLocked(at int, ev Event) {
	ev.Number = max(ev.Number, m.queue[at].Number) // those who put them may have changed places
	m.queue[at] = ev
}

// appendLocked makes ev, which is not pending, the last pending event.
func (m *Mailbox) appendLocked(ev Event) {
	if len(m.queue) == cap(m.queue) && m.live <= len(m.queue)/2 {
		m.compactLocked()
	}
	at := len(m.queue)
	m.queue = append(m.queue, ev)
	m.live++
	m.placeLocked(ev, at)
	if ev.isSubresource() {
		n := m.pendingSubsLocked(ev.Topic)
		n.at = append(n.at, at)
	}
	if m.places == nil && m.live > smallPending {
		m.indexLocked()
	}
}

// findLocked returns the position of the pending event with ev's key.
func (m *Mailbox) findLocked(ev Event) (at int, ok bool) {
	if m.places != nil {
		at, ok = m.places[eventKey{ev.Topic, ev.URI}]
		return at, ok
	}
	for at := m.head; at < len(m.queue); at++ {
		if p := &m.queue[at]; p.URI == ev.URI && p.Topic == ev.Topic {
			return at, true
		}
	}
	return 0, false
}

// dropLocked removes the pending events of topics.
func (m *Mailbox) dropLocked(topics map[Topic]struct{}) {
	for at := m.head; at < len(m.queue); at++ {
		ev := &m.queue[at]
		if _, ok := topics[ev.Topic]; ok && ev.Topic.Kind.Valid() {
			delete(m.subs, ev.Topic)
			m.clearLocked(at)
		}
	}
}

// clearLocked removes the event at a position. When no event is left it frees the
// storage. It keeps a queue for one event, which is enough for a stream with occasional
// events and small enough for ten thousand idle ones.
func (m *Mailbox) clearLocked(at int) {
	m.unplaceLocked(at)
	m.queue[at] = Event{}
	if m.live--; m.live > 0 {
		return
	}
	m.head, m.places, m.subs = 0, nil, nil
	if m.queue = m.queue[:0]; cap(m.queue) > 1 {
		m.queue = nil
	}
}

// takenLocked updates the topic's sub-resources and log messages after ev, the first of the queue, was
// removed.
func (m *Mailbox) takenLocked(ev Event) {
	n := m.subs[ev.Topic]
	switch {
	case n == nil, ev.URI == LeftOut:
		return
	case ev.IsMessage():
		n.messages.count--
		n.messages.bytes -= len(ev.Meta)
	case ev.isSubresource():
		n.at = n.at[1:]
	default:
		n.collapsed = false
	}
	if len(n.at) == 0 && !n.collapsed && n.messages.count == 0 {
		delete(m.subs, ev.Topic)
	}
}

func (m *Mailbox) pendingSubsLocked(topic Topic) *pendingSubs {
	n := m.subs[topic]
	if n == nil {
		if m.subs == nil {
			m.subs = make(map[Topic]*pendingSubs)
		}
		n = new(pendingSubs)
		m.subs[topic] = n
	}
	return n
}

// compactLocked removes the gaps of the queue, which moves every event.
func (m *Mailbox) compactLocked() {
	kept := m.queue[:0]
	for _, ev := range m.queue[m.head:] {
		if ev.Topic.Kind.Valid() {
			kept = append(kept, ev)
		}
	}
	clear(m.queue[len(kept):])
	m.queue, m.head = kept, 0
	for _, n := range m.subs {
		n.at = n.at[:0]
	}
	for at, ev := range kept {
		m.placeLocked(ev, at)
		if ev.isSubresource() {
			n := m.subs[ev.Topic]
			n.at = append(n.at, at)
		}
	}
}

// indexLocked builds places, which then replaces the linear search.
func (m *Mailbox) indexLocked() {
	m.places = make(map[eventKey]int, 2*m.live)
	for at := m.head; at < len(m.queue); at++ {
		if ev := m.queue[at]; ev.Topic.Kind.Valid() {
			m.placeLocked(ev, at)
		}
	}
}

func (m *Mailbox) placeLocked(ev Event, at int) {
	if m.places != nil {
		m.places[eventKey{ev.Topic, ev.URI}] = at
	}
}

func (m *Mailbox) unplaceLocked(at int) {
	if m.places != nil {
		delete(m.places, eventKey{m.queue[at].Topic, m.queue[at].URI})
	}
}

func setOf(topics []Topic) map[Topic]struct{} {
	set := make(map[Topic]struct{}, len(topics))
	for _, topic := range topics {
		set[topic] = struct{}{}
	}
	return set
}
