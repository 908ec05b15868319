package subscribe

import (
	"context"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// An inbox is how other goroutines reach the loop of a [Book].
type inbox struct {
	poked   wake.Signal
	reports chan func() // received from while the loop runs
	workers sync.WaitGroup

	// Used by the loop only.
	awaited <-chan struct{} // when it is closed, then is called; may be nil
	then    func()

	mu      sync.Mutex // guards dropped; a leaf, held to add to it or to take it
	dropped []*Query   // the subscribers have left
}

// Go runs work on another goroutine, for which the loop waits at its end. work ends with
// the loop's context; it may call Do.
func (in *inbox) Go(work func()) { in.workers.Go(work) }

// Do makes the loop run report, and returns when it runs. It returns false if the loop ends
// first. ctx is the loop's. It must be called by a function of [Book.Go].
func (in *inbox) Do(ctx context.Context, report func()) bool {
	select {
	case in.reports <- report:
		return true
	case <-ctx.Done():
		return false
	}
}

// Await makes the loop call then when c is closed. It replaces the last Await.
func (in *inbox) Await(c <-chan struct{}, then func()) { in.awaited, in.then = c, then }

// Join waits for the goroutines of Go.
func (in *inbox) Join() { in.workers.Wait() }

// Poke makes the loop call the driver's Pump. It never blocks, and may be called by any
// goroutine, even after the loop has ended.
func (in *inbox) Poke() { in.poked.Send() }

// drop tells the loop that the subscriber of q has left. It never blocks, may be called by
// any goroutine, and does nothing after the loop has ended.
func (in *inbox) drop(q *Query) {
	in.mu.Lock()
	in.dropped = append(in.dropped, q)
	in.mu.Unlock()
	in.Poke()
}

// takeDropped returns the queries whose subscribers have left since the last call.
func (in *inbox) takeDropped() []*Query {
	in.mu.Lock()
	defer in.mu.Unlock()
	dropped := in.dropped
	in.dropped = nil
	return dropped
}
