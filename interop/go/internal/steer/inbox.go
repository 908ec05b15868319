package steer

import (
	"sync"
	"time"
)

// An Inbox holds what arrives until somebody takes it. It has no bound: a
// handler that blocks would stop the SDK's whole connection.
type Inbox[T any] struct {
	ready chan struct{} // capacity 1: holds a token while there may be items

	mu    sync.Mutex // guards items
	items []T
}

// NewInbox returns an empty Inbox.
func NewInbox[T any]() *Inbox[T] { return &Inbox[T]{ready: make(chan struct{}, 1)} }

// Put adds an item.
func (b *Inbox[T]) Put(item T) {
	b.mu.Lock()
	b.items = append(b.items, item)
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default: // a token is there
	}
}

// Clear throws away what nobody took.
func (b *Inbox[T]) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = nil
}

func (b *Inbox[T]) pop() (item T, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.items) == 0 {
		return item, false
	}
	item = b.items[0]
	b.items = b.items[1:]
	return item, true
}

// Take returns the next item; ok is false if none came within d.
func (b *Inbox[T]) Take(d time.Duration) (item T, ok bool) {
	late := time.After(d)
	for {
		if item, ok := b.pop(); ok {
			return item, true
		}
		select {
		case <-b.ready:
		case <-late:
			return b.pop()
		}
	}
}

// Collect takes n items, and those that come on their heels.
func (b *Inbox[T]) Collect(n int) []any {
	got := []any{}
	end := time.Now().Add(10 * time.Second) // the machine may be busy
	for {
		wait := time.Until(end)
		if len(got) >= n {
			wait = 100 * time.Millisecond
		}
		item, ok := b.Take(wait)
		if !ok {
			return got
		}
		got = append(got, item)
	}
}
