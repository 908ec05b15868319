package fanout

// putLocked makes ev pending and reports whether it was not before.
func (m *Mailbox) putLocked(ev Event) (added bool) {
	if _, no := m.refused[ev.Topic]; no || m.end != nil {
		return false
	}
	if m.collapsedLocked(ev) {
		ev.URI = ev.Topic.URI
	}
	if at, ok := m.findLocked(ev); ok {
		m.queue[at] = ev
		return false
	}
	if ev.nested() && m.fullLocked(ev.Topic) {
		return m.collapseLocked(ev)
	}
	m.appendLocked(ev)
	return true
}

// collapsedLocked reports whether the topic's own URI stands for ev's.
func (m *Mailbox) collapsedLocked(ev Event) bool {
	n := m.nested[ev.Topic]
	return n != nil && n.collapsed && ev.nested()
}

// fullLocked reports whether topic has all the sub-resources that it may have.
func (m *Mailbox) fullLocked(topic Topic) bool {
	if n := m.nested[topic]; n != nil {
		return len(n.at) >= m.subMax
	}
	return m.subMax == 0
}

// collapseLocked puts one event under the topic's own URI in the place of all
// that is pending of its sub-resources, with the Meta of ev, and reports
// whether the mailbox has one event more now. The one event is where the topic's
// own URI was pending already, or else where the first sub-resource was.
func (m *Mailbox) collapseLocked(ev Event) (added bool) {
	ev.URI = ev.Topic.URI
	n := m.nestingLocked(ev.Topic)
	covered := n.at
	n.at, n.collapsed = nil, true
	at, ok := m.findLocked(ev)
	if !ok && len(covered) == 0 {
		m.appendLocked(ev)
		return true
	}
	if !ok {
		at = covered[0]
		covered = covered[1:]
		m.unplaceLocked(at)
		m.placeLocked(ev, at)
	}
	m.queue[at] = ev
	for _, at := range covered {
		m.clearLocked(at)
	}
	return false
}

// appendLocked makes ev, which is not pending, the last one that is.
func (m *Mailbox) appendLocked(ev Event) {
	if len(m.queue) == cap(m.queue) && m.live <= len(m.queue)/2 {
		m.compactLocked()
	}
	at := len(m.queue)
	m.queue = append(m.queue, ev)
	m.live++
	m.placeLocked(ev, at)
	if ev.nested() {
		n := m.nestingLocked(ev.Topic)
		n.at = append(n.at, at)
	}
	if m.places == nil && m.live > smallPending {
		m.indexLocked()
	}
}

// findLocked returns the position of the pending event that ev would repeat.
func (m *Mailbox) findLocked(ev Event) (at int, ok bool) {
	if m.places != nil {
		at, ok = m.places[mark{ev.Topic, ev.URI}]
		return at, ok
	}
	for at := m.head; at < len(m.queue); at++ {
		if p := &m.queue[at]; p.URI == ev.URI && p.Topic == ev.Topic {
			return at, true
		}
	}
	return 0, false
}

// dropLocked clears what is pending of topics.
func (m *Mailbox) dropLocked(topics map[Topic]struct{}) {
	for at := m.head; at < len(m.queue); at++ {
		ev := &m.queue[at]
		if _, ok := topics[ev.Topic]; ok && ev.Topic.Kind.Valid() {
			delete(m.nested, ev.Topic)
			m.clearLocked(at)
		}
	}
}

// clearLocked takes the event at a position out. When none is left the storage
// goes, all but one place: that is what a stream with an event now and then
// needs, and ten thousand idle ones can afford.
func (m *Mailbox) clearLocked(at int) {
	m.unplaceLocked(at)
	m.queue[at] = Event{}
	if m.live--; m.live > 0 {
		return
	}
	m.head, m.places, m.nested = 0, nil, nil
	if m.queue = m.queue[:0]; cap(m.queue) > 1 {
		m.queue = nil
	}
}

// unnestLocked notes that ev, the first of the queue, has been taken.
func (m *Mailbox) unnestLocked(ev Event) {
	n := m.nested[ev.Topic]
	switch {
	case n == nil:
		return
	case ev.nested():
		n.at = n.at[1:]
	default:
		n.collapsed = false
	}
	if len(n.at) == 0 && !n.collapsed {
		delete(m.nested, ev.Topic)
	}
}

func (m *Mailbox) nestingLocked(topic Topic) *nesting {
	n := m.nested[topic]
	if n == nil {
		if m.nested == nil {
			m.nested = make(map[Topic]*nesting)
		}
		n = new(nesting)
		m.nested[topic] = n
	}
	return n
}

// compactLocked closes the gaps of the queue, which moves every event.
func (m *Mailbox) compactLocked() {
	kept := m.queue[:0]
	for _, ev := range m.queue[m.head:] {
		if ev.Topic.Kind.Valid() {
			kept = append(kept, ev)
		}
	}
	clear(m.queue[len(kept):])
	m.queue, m.head = kept, 0
	for _, n := range m.nested {
		n.at = n.at[:0]
	}
	for at, ev := range kept {
		m.placeLocked(ev, at)
		if ev.nested() {
			n := m.nested[ev.Topic]
			n.at = append(n.at, at)
		}
	}
}

// indexLocked starts to keep places, since searching has become slower.
func (m *Mailbox) indexLocked() {
	m.places = make(map[mark]int, 2*m.live)
	for at := m.head; at < len(m.queue); at++ {
		if ev := m.queue[at]; ev.Topic.Kind.Valid() {
			m.placeLocked(ev, at)
		}
	}
}

func (m *Mailbox) placeLocked(ev Event, at int) {
	if m.places != nil {
		m.places[mark{ev.Topic, ev.URI}] = at
	}
}

func (m *Mailbox) unplaceLocked(at int) {
	if m.places != nil {
		delete(m.places, mark{m.queue[at].Topic, m.queue[at].URI})
	}
}

func setOf(topics []Topic) map[Topic]struct{} {
	set := make(map[Topic]struct{}, len(topics))
	for _, topic := range topics {
		set[topic] = struct{}{}
	}
	return set
}
