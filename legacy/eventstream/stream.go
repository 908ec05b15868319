package eventstream

import (
	"context"
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// errCut is why a stream accepts no more messages.
var errCut = errors.New("the client can't be reached")

// A Stream is a sequence of events, numbered from 1. At most one response carries it
// at a time.
type Stream struct {
	s  *Streams
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
	taken    uint64 // the last event of which the writing has begun
	writer   *Writer

	patience time.Duration // see OnGone
	gone     func()        // nil if nobody wants to know, and once it was called
	left     *time.Timer   // calls gone; nil while the stream is read or done
}

// An event is a message that was, or will be, sent.
type event struct {
	n      uint64
	text   []byte // empty if it only gives the client an event id for resuming
	answer bool   // it is the response
	memory int    // bytes of the session's memory
}

// IsCall reports whether the stream is that of a call, and not of a GET.
func (st *Stream) IsCall() bool { return !st.id.IsZero() }

// eventID returns the id of an event of the stream.
func (st *Stream) eventID(n uint64) string {
	return ID{Stream: st.n, Event: n}.Text(st.s.opts.Instance)
}

// Put appends an event. If a client that reads is behind by more than the store's size,
// Put waits, so that nothing unread is removed. Without memory for it, a response is
// replaced by an error, and another message is refused.
func (st *Stream) Put(ctx context.Context, text []byte, answer bool) error {
	s := st.s
	s.mu.Lock()
	for !answer && st.isFullLocked() {
		if err := s.awaitRoomLocked(ctx); err != nil {
			s.mu.Unlock()
			return err
		}
	}
	return st.putAndUnlock(text, answer)
}

// isFullLocked reports whether a client that reads is behind by more than the store's size. A stream
// that is over takes nothing, and is not waited for.
func (st *Stream) isFullLocked() bool {
	return st.writer != nil && !st.done && st.unwrittenLocked() > st.s.opts.MaxStored
}

// putAndUnlock is Put without waiting, and with the lock, which it releases.
func (st *Stream) putAndUnlock(text []byte, answer bool) error {
	s := st.s
	short, err := st.appendLocked(text, answer)
	tell := s.lost && !s.warned
	s.warned = s.lost
	s.mu.Unlock()
	if tell {
		s.opts.Logger.Warn("messages to client dropped: too many are unread", "session", s.session, "limit", s.opts.MaxStored)
	}
	if short {
		return s.memory.Refuse()
	}
	return err
}

// appendLocked appends an event. It reports whether there was no memory for it.
func (st *Stream) appendLocked(text []byte, answer bool) (short bool, err error) {
	s := st.s
	if st.done || s.ended {
		return false, errCut
	}
	taken := len(text)
	if short = !s.reserveLocked(taken); short && !answer {
		return true, nil
	} else if short {
		text, taken = NoMemoryResponse(st.id), 0
	}
	st.events = append(st.events, event{st.next, text, answer, taken})
	st.next++
	st.done = answer
	st.attendLocked()
	s.stored += len(text)
	s.evictLocked()
	st.wakeLocked()
	return short, nil
}

// inheritLocked takes over what former, the stream of another GET, has not begun to write.
func (st *Stream) inheritLocked(former *Stream) {
	if former == nil || former == st || former.kept {
		return
	}
	kept := former.events[:0]
	for _, ev := range former.events {
		if ev.n <= former.taken {
			kept = append(kept, ev)
			continue
		}
		ev.n = st.next
		st.next++
		st.events = append(st.events, ev)
	}
	clear(former.events[len(kept):])
	former.events = kept
}

// Finish records that there will be no more events.
func (st *Stream) Finish() {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	st.done = true
	st.attendLocked()
	st.wakeLocked()
}

// OnGone has gone called, once, when no connection has carried the stream for a time,
// unless it is done by then.
func (st *Stream) OnGone(patience time.Duration, gone func()) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	st.patience, st.gone = patience, gone
	st.attendLocked()
}

// attendLocked starts or stops the time of OnGone.
func (st *Stream) attendLocked() {
	needed := st.writer != nil || st.expected || st.done || st.s.ended
	switch {
	case needed && st.left != nil:
		st.left.Stop()
		st.left = nil
	case !needed && st.left == nil && st.gone != nil:
		var timer *time.Timer
		timer = time.AfterFunc(st.patience, func() { st.leave(&timer) })
		st.left = timer
	}
}

// leave calls gone, unless its timer was stopped meanwhile. The timer is read under the lock
// under which it was set.
func (st *Stream) leave(timer **time.Timer) {
	st.s.mu.Lock()
	gone := st.gone
	if st.left != *timer || gone == nil {
		st.s.mu.Unlock()
		return
	}
	st.left, st.gone = nil, nil
	st.s.mu.Unlock()
	gone()
}

// Expect records whether a response is about to carry the stream. Until it does, senders
// don't wait, since the response may be waiting for them.
func (st *Stream) Expect(coming bool) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	st.expected = coming
	st.attendLocked()
	st.s.evictLocked()
}

// IsRead reports whether a connection carries the stream, or is about to.
func (st *Stream) IsRead() bool {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	return st.writer != nil || st.expected
}

// Position returns the number of the last event that was written to a connection.
func (st *Stream) Position() uint64 {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	return st.written
}

func (st *Stream) wakeLocked() {
	if st.writer != nil {
		st.writer.res.Turns().Send()
	}
}

func (st *Stream) unwrittenLocked() int {
	n := 0
	for _, ev := range st.events {
		if ev.n > st.written {
			n += len(ev.text)
		}
	}
	return n
}

// evictLocked removes the oldest events. If it removes an unread response, a client that
// resumes gets an error instead.
func (st *Stream) evictLocked(written bool) {
	s := st.s
	for len(st.events) > 0 && s.stored > s.opts.MaxStored {
		ev := st.events[0]
		if ev.n > st.written && (written || st.writer != nil || st.expected) {
			return
		}
		st.lost = st.lost || ev.answer
		s.releaseLocked(ev)
		st.events = st.events[1:]
		if ev.n > st.written {
			s.opts.Limit(limits.ClientEvents.Key)
			s.lost = true
		}
	}
}

// evictedResponse returns the error for a response that is no longer stored.
func (st *Stream) evictedResponse() []byte {
	return wire.AppendError(nil, st.id, wire.Errorf(spec.CodeInternal,
		"the response is no longer stored, because its client was disconnected too long; send the request again if that is safe"))
}

// NoMemoryResponse returns the error for a response without memory.
func NoMemoryResponse(id wire.ID) []byte {
	return wire.AppendError(nil, id, wire.Errorf(spec.CodeInternal,
		"there was no memory for the response; send the request again in a moment if that is safe, or %s", limits.Memory.Raise()))
}
