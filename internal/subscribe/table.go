package subscribe

import (
	"context"
	"fmt"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// A Table contains the books of one server, at most one per profile. A book runs while
// topics of its profile are needed. Methods are safe for concurrent use.
//
// A Watch fails if the server can't be reached: at once if it never could, otherwise after
// [Patience]. It waits for a server that is starting. It fails as well if the server has answered
// nothing by then, or may report later what it does not report now.
type Table[S any, D Driver[S]] struct {
	// Set by NewTable, read-only after.
	up   *source
	make func(*Book[S], mcp.Profile) D

	// mu guards open. It is held for map work, and to create a Driver; no other lock may be
	// held when it is taken.
	mu   sync.Mutex
	open map[string]*run[S, D] // by scope; nil after Close

	running sync.WaitGroup // the loops
}

// A run is a Book while its loop runs. It is read-only.
type run[S any, D Driver[S]] struct {
	book   *Book[S]
	driver D
	stop   context.CancelCauseFunc
	more   chan *Query   // received from while the loop runs
	done   chan struct{} // closed when the loop has ended
}

// NewTable returns a Table without books. o must be complete; retry has the pauses between
// attempts. newDriver returns the Driver of a profile's Book, and must not block.
func NewTable[S any, D Driver[S]](o *upstream.Options, retry wake.Backoff, newDriver func(*Book[S], mcp.Profile) D) *Table[S, D] {
	up := &source{Options: o, retry: retry, allowances: NewAllowances(o)}
	return &Table[S, D]{up: up, make: newDriver, open: make(map[string]*run[S, D])}
}

// Watch implements [mcp.Source]. Its errors name the server.
func (t *Table[S, D]) Watch(ctx context.Context, p mcp.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
	if len(want) == 0 {
		return nil, func() {}, nil
	}
	q := newQuery(want, p.Share)
	book, err := t.hand(ctx, p, q)
	if err != nil {
		return nil, nil, err
	}
	select {
	case a := <-q.answers: // the loop always answers
		if a.err != nil {
			book.drop(q)
			return nil, nil, fmt.Errorf("watching %s: %w", t.up.Name, a.err)
		}
		q.answers = nil // there are no more answers, and q lives as long as the subscription
		return a.honored, func() { q.dropped.Do(func() { book.drop(q) }) }, nil
	case <-ctx.Done():
		book.drop(q)
		return nil, nil, context.Cause(ctx)
	}
}

// hand passes q to the book of the profile.
func (t *Table[S, D]) hand(ctx context.Context, p mcp.Profile, q *Query) (*Book[S], error) {
	for {
		r, taken, err := t.join(p, q)
		if err != nil {
			return nil, err
		}
		if taken {
			return r.book, nil
		}
		select {
		case r.more <- q:
			return r.book, nil
		case <-r.done: // it has ended because it had no topics; another takes over
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// join returns the book of the profile. If there is none, it starts one with q as its first
// query.
func (t *Table[S, D]) join(p mcp.Profile, q *Query) (r *run[S, D], taken bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		return nil, false, fmt.Errorf("watching %s: %w", t.up.Name, mcp.ErrShutdown)
	}
	if r := t.open[p.Scope]; r != nil {
		return r, false, nil
	}
	// Ends when no topics are needed, or by Close.
	ctx, stop := context.WithCancelCause(context.Background())
	r = &run[S, D]{book: newBook[S](t.up, p), stop: stop, more: make(chan *Query), done: make(chan struct{})}
	r.driver = t.make(r.book, p)
	r.book.driver = r.driver
	t.open[p.Scope] = r
	t.running.Go(func() {
		defer stop(nil)
		r.book.run(ctx, q, r.more)
		t.remove(p.Scope, r)
		close(r.done)
	})
	return r, true, nil
}

// remove removes a book from the table. It is called before done is closed: after that the
// book must not be found.
func (t *Table[S, D]) remove(scope string, r *run[S, D]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[scope] == r {
		delete(t.open, scope)
	}
}

// Of returns the driver of a scope's book, or the zero D if there is none.
func (t *Table[S, D]) Of(scope string) D {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.open[scope]; r != nil {
		return r.driver
	}
	var none D
	return none
}

// Respond says that the server responds to requests of a scope, as somebody else has found: the
// driver of its book need not wait until its own next attempt. It never blocks.
func (t *Table[S, D]) Respond(scope string) {
	t.mu.Lock()
	r := t.open[scope]
	t.mu.Unlock()
	if r != nil {
		r.book.respond()
	}
}

// Poke makes the loops of all books call their driver's Pump. It never blocks.
func (t *Table[S, D]) Poke() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.open {
		r.book.Poke()
	}
}

// Close ends all books and waits for them.
func (t *Table[S, D]) Close() {
	t.mu.Lock()
	open := t.open
	t.open = nil
	t.mu.Unlock()
	for _, r := range open {
		r.stop(mcp.ErrShutdown)
	}
	t.running.Wait()
}
