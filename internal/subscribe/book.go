package subscribe

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// A Driver gets a server to tell of what a [Book] needs. Its methods are called by the
// book's loop alone, must not wait for anything, and use the book's methods to say what
// they found out. S is what it keeps of each topic.
type Driver[S any] interface {
	// Serve looks after topics for which somebody has come to wait: it grants or denies
	// those of which it is known already, and has Pump ask for the others.
	Serve(ts []*Topic[S])
	// Look is called when t may need something else than before: somebody gave it up,
	// nobody is left who wants it, or the time has come that [Book.At] has set. It
	// may be called at any time.
	Look(t *Topic[S])
	// Pump starts what there is reason and room for. It is called after everything that
	// has happened, and at the time that Wake returns. ctx ends with the loop.
	Pump(ctx context.Context)
	// Wake returns when there is something to do for Pump, 0 if that is not known.
	Wake() time.Duration
	// Busy reports whether the loop has to go on though nothing is needed.
	Busy() bool
	// Away returns why the server can't be asked at the moment, nil if it can.
	Away() error
	// Close ends what is open at the server. The loop has ended, and so has its context.
	Close()
}

// A Book keeps who waits for changes of which topics in one profile, and what was promised.
// One loop owns it and never waits for anything but news; what takes time runs beside it.
// Nobody tells the loop what to do, only that it is time to look again: so it does not
// matter in which order news come. All methods are for the [Driver], on the loop, but those
// that say otherwise.
type Book[S any] struct {
	// Set by newBook, read-only after.
	up      *source
	profile mcp.Profile
	driver  Driver[S]
	born    time.Time // what the clock counts from

	// How others reach the loop.
	poked   chan struct{} // capacity 1
	reports chan func()   // received from while the loop runs
	workers sync.WaitGroup

	// mu guards dropped, topics, and the fields of topics that say so. Topics are written
	// by the loop alone, which reads them without. It is a leaf: nothing is called while
	// it is held, but what Hear and Update are given.
	mu      sync.Mutex
	dropped []*Query // their callers have left
	topics  map[key]*Topic[S]

	// The loop's own.
	clock    time.Duration
	waiting  []*Query // oldest first; answered ones among them
	agenda   agenda[S]
	promises int             // topics that are promised
	awaited  <-chan struct{} // then is called once it is closed; nil: there is none
	then     func()
}

// A source is what the books of one upstream have in common.
type source struct {
	*upstream.Options // read-only
	retry             backoff.Backoff
	allowances        *Allowances
	// reached is set once the server has answered: it exists, so when it is away it is
	// worth waiting for.
	reached atomic.Bool
}

func newBook[S any](up *source, p mcp.Profile) *Book[S] {
	return &Book[S]{
		up:      up,
		profile: p,
		born:    time.Now(),
		poked:   make(chan struct{}, 1),
		reports: make(chan func()),
		topics:  make(map[key]*Topic[S]),
	}
}

// Now is the time on the book's clock. It stands still between two waits, so that what is
// due is the same to all who look. It is never 0, which means "not set".
func (b *Book[S]) Now() time.Duration { return b.clock }

// Pause is how long to wait after so many failures in a row, with a random part, so that
// not all profiles come at once.
func (b *Book[S]) Pause(failures int) time.Duration {
	return backoff.Jitter(b.up.retry.After(failures))
}

// All iterates over the topics, lists before resources. They may be forgotten meanwhile.
func (b *Book[S]) All() iter.Seq[*Topic[S]] {
	return func(yield func(*Topic[S]) bool) {
		for kind := fanout.ToolsListChanged; kind < fanout.ResourceUpdated; kind++ {
			if t := b.topics[key{kind, ""}]; t != nil && !yield(t) {
				return
			}
		}
		for k, t := range b.topics {
			if k.kind == fanout.ResourceUpdated && !yield(t) {
				return
			}
		}
	}
}

// Len returns how many topics there are.
func (b *Book[S]) Len() int { return len(b.topics) }

// Tracks reports whether t is still looked after: lists may hold it longer.
func (b *Book[S]) Tracks(t *Topic[S]) bool { return b.topics[keyOf(t.Topic)] == t }

// Wanted reports whether t is needed and the index, which alone knows, says that somebody
// still wants it.
func (b *Book[S]) Wanted(t *Topic[S]) bool { return t.Needed() && b.up.Changes.Wanted(t.Topic) }

// At has the driver look at t at a time, which replaces any that was set; at 0 not at all.
func (b *Book[S]) At(t *Topic[S], at time.Duration) {
	t.dueAt = at
	b.agenda.add(t)
}

// Ask notes that the server is asked for t: changes that come before its answer are kept.
func (b *Book[S]) Ask(t *Topic[S]) { b.Update(func() { t.asked = true }) }

// Grant promises t to those who wait for it. From here on no change is lost: not even one
// that came before the answer. With tell, what may have been missed is told first.
func (b *Book[S]) Grant(t *Topic[S], tell bool) {
	if !t.promised {
		b.promises++
	}
	early := t.early
	b.Update(func() { t.promised, t.asked, t.early = true, false, nil })
	if early != nil {
		t.Missed = false
		b.up.Changes.Publish(*early)
	}
	if tell {
		b.TellMissed(t)
	}
	t.Settle(true)
}

// Withdraw ends the promise of t, which nobody wants.
func (b *Book[S]) Withdraw(t *Topic[S]) {
	if t.promised {
		b.promises--
	}
	b.Update(func() { t.promised, t.fading, t.asked, t.early = false, false, false, nil })
	t.Missed, t.fadeAt = false, 0
}

// Deny answers no to those who wait for t, ends the streams that were promised it, and
// forgets it.
func (b *Book[S]) Deny(t *Topic[S], reason error) {
	if t.promised {
		b.up.Changes.End(t.Topic, fmt.Errorf("%s no longer tells of it: %v", b.up.Name, reason))
	}
	b.Forget(t)
}

// Forget ends the tracking of t: the server does not tell of it. Who waits for it is told
// so.
func (b *Book[S]) Forget(t *Topic[S]) {
	b.Withdraw(t)
	b.Update(func() {
		if b.Tracks(t) { // unless another was begun since
			delete(b.topics, keyOf(t.Topic))
		}
	})
	t.dueAt = 0
	t.Settle(false)
}

// Tell tells that t may have changed.
func (b *Book[S]) Tell(t *Topic[S]) {
	t.Missed = false
	b.up.Changes.Publish(fanout.Event{Topic: t.Topic, URI: t.URI})
}

// TellMissed tells of t if it was promised and changes may have been missed.
func (b *Book[S]) TellMissed(t *Topic[S]) {
	if t.Missed && t.promised {
		b.Tell(t)
	}
}

// Miss notes that changes of t may have been missed by those to whom it was promised, or
// soon will be.
func (b *Book[S]) Miss(t *Topic[S]) { t.Missed = t.Missed || t.promised || t.asked }

// Update runs f while Hear does not look at topics: for what the carries of Hear reads.
func (b *Book[S]) Update(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// Reached notes that the server has answered.
func (b *Book[S]) Reached() { b.up.reached.Store(true) }

// Unreached notes that the server can't be reached. One that never was may not exist: who
// waits is told at once.
func (b *Book[S]) Unreached(err error) {
	if !b.up.reached.Load() {
		b.FailWaiting(err)
	}
}

// FailWaiting answers all who wait with err.
func (b *Book[S]) FailWaiting(err error) {
	waiting := b.waiting
	b.waiting = nil
	for _, q := range waiting {
		if !q.closed {
			b.fail(q, err)
		}
	}
}
