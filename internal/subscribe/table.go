package subscribe

import (
	"context"
	"fmt"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A Loop looks after what is wanted of one profile.
type Loop interface {
	// Run admits first, and then what comes on more. It returns when nothing is
	// wanted or waited for any more, or when ctx ends; then it has answered all
	// queries, and all that it started has ended.
	Run(ctx context.Context, first *Query, more <-chan *Query)
	// Drop tells the Loop that the caller of q has lost interest. It never blocks,
	// and does nothing once Run has returned.
	Drop(q *Query)
}

// A Table holds the loops of one upstream, at most one per profile. Each lives while
// something of its profile is wanted. Methods are safe for concurrent use.
type Table[L Loop] struct {
	// Set by NewTable, read-only after.
	name string
	make func(mcp.Profile) L

	// mu guards open. It is held for map work, and for making a Loop; taken under no
	// other.
	mu   sync.Mutex
	open map[string]*run[L] // by scope; nil after Close

	running sync.WaitGroup // counts the loops
}

// A run is a Loop while it runs. It is read-only.
type run[L Loop] struct {
	loop L
	stop context.CancelCauseFunc
	more chan *Query   // received from while the loop runs
	done chan struct{} // closed when it has ended
}

// NewTable returns a Table for the upstream of that name, as people know it. newLoop
// makes the Loop of a profile; it does not block.
func NewTable[L Loop](name string, newLoop func(mcp.Profile) L) *Table[L] {
	return &Table[L]{name: name, make: newLoop, open: make(map[string]*run[L])}
}

// Watch implements [mcp.Source]. Its errors name the upstream.
func (t *Table[L]) Watch(ctx context.Context, p mcp.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
	if len(want) == 0 {
		return nil, func() {}, nil
	}
	q := NewQuery(want)
	q.Share = p.Share
	loop, err := t.hand(ctx, p, q)
	if err != nil {
		return nil, nil, err
	}
	select {
	case a := <-q.answers: // loops always answer
		if a.err != nil {
			return nil, nil, fmt.Errorf("watching %s: %w", t.name, a.err)
		}
		q.answers = nil // nothing comes any more, and q stays as long as the interest
		return a.honored, func() { q.dropped.Do(func() { loop.Drop(q) }) }, nil
	case <-ctx.Done():
		loop.Drop(q)
		return nil, nil, context.Cause(ctx)
	}
}

// hand gives q to the loop of the profile.
func (t *Table[L]) hand(ctx context.Context, p mcp.Profile, q *Query) (L, error) {
	for {
		r, admitted, err := t.join(p, q)
		if err != nil || admitted {
			return r.loop, err
		}
		select {
		case r.more <- q:
			return r.loop, nil
		case <-r.done: // it ended for want of topics; another takes over
		case <-ctx.Done():
			return r.loop, context.Cause(ctx)
		}
	}
}

// join returns the loop of the profile. If there is none it starts one, with q for
// its first query.
func (t *Table[L]) join(p mcp.Profile, q *Query) (r *run[L], admitted bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		return &run[L]{}, false, fmt.Errorf("watching %s: %w", t.name, mcp.ErrShutdown)
	}
	if r := t.open[p.Scope]; r != nil {
		return r, false, nil
	}
	// Ends when nothing is wanted any more, or by Close.
	ctx, stop := context.WithCancelCause(context.Background())
	r = &run[L]{loop: t.make(p), stop: stop, more: make(chan *Query), done: make(chan struct{})}
	t.open[p.Scope] = r
	t.running.Go(func() {
		defer stop(nil)
		r.loop.Run(ctx, q, r.more)
		t.remove(p.Scope, r)
		close(r.done)
	})
	return r, true, nil
}

// remove takes a loop off the table, before its done is closed: who finds done
// closed will not find the loop again.
func (t *Table[L]) remove(scope string, r *run[L]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[scope] == r {
		delete(t.open, scope)
	}
}

// Of returns the loop of a scope, or the zero L if nothing of it is wanted.
func (t *Table[L]) Of(scope string) L {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.open[scope]; r != nil {
		return r.loop
	}
	var none L
	return none
}

// A Running is a Loop that runs, until Done is closed.
type Running[L Loop] struct {
	Loop L
	Done <-chan struct{}
}

// Loops lists the loops that run, in no order.
func (t *Table[L]) Loops() []Running[L] {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Running[L], 0, len(t.open))
	for _, r := range t.open {
		out = append(out, Running[L]{r.loop, r.done})
	}
	return out
}

// Close ends all loops and waits for them.
func (t *Table[L]) Close() {
	t.mu.Lock()
	open := t.open
	t.open = nil
	t.mu.Unlock()
	for _, r := range open {
		r.stop(mcp.ErrShutdown)
	}
	t.running.Wait()
}
