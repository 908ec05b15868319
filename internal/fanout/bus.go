package fanout

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
)

// A Bus carries events from where a change is noticed to everyone who listens.
// Behind this interface may be one process or many: an implementation over a
// network encodes events as JSON, publishes them to every replica, its own
// included, and calls the local listeners for what arrives.
//
// A bus can only move events. What a client is told, and on which stream, is
// decided behind the listeners, so that no bus can break the protocol. Nothing
// is kept for listeners that come later.
type Bus interface {
	// Publish hands ev to the bus. ctx bounds how long it may wait for a network.
	// An error means that some listeners may not hear of ev.
	Publish(ctx context.Context, ev Event) error

	// Subscribe has listener called for every event that is published from then
	// on. Calls may be concurrent, must be quick and must not block: others wait
	// for them. Events that one goroutine publishes arrive in its order.
	//
	// No call begins after cancel has returned, but one that another goroutine
	// began before may still run: cancel doesn't wait for it, so that a listener
	// can cancel itself. Calling cancel again does nothing.
	Subscribe(listener func(Event)) (cancel func())
}

// BusOptions configures a [LocalBus]. The zero value is ready to use.
type BusOptions struct {
	// Logger is told of listeners that panic. Nil means that nobody is.
	Logger *slog.Logger
}

// A LocalBus is the Bus of a single process. Publish calls the listeners itself,
// in the order in which they subscribed, and returns when all have returned. A
// listener that panics is logged; the others hear of the event all the same.
type LocalBus struct {
	log *slog.Logger // set by NewBus, read-only after

	// mu guards listeners; it is not held while they are called. The slice is
	// replaced, never changed, so that a publisher can walk the one it found.
	mu        sync.Mutex
	listeners []*listener
}

var _ Bus = (*LocalBus)(nil)

type listener struct {
	call      func(Event)
	cancelled atomic.Bool
}

// NewBus returns a Bus within this process that nobody listens to. It needs no
// closing.
func NewBus(opts BusOptions) *LocalBus {
	log := opts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &LocalBus{log: log}
}

// Publish implements [Bus]. It waits for nothing but the listeners, so that ctx
// being done does not stop it: the change has happened. It returns an error,
// and calls nobody, only if the topic's kind is invalid.
func (b *LocalBus) Publish(_ context.Context, ev Event) error {
	if !ev.Topic.Kind.Valid() {
		return fmt.Errorf("fanout: publishing an event of invalid %v", ev.Topic.Kind)
	}
	b.mu.Lock()
	listeners := b.listeners
	b.mu.Unlock()
	for _, l := range listeners {
		if !l.cancelled.Load() {
			b.deliver(l, ev)
		}
	}
	return nil
}

// Subscribe implements [Bus].
func (b *LocalBus) Subscribe(call func(Event)) (cancel func()) {
	l := &listener{call: call}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listeners = append(slices.Clip(b.listeners), l)
	return func() { b.cancel(l) }
}

// deliver calls one listener, and keeps its panic from the publisher and from
// the listeners after it.
func (b *LocalBus) deliver(l *listener, ev Event) {
	defer func() {
		if v := recover(); v != nil {
			b.log.Error("bus listener panicked", "kind", ev.Topic.Kind, "panic", v, "stack", string(debug.Stack()))
		}
	}()
	l.call(ev)
}

func (b *LocalBus) cancel(l *listener) {
	l.cancelled.Store(true)
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := slices.Index(b.listeners, l); at >= 0 {
		b.listeners = slices.Delete(slices.Clone(b.listeners), at, at+1)
	}
}
