package subscribe

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
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
	// Starting reports whether an attempt to reach the server is under way.
	Starting() bool
	// Close ends what is open at the server. The loop and its context have ended.
	Close()
}

// A Book has the topics of one profile: who waits for them, and which were accepted. One
// loop owns it. The loop waits for events only; everything that takes time runs on other
// goroutines. They only tell it to check again, so the order of events does not matter. All
// methods are for the [Driver], on the loop, unless they say otherwise.
type Book[S any] struct {
	inbox
	topics[S]

	// Set by newBook, read-only after.
	profile mcp.Profile
	driver  Driver[S]
	born    time.Time // the start of the clock

	responds atomic.Bool // see respond

	// Used by the loop only.
	clock   time.Duration
	waiting []*Query // oldest first; includes answered ones
	start   start
	agenda  agenda[S]
}

// A source is what all books of one server share.
type source struct {
	*upstream.Options // read-only
	retry             wake.Backoff
	allowances        *Allowances
	// reached is set when the server has responded: so it exists, and requests wait for it
	// when it is down.
	reached atomic.Bool
}

func newBook[S any](up *source, p mcp.Profile) *Book[S] {
	return &Book[S]{
		inbox:   inbox{poked: wake.NewSignal(), reports: make(chan func())},
		topics:  topics[S]{up: up, all: make(map[key]*Topic[S])},
		profile: p,
		born:    time.Now(),
	}
}

// Now returns the time on the book's clock. It changes only when the loop waits, so that
// the same topics are due for all functions. It is never 0, which means "not set".
func (b *Book[S]) Now() time.Duration { return b.clock }

// Pause returns the pause after so many failures in a row, with a random part, so that the
// profiles do not all send at once.
func (b *Book[S]) Pause(failures int) time.Duration {
	return wake.Jitter(b.up.retry.After(failures))
}

// At makes the driver look at t at a time, instead of the time set before; 0 means never.
func (b *Book[S]) At(t *Topic[S], at time.Duration) {
	t.dueAt = at
	b.agenda.add(t)
}

// Reached records that the server has responded.
func (b *Book[S]) Reached() { b.up.reached.Store(true) }

// respond does what [Table.Respond] says. It may be called by any goroutine.
func (b *Book[S]) respond() {
	b.responds.Store(true)
	b.Poke()
}

// TakeResponse reports whether [Table.Respond] was called for the book since the last time.
func (b *Book[S]) TakeResponse() bool { return b.responds.Swap(false) }

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
