package front

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/eventid"
)

// maxStreams bounds the stored streams of one session. Beyond that, the oldest finished
// one is removed.
const maxStreams = 256

// streams are the event streams of a session over Streamable HTTP: one for each call whose
// reply is a stream, and one for each GET. Events are stored, within bounds, for clients
// that resume.
//
// Spec: 2025-11-25, basic/transports, Resumability and Redelivery.
type streams struct {
	session *session

	// mu guards the fields below and those of every stream.
	mu      sync.Mutex
	memory  mcp.Reservation // of what the client declared, and of the streams
	last    uint64          // the last stream's number
	order   []*eventStream  // oldest first
	stored  int             // bytes
	room    chan struct{}   // closed when bytes are written or a writer leaves; nil unless someone waits
	current *eventStream    // the stream for changes; nil if none is attached
	ended   bool

	lost, warned bool // an unread event was removed; warned: that was logged
}

// An eventStream is a sequence of events, numbered from 1. At most one response carries it
// at a time.
type eventStream struct {
	s  *streams
	n  uint64
	id wire.ID // the call's; zero for a GET stream
	// it stays although no client reads it
	kept     bool // it is not forgotten while nobody reads it
	expected bool // a response is about to carry it: no event is removed
	events   []event
	next     uint64 // the number of the next event
	done     bool   // there will be no more events
	lost     bool   // the response was removed before it was written
	written  uint64 // the last event that was written to a connection
	writer   *streamWriter
}

// An event is a message that was, or will be, sent.
type event struct {
	n      uint64
	text   []byte // empty if it only gives the client an event id for resuming
	answer bool   // it is the response
	memory int    // bytes of the session's memory
}

// add opens a stream; id is zero for a GET.
func (s *streams) add(id wire.ID) *eventStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	st := &eventStream{s: s, n: s.last, id: id, next: 1}
	if s.ended {
		st.done = true
		return st
	}
	s.order = append(s.order, st)
	for i := 0; len(s.order) > maxStreams && i < len(s.order); {
		if old := s.order[i]; old.done && old.writer == nil && !old.expected || old.id.IsZero() && old != st && !old.kept && old.writer == nil {
			s.removeLocked(old)
		} else {
			i++
		}
	}
	return st
}

// addKept opens a stream for messages outside of calls, which stays between connections.
func (s *streams) addKept() *eventStream {
	st := s.add(wire.ID{})
	s.mu.Lock()
	defer s.mu.Unlock()
	st.kept = true
	return st
}

// forget removes a stream, which may be nil.
func (s *streams) forget(st *eventStream) {
	if st == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(st)
}

// removeLocked forgets a stream.
func (s *streams) removeLocked(st *eventStream) {
	s.order = slices.DeleteFunc(s.order, func(o *eventStream) bool { return o == st })
	for _, ev := range st.events {
		s.releaseLocked(ev)
	}
	st.events = nil
}

// reserveLocked reserves memory for an event of n bytes. If there is none, it removes
// events that were written.
func (s *streams) reserveLocked(n int) bool {
	if s.memory.TryGrow(n) {
		return true
	}
	for _, st := range s.order {
		for len(st.events) > 0 && st.events[0].n <= st.written {
			st.lost = st.lost || st.events[0].answer
			s.releaseLocked(st.events[0])
			st.events = st.events[1:]
		}
	}
	return s.memory.TryGrow(n)
}

// releaseLocked gives back the memory of an event.
func (s *streams) releaseLocked(ev event) {
	s.stored -= len(ev.text)
	s.memory.Shrink(ev.memory)
}

// takeMemory reserves memory for n other bytes, which giveMemory gives back.
func (s *streams) takeMemory(n int) error {
	s.mu.Lock()
	ok := s.reserveLocked(n)
	s.mu.Unlock()
	if !ok {
		return s.memory.Refuse()
	}
	return nil
}

func (s *streams) giveMemory(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory.Shrink(n)
}

// releaseMemory gives back all memory of the session.
func (s *streams) releaseMemory() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory.Release()
}

// find returns the stream of an event id, and the event's number.
func (s *streams) find(id string) (*eventStream, uint64) {
	e, ok := eventid.Parse(s.session.front.opts.Instance, id)
	if !ok {
		return nil, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := slices.BinarySearchFunc(s.order, e.Stream, func(st *eventStream, n uint64) int { return cmp.Compare(st.n, n) })
	if !ok {
		return nil, 0
	}
	return s.order[at], e.Event
}

// eventID returns the id of an event of the stream.
func (st *eventStream) eventID(n uint64) string {
	return eventid.ID{Stream: st.n, Event: n}.Text(st.s.session.front.opts.Instance)
}

// put appends an event. If a client that reads is behind by more than the store's size,
// put waits, so that nothing unread is removed. Without memory for it, a response is
// replaced by an error, and another message is refused.
func (st *eventStream) put(ctx context.Context, text []byte, answer bool) (err error) {
	s := st.s
	var tell, short bool
	defer func() { // not under the lock
		if short {
			err = s.memory.Refuse()
		}
		if tell {
			s.session.front.log.Warn("messages to client dropped: too many are unread", "session", s.session.name, "limit", s.session.front.opts.MaxStored)
		}
	}()
	s.mu.Lock()
	for st.writer != nil && !answer && st.unwrittenLocked() > s.session.front.opts.MaxStored {
		if s.room == nil {
			s.room = make(chan struct{})
		}
		room := s.room
		s.mu.Unlock()
		if err := wake.Await(ctx, room); err != nil {
			return err
		}
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	if st.done || s.ended {
		return errCut
	}
	taken := len(text)
	if short = !s.reserveLocked(taken); short && !answer {
		return nil // the deferred function returns an error
	} else if short {
		text, taken = noMemoryResponse(st.id), 0
	}
	st.events = append(st.events, event{st.next, text, answer, taken})
	st.next++
	st.done = answer
	s.stored += len(text)
	s.evictLocked()
	tell, s.warned = s.lost && !s.warned, s.lost
	st.wakeLocked()
	return nil
}

// finish records that there will be no more events.
func (st *eventStream) finish() {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	st.done = true
	st.wakeLocked()
}

// expect records whether a response is about to carry the stream. Until it does, senders
// don't wait, since the response may be waiting for them.
func (st *eventStream) expect(coming bool) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	st.expected = coming
	st.s.evictLocked()
}

// isRead reports whether a connection carries the stream, or is about to.
func (st *eventStream) isRead() bool {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	return st.writer != nil || st.expected
}

// position returns the number of the last event that was written to a connection.
func (st *eventStream) position() uint64 {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	return st.written
}

// hasUnread reports whether a call's stream has events that were not written to a connection.
func (s *streams) hasUnread() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.order, func(st *eventStream) bool {
		return !st.id.IsZero() && (!st.done || st.unwrittenLocked() > 0)
	})
}

func (st *eventStream) wakeLocked() {
	if st.writer != nil {
		st.writer.wake.Send()
	}
}

func (st *eventStream) unwrittenLocked() int {
	n := 0
	for _, ev := range st.events {
		if ev.n > st.written {
			n += len(ev.text)
		}
	}
	return n
}

// evictLocked removes events beyond the limit: first those that were written, of the
// oldest streams, and then those that no connected client reads.
func (s *streams) evictLocked() {
	for _, written := range []bool{true, false} {
		for i := 0; i < len(s.order) && s.stored > s.session.front.opts.MaxStored; i++ {
			s.order[i].evictLocked(written)
		}
	}
}

// evictLocked removes the oldest events. If it removes an unread response, a client that
// resumes gets an error instead.
func (st *eventStream) evictLocked(written bool) {
	s := st.s
	for len(st.events) > 0 && s.stored > s.session.front.opts.MaxStored {
		ev := st.events[0]
		if ev.n > st.written && (written || st.writer != nil || st.expected) {
			return
		}
		st.lost = st.lost || ev.answer
		s.releaseLocked(ev)
		st.events = st.events[1:]
		if ev.n > st.written {
			s.session.front.limit(limits.ClientEvents.Key)
			s.lost = true
		}
	}
}

// close ends all streams: their connections end, and nothing is stored.
func (s *streams) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, st := range s.order {
		st.done = true
		st.wakeLocked()
	}
}

// evictedResponse returns the error for a response that is no longer stored.
func (st *eventStream) evictedResponse() []byte {
	return wire.AppendError(nil, st.id, wire.Errorf(spec.CodeInternal,
		"the response is no longer stored, because its client was disconnected too long; send the request again if that is safe"))
}

// noMemoryResponse returns the error for a response without memory.
func noMemoryResponse(id wire.ID) []byte {
	return wire.AppendError(nil, id, wire.Errorf(spec.CodeInternal,
		"there was no memory for the response; send the request again in a moment if that is safe, or %s", limits.Memory.Raise()))
}
