package downstream

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Errors of [InFlight.Enter], beside that of a Reservation.
var (
	ErrClosed = errors.New("no more requests are taken")
	ErrSameID = errors.New("a request with the same id is in flight")
	ErrFull   = errors.New("too many requests are in flight")
)

// A Call is one request in flight. The type that serves the request embeds it, and sets
// the exported fields before Enter.
type Call struct {
	ID     wire.ID
	Cancel context.CancelCauseFunc
	Memory mcp.Reservation // filled by Enter, emptied by Leave

	// Guarded by InFlight.mu.
	freed bool
	left  chan struct{} // closed by Leave; nil unless someone waits
}

func (c *Call) call() *Call { return c }

// A Caller serves a request: a pointer to a struct that embeds Call.
type Caller interface {
	comparable
	call() *Call
}

// InFlight contains the requests in flight of one client. An id can be in flight only
// once, until Leave or Free; Free is called when no more messages are sent for the
// request. The zero value is ready to use, and safe for concurrent use.
type InFlight[C Caller] struct {
	// mu guards the fields below, and those of calls. It is held for list work only.
	mu     sync.Mutex
	calls  []C // a client has few at a time, and usually none
	closed bool
	idle   chan struct{} // closed when there are no calls left; nil unless someone waits
}

// Enter reserves memory for a request of size bytes, and adds it, unless there are max
// requests. former is closed by Leave of an earlier request with the same id that was
// freed; nil if there is none.
func (t *InFlight[C]) Enter(c C, size, max int) (former <-chan struct{}, err error) {
	if err = c.call().Memory.Grow(size); err != nil {
		return nil, err
	}
	if former, err = t.add(c, max); err != nil {
		c.call().Memory.Release()
	}
	return former, err
}

func (t *InFlight[C]) add(c C, max int) (former <-chan struct{}, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	same := t.latestLocked(c.call().ID)
	switch {
	case t.closed:
		return nil, ErrClosed
	case same != nil && !same.freed:
		return nil, ErrSameID
	case len(t.calls) >= max:
		return nil, ErrFull
	}
	if same != nil {
		if same.left == nil {
			same.left = make(chan struct{})
		}
		former = same.left
	}
	t.calls = append(t.calls, c)
	return former, nil
}

// latestLocked returns the last request with an id, or nil.
func (t *InFlight[C]) latestLocked(id wire.ID) *Call {
	for i := len(t.calls) - 1; i >= 0; i-- {
		if c := t.calls[i].call(); c.ID == id {
			return c
		}
	}
	return nil
}

// Free frees the id of a request. It reports false if that was done before.
func (t *InFlight[C]) Free(c C) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := c.call().freed
	c.call().freed = true
	return !was
}

// Freed reports whether the id of a request was freed.
func (t *InFlight[C]) Freed(c C) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return c.call().freed
}

// Leave removes a request.
func (t *InFlight[C]) Leave(c C) {
	c.call().Memory.Release()
	t.mu.Lock()
	defer t.mu.Unlock()
	c.call().freed = true
	if left := c.call().left; left != nil {
		close(left)
	}
	t.calls = slices.DeleteFunc(t.calls, func(o C) bool { return o == c })
	if len(t.calls) == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// Find returns the request in flight with an id.
func (t *InFlight[C]) Find(id wire.ID) (c C, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.calls {
		if o := c.call(); o.ID == id && !o.freed {
			return c, true
		}
	}
	return c, false
}

// All returns the requests in flight, oldest first.
func (t *InFlight[C]) All() []C {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(t.calls), func(c C) bool { return c.call().freed })
}

// Close refuses further requests, and returns those in flight.
func (t *InFlight[C]) Close() []C {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	return slices.Clone(t.calls)
}

// Closed reports whether Close was called.
func (t *InFlight[C]) Closed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// Wait waits until there are no requests left. If ctx ends first, it returns its cause.
func (t *InFlight[C]) Wait(ctx context.Context) error {
	t.mu.Lock()
	if len(t.calls) == 0 {
		t.mu.Unlock()
		return nil
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	idle := t.idle
	t.mu.Unlock()
	return wake.Await(ctx, idle)
}
