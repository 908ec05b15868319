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

// A Driver makes subscriptions at a server for a [Book]. Only the book's loop calls its
// methods. They must not wait for anything, and report results by the book's methods. S is
// the driver's state of a topic.
type Driver[S any] interface {
	// Serve handles topics that have new waiting subscribers: it grants or denies those
	// whose answer is known, and leaves the others to Pump.
	Serve(ts []*Topic[S])
	// Look is called when the needs of t may have changed: a subscriber has left, or the
	// last one has, or the time set by [Book.At] has come. It may be called at any time.
	Look(t *Topic[S])
	// Pump starts all requests that are needed and allowed. It is called after every event,
	// and at the time that Wake returns. ctx ends with the loop.
	Pump(ctx context.Context)
	// Wake returns when Pump has something to do; 0 if that is not known.
	Wake() time.Duration
	// Busy reports whether the loop must go on though no topics are needed.
	Busy() bool
	// Away returns why the server can't be reached at the moment; nil if it can.
	Away() error
	// Close ends what is open at the server. The loop and its context have ended.
	Close()
}

// A Book has the topics of one profile: who waits for them, and which were accepted. One
// loop owns it. The loop waits for events only; everything that takes time runs on other
// goroutines. They only tell it to check again, so the order of events does not matter. All
// methods are for the [Driver], on the loop, unless they say otherwise.
type Book[S any] struct {
	// Set by newBook, read-only after.
	up      *source
	profile mcp.Profile
	driver  Driver[S]
	born    time.Time // the start of the clock

	// For other goroutines to reach the loop.
	poked   chan struct{} // capacity 1
	reports chan func()   // received from while the loop runs
	workers sync.WaitGroup

	// mu guards dropped, topics, and the fields of topics that say so. Only the loop writes
	// topics; it reads them without the lock. It is a leaf: under it only the functions
	// given to Hear and Update are called.
	mu      sync.Mutex
	dropped []*Query // the subscribers have left
	topics  map[key]*Topic[S]

	// Used by the loop only.
	clock    time.Duration
	waiting  []*Query // oldest first; includes answered ones
	agenda   agenda[S]
	promises int             // number of accepted topics
	awaited  <-chan struct{} // when it is closed, then is called; may be nil
	then     func()
}

// A source is what all books of one server share.
type source struct {
	*upstream.Options // read-only
	retry             backoff.Backoff
	allowances        *Allowances
	// reached is set when the server has responded: so it exists, and requests wait for it
	// when it is down.
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

// Now returns the time on the book's clock. It changes only when the loop waits, so that
// the same topics are due for all functions. It is never 0, which means "not set".
func (b *Book[S]) Now() time.Duration { return b.clock }

// Pause returns the pause after so many failures in a row, with a random part, so that the
// profiles do not all send at once.
func (b *Book[S]) Pause(failures int) time.Duration {
	return backoff.Jitter(b.up.retry.After(failures))
}

// All iterates over the topics, lists before resources. Topics may be forgotten during the
// iteration.
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

// Len returns the number of topics.
func (b *Book[S]) Len() int { return len(b.topics) }

// Tracks reports whether t still belongs to the book: queues may contain it longer.
func (b *Book[S]) Tracks(t *Topic[S]) bool { return b.topics[keyOf(t.Topic)] == t }

// Wanted reports whether t is needed, and has subscribers in the index, which alone knows
// that.
func (b *Book[S]) Wanted(t *Topic[S]) bool { return t.Needed() && b.up.Changes.Wanted(t.Topic) }

// At makes the driver look at t at a time, instead of the time set before; 0 means never.
func (b *Book[S]) At(t *Topic[S], at time.Duration) {
	t.dueAt = at
	b.agenda.add(t)
}

// Ask says that a request for t is being sent: changes that arrive before its response are
// kept.
func (b *Book[S]) Ask(t *Topic[S]) { b.Update(func() { t.asked = true }) }

// Grant accepts t for those who wait for it. From then on no change is lost, not even one
// that arrived before the response. With tell, changes that may have been missed are
// reported first.
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

// Withdraw ends the subscription to t, which has no subscribers.
func (b *Book[S]) Withdraw(t *Topic[S]) {
	if t.promised {
		b.promises--
	}
	b.Update(func() { t.promised, t.fading, t.asked, t.early = false, false, false, nil })
	t.Missed, t.fadeAt = false, 0
}

// Deny refuses t to those who wait, ends the streams to which it was accepted, and forgets
// it.
func (b *Book[S]) Deny(t *Topic[S], reason error) {
	if t.promised {
		b.up.Changes.End(t.Topic, fmt.Errorf("%s no longer reports its changes: %v", b.up.Name, reason))
	}
	b.Forget(t)
}

// Forget removes t: the server has no subscription to it. It refuses t to those who wait.
func (b *Book[S]) Forget(t *Topic[S]) {
	b.Withdraw(t)
	b.Update(func() {
		if b.Tracks(t) { // unless a new one was added
			delete(b.topics, keyOf(t.Topic))
		}
	})
	t.dueAt = 0
	t.Settle(false)
}

// Tell publishes that t may have changed.
func (b *Book[S]) Tell(t *Topic[S]) {
	t.Missed = false
	b.up.Changes.Publish(fanout.Event{Topic: t.Topic, URI: t.URI})
}

// TellMissed publishes a change of t if it is accepted and changes may have been missed.
func (b *Book[S]) TellMissed(t *Topic[S]) {
	if t.Missed && t.promised {
		b.Tell(t)
	}
}

// Miss records that changes of t may have been missed, if it is accepted or will be soon.
func (b *Book[S]) Miss(t *Topic[S]) { t.Missed = t.Missed || t.promised || t.asked }

// Update runs f while Hear does not read topics: for the state that the carries function of
// Hear reads.
func (b *Book[S]) Update(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// Reached records that the server has responded.
func (b *Book[S]) Reached() { b.up.reached.Store(true) }

// Unreached records that the server can't be reached. If it never could, it may not exist,
// and those who wait are refused at once.
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
