package live

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// Bounds of what a Feed keeps, and takes.
const (
	maxEvents = 1024
	maxCalls  = 512
	maxBodies = 8 << 20 // bytes of messages, of all calls
	maxBody   = 16 << 10
	maxParts  = 24  // exchanges, steps and messages of one call, each
	maxText   = 512 // bytes of an error or a name
	maxBurst  = 200 // calls at once, and as many changes
	// interval is the time after which there is room for one more of each.
	interval = 40 * time.Millisecond
)

// linger is how long calls are observed after a request for them by HTTP.
const linger = 30 * time.Second

// Options configure a Feed. Observe is required.
type Options struct {
	// Observe has the observer told of requests, and changes given changes, until stop is
	// called.
	Observe func(o trace.Observer, changes func(Change)) (stop func())
	// Looker is the principal of whoever looks, whose requests have a pace of their own: what they
	// try is shown to them, however much else passes. Empty for none.
	Looker string
	// Secrets are hidden in what is kept; nil for none.
	Secrets *redact.Redactor
}

// A Change is one that a server has reported.
type Change struct {
	Server, Kind, URI string
	Followers         int
}

// A Feed keeps the last requests and changes while somebody looks. Safe for concurrent use.
type Feed struct {
	opts  Options
	texts atomic.Bool // messages are kept, too
	calls pace
	own   pace // calls of Options.Looker
	moves pace // changes

	// mu guards the fields below. It is held for list work only.
	mu      sync.Mutex
	lookers int
	stop    func() // nil while nobody looks
	events  []Event
	last    uint64 // the number of the last event
	recent  []*record
	byID    map[string]*record
	byState map[stateID]*record // of those in byID
	bodies  int                 // bytes
}

// NewFeed returns a Feed that nobody looks at.
func NewFeed(o Options) *Feed {
	return &Feed{opts: o, byID: make(map[string]*record), byState: make(map[stateID]*record)}
}

// Look has the Feed observe until done is called.
func (f *Feed) Look() (done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lookers++; f.lookers == 1 {
		f.stop = f.opts.Observe(f, f.change)
	}
	return sync.OnceFunc(f.leave)
}

// SetBodies says whether the messages of calls are kept, too, from the next call on.
func (f *Feed) SetBodies(on bool) { f.texts.Store(on) }

// Bodies reports whether they are.
func (f *Feed) Bodies() bool { return f.texts.Load() }

// Glance is Look for a while.
func (f *Feed) Glance() { time.AfterFunc(linger, f.Look()) }

// leave forgets everything with the last who looks.
func (f *Feed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lookers--; f.lookers > 0 {
		return
	}
	f.stop()
	f.stop, f.events, f.recent, f.bodies = nil, nil, nil, 0
	clear(f.byID)
	clear(f.byState)
}

// Skipped returns how many requests and changes were not taken.
func (f *Feed) Skipped() uint64 {
	return f.calls.skipped.Load() + f.own.skipped.Load() + f.moves.skipped.Load()
}

// Since returns at most most events after the one with a number, the oldest first, and the
// number of the last of them. missed counts those in between that are not kept any more.
func (f *Feed) Since(seq uint64, most int) (events []Event, last, missed uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if seq > f.last || len(f.events) == 0 {
		return nil, f.last, 0
	}
	first := f.last - uint64(len(f.events)) // the number before the oldest
	if seq < first {
		missed, seq = first-seq, first
	}
	rest := f.events[seq-first:]
	rest = rest[:min(len(rest), most)]
	return append(events, rest...), seq + uint64(len(rest)), missed
}

// Last returns the number of the last event.
func (f *Feed) Last() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// Call returns what is known of a call; nil if it is not kept.
func (f *Feed) Call(id string) *Call {
	f.mu.Lock()
	r := f.byID[id]
	f.mu.Unlock()
	if r == nil {
		return nil
	}
	return r.copy()
}

// Calls returns the last calls, the latest first, without their messages.
func (f *Feed) Calls() []*Call {
	f.mu.Lock()
	recent := append([]*record(nil), f.recent...)
	f.mu.Unlock()
	out := make([]*Call, 0, len(recent))
	for i := len(recent) - 1; i >= 0; i-- {
		c := recent[i].copy()
		c.Messages = []Message{}
		out = append(out, c)
	}
	return out
}

// change is told of a change.
func (f *Feed) change(c Change) {
	if f.moves.take() {
		f.add(Event{Time: time.Now(), Type: "change", Server: c.Server, Method: c.Kind, Name: f.text(c.URI), Followers: c.Followers})
	}
}

// add numbers and keeps an event. Of a call that is not kept it doesn't say which one: it
// was begun before somebody looked again, or very long ago.
func (f *Feed) add(e Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lookers == 0 {
		return
	}
	if f.byID[e.Call] == nil {
		e.Call = ""
	}
	f.last++
	e.Seq = f.last
	if len(f.events) >= 2*maxEvents { // so that one in maxEvents moves the others
		f.events = append(f.events[:0], f.events[len(f.events)-maxEvents:]...)
	}
	f.events = append(f.events, e)
}

// keep keeps a call, and forgets the oldest beyond the bound.
func (f *Feed) keep(r *record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lookers == 0 {
		return
	}
	if len(f.recent) >= maxCalls {
		f.forgetLocked(f.recent[0])
		f.recent = append(f.recent[:0], f.recent[1:]...)
	}
	f.recent = append(f.recent, r)
	f.byID[r.id] = r
}

func (f *Feed) forgetLocked(r *record) {
	delete(f.byID, r.id)
	f.forgetStateLocked(r)
	f.bodies -= r.dropBodies()
}

// room takes n bytes for a message of a call, those of the oldest calls if need be.
func (f *Feed) room(r *record, n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byID[r.id] != r {
		return false
	}
	for i := 0; f.bodies+n > maxBodies && i < len(f.recent) && f.recent[i] != r; i++ {
		f.bodies -= f.recent[i].dropBodies()
	}
	if f.bodies+n > maxBodies {
		return false
	}
	f.bodies += n
	return true
}

// text returns a text as it is kept: bounded, and without secrets.
func (f *Feed) text(s string) string { return f.opts.Secrets.String(mcp.Truncate(s, maxText)) }

// A pace takes maxBurst at once, and one in each interval after that.
type pace struct {
	used    atomic.Int64 // until when the room is taken, in Unix nanoseconds
	skipped atomic.Uint64
}

// take reports whether another one may be taken, and counts it if not.
func (p *pace) take() bool {
	now := time.Now().UnixNano()
	used := p.used.Load()
	next := max(used, now-maxBurst*int64(interval)) + int64(interval)
	if next <= now && p.used.CompareAndSwap(used, next) { // who loses is skipped, too
		return true
	}
	p.skipped.Add(1)
	return false
}
