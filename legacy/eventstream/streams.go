package eventstream

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxStreams bounds the stored streams of one session. Beyond that, the oldest finished
// one is removed.
const maxStreams = 256

// Options are what the streams of all sessions of a front have in common. All are required.
type Options struct {
	Instance  string        // the prefix of event ids
	MaxStored int           // bounds the events that a session stores, in bytes
	KeepAlive time.Duration // the interval of comments on an idle stream
	// Until calls end once when a credential expires or is refused, unless forget is
	// called before.
	Until  func(id *mcp.Identity, end func(reason error)) (forget func())
	Ending <-chan struct{}  // closed when GET streams have to end; see Streams.TellEnding
	Limit  func(key string) // counts an event that was removed unread because of a limit
	Logger *slog.Logger
}

// Streams are the event streams of a session over Streamable HTTP: one for each call whose
// reply is a stream, and one for each GET. Events are stored, within bounds, for clients
// that resume. They have the memory of the session, too.
//
// Spec: 2025-11-25, basic/transports, Resumability and Redelivery.
type Streams struct {
	// Set by New, read-only after.
	opts    *Options
	session string // its name, for logs
	stuck   func() // ends the session, because its client does not read

	// mu guards the fields below and those of every stream.
	mu      sync.Mutex
	memory  mcp.Reservation // of what the client declared, and of the streams
	last    uint64          // the last stream's number
	order   []*Stream       // oldest first
	stored  int             // bytes
	room    chan struct{}   // closed when bytes are written or a writer leaves; nil unless someone waits
	current *Stream         // the stream for changes; nil if none is attached
	ended   bool

	lost, warned bool // an unread event was removed; warned: that was logged
}

// New returns the streams of a session; there is none yet. session is its name for logs,
// and stuck ends it because its client does not read.
func New(opts *Options, session string, stuck func()) *Streams {
	return &Streams{opts: opts, session: session, stuck: stuck}
}

// Reserve reserves memory for the session itself, before there are streams. Release gives
// it back.
func (s *Streams) Reserve(memory mcp.Memory, share mcp.Share, n int) (err error) {
	s.memory, err = mcp.Reserve(memory, share, n)
	return err
}

// Add opens a stream; id is zero for a GET.
func (s *Streams) Add(id wire.ID) *Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	st := &Stream{s: s, n: s.last, id: id, next: 1}
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

// AddKept opens a stream for messages outside of calls, which stays between connections.
func (s *Streams) AddKept() *Stream {
	st := s.Add(wire.ID{})
	s.mu.Lock()
	defer s.mu.Unlock()
	st.kept = true
	return st
}

// Forget removes a stream, which may be nil.
func (s *Streams) Forget(st *Stream) {
	if st == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(st)
}

// removeLocked forgets a stream.
func (s *Streams) removeLocked(st *Stream) {
	s.order = slices.DeleteFunc(s.order, func(o *Stream) bool { return o == st })
	for _, ev := range st.events {
		s.releaseLocked(ev)
	}
	st.events = nil
}

// reserveLocked reserves memory for an event of n bytes. If there is none, it removes
// events that were written.
func (s *Streams) reserveLocked(n int) bool {
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
func (s *Streams) releaseLocked(ev event) {
	s.stored -= len(ev.text)
	s.memory.Shrink(ev.memory)
}

// TellEnding has the GET stream end once Options.Ending is closed.
func (s *Streams) TellEnding() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		s.current.wakeLocked()
	}
}

// Take reserves memory for n other bytes of the session, which Give gives back.
func (s *Streams) Take(n int) error {
	s.mu.Lock()
	ok := s.reserveLocked(n)
	s.mu.Unlock()
	if !ok {
		return s.memory.Refuse()
	}
	return nil
}

// Give gives back n bytes of Take.
func (s *Streams) Give(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory.Shrink(n)
}

// Release gives back all memory of the session.
func (s *Streams) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory.Release()
}

// Find returns the stream of an event id, and the event's number.
func (s *Streams) Find(id string) (*Stream, uint64) {
	e, ok := ParseID(s.opts.Instance, id)
	if !ok {
		return nil, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := slices.BinarySearchFunc(s.order, e.Stream, func(st *Stream, n uint64) int { return cmp.Compare(st.n, n) })
	if !ok {
		return nil, 0
	}
	return s.order[at], e.Event
}

// ErrNobodyListens reports that no client reads a stream outside of calls.
var ErrNobodyListens = errors.New("the client reads no stream outside of calls")

// PutAside puts a message on the stream outside of calls that a client reads. If it is behind, it
// waits, as [Stream.Put] does.
func (s *Streams) PutAside(ctx context.Context, text []byte) error {
	s.mu.Lock()
	for {
		st := s.current
		switch {
		case st == nil || st.writer == nil:
			s.mu.Unlock()
			return ErrNobodyListens
		case !st.isFullLocked():
			return st.putAndUnlock(text, false)
		}
		if err := s.awaitRoomLocked(ctx); err != nil {
			s.mu.Unlock()
			return err
		}
	}
}

// awaitRoomLocked waits, without the lock, until bytes are written or a writer leaves.
func (s *Streams) awaitRoomLocked(ctx context.Context) error {
	if s.room == nil {
		s.room = make(chan struct{})
	}
	room := s.room
	s.mu.Unlock()
	defer s.mu.Lock()
	return wake.Await(ctx, room)
}

// HasUnread reports whether a call's stream has events that were not written to a connection.
func (s *Streams) HasUnread() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.order, func(st *Stream) bool {
		return !st.id.IsZero() && (!st.done || st.unwrittenLocked() > 0)
	})
}

// evictLocked removes events beyond the limit: first those that were written, of the
// oldest streams, and then those that no connected client reads.
func (s *Streams) evictLocked() {
	for _, written := range []bool{true, false} {
		for i := 0; i < len(s.order) && s.stored > s.opts.MaxStored; i++ {
			s.order[i].evictLocked(written)
		}
	}
}

// Close ends all streams: their connections end, and nothing is stored.
func (s *Streams) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, st := range s.order {
		st.done = true
		st.attendLocked()
		st.wakeLocked()
	}
	s.signalRoomLocked()
}

func (s *Streams) signalRoomLocked() {
	if s.room != nil {
		close(s.room)
		s.room = nil
	}
}
