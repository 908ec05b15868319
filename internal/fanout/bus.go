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

// A Bus carries events from publishers to listeners, within one process or between
// several. An implementation over a network encodes events as JSON, publishes them to
// every replica, including its own, and calls the local listeners for each event that
// arrives.
//
// A bus only transports events. The listeners decide what to send to which client and on
// which stream, so a bus can't break the protocol. A bus does not keep events for later
// listeners.
type Bus interface {
	// Publish sends ev to all listeners. ctx bounds the time that it may wait for a
	// network. An error means that some listeners may not receive ev.
	Publish(ctx context.Context, ev Event) error

	// Subscribe makes the bus call listener for every later event. Calls may be
	// concurrent. The listener must return quickly and must not block, because the
	// publisher and other listeners wait for it. Events that one goroutine publishes
	// arrive in order.
	//
	// No call begins after cancel has returned. A call that began before, on another
	// goroutine, may still run: cancel doesn't wait for it, so that a listener can cancel
	// itself. Further calls of cancel do nothing.
	Subscribe(listener func(Event)) (cancel func())
}

// BusOptions configures a [LocalBus]. The zero value is ready to use.
type BusOptions struct {
	// Logger logs panics of listeners. Nil means no log.
	Logger *slog.Logger
}

// A LocalBus is the Bus of a single process. Publish calls the listeners itself, in the
// order in which they subscribed, and returns when all have returned. If a listener
// panics, the bus logs it and calls the other listeners.
type LocalBus struct {
	log *slog.Logger // set by NewBus, read-only after

	// mu guards listeners, and is not held while they are called. The slice is replaced,
	// never modified, so that a publisher can iterate over it without the lock.
	mu        sync.Mutex
	listeners []*listener
}

var _ Bus = (*LocalBus)(nil)

type listener struct {
	call      func(Event)
	cancelled atomic.Bool
}

// NewBus returns a Bus for this process, without listeners. It need not be closed.
func NewBus(opts BusOptions) *LocalBus {
	log := opts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &LocalBus{log: log}
}

// Publish implements [Bus]. It waits only for the listeners, and ignores ctx: the change
// has happened. If the topic's kind is invalid, it calls no listener and returns an
// error.
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

// deliver calls one listener, and recovers its panic, so that the publisher and the other
// listeners continue.
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
