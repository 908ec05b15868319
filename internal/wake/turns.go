package wake

import (
	"context"
	"sync"
)

// Turns have a function called when they are sent to, on a goroutine that ends when there is nothing
// left to do: what waits for long has no stack meanwhile. Calls do not overlap. The zero value is ready
// to use, and remembers what is sent before Start. It is safe for concurrent use.
type Turns struct {
	// mu guards the fields below. It is not held while turn runs.
	mu      sync.Mutex
	turn    func() (over bool) // nil before Start, and once it is over
	due     bool               // sent, and turn has not begun since
	running bool
}

// Send has turn called, once more if it is running. It never blocks. Sending to nil has no effect.
func (t *Turns) Send() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.due = true
	t.beginLocked()
}

// Start has turn called after each Send, until it reports that it is over. It is called once.
func (t *Turns) Start(turn func() (over bool)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn = turn
	t.beginLocked()
}

// Run is Start, and returns once turn is over. Turn is called as well when ctx ends.
func (t *Turns) Run(ctx context.Context, turn func() (over bool)) {
	defer context.AfterFunc(ctx, t.Send)()
	over := make(chan struct{})
	t.Start(func() bool {
		if !turn() {
			return false
		}
		close(over)
		return true
	})
	<-over
}

func (t *Turns) beginLocked() {
	if t.due && t.turn != nil && !t.running {
		t.running = true
		go t.run(t.turn) // ends when nothing is due
	}
}

func (t *Turns) run(turn func() (over bool)) {
	for t.next() {
		if turn() {
			t.mu.Lock()
			t.turn = nil
			t.mu.Unlock()
			return
		}
	}
}

// next reports whether turn is due, which it is no longer then.
func (t *Turns) next() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running, t.due = t.due, false
	return t.running
}
