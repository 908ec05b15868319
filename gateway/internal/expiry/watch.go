package expiry

import (
	"container/heap"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

const (
	// every is the time between two checks of a credential that can be revoked. Usually the
	// cache of recently verified tokens has the answer.
	every = time.Minute
	// checkTimeout limits one check, and maxChecks the number of concurrent ones.
	checkTimeout = 10 * time.Second
	maxChecks    = 8
)

// Reasons for ending a stream or connection.
var (
	ErrExpired = errors.New("its credential has expired")
	ErrRefused = errors.New("its credential is not accepted any more")
)

// A Watch watches the credentials of streams and connections. Its methods are safe for
// concurrent use.
type Watch struct {
	stop context.CancelFunc
	live context.Context // of checks; ends with Close

	running sync.WaitGroup // checks, and the timer's function

	// mu guards the fields below. It is held for work on the heap only.
	mu     sync.Mutex
	timer  *time.Timer // for the first entry of due; nil until there is one
	due    agenda
	checks []*entry // entries that have to be checked
	busy   int      // goroutines that check
	closed bool
}

// New returns an empty Watch. The caller must call Close.
func New() *Watch {
	w := &Watch{}
	w.live, w.stop = context.WithCancel(context.Background())
	return w
}

// Until calls end once when a credential expires or is refused, unless the returned
// function is called before; then end may still be running. end gets ErrExpired or
// ErrRefused, and must not block.
func (w *Watch) Until(id *mcp.Identity, end func(reason error)) (forget func()) {
	if !id.MayEnd() {
		return func() {}
	}
	e := &entry{id: id, end: end}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return func() {}
	}
	w.addLocked(e)
	return func() { w.forget(e) }
}

// Len returns the number of entries.
func (w *Watch) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.due) + len(w.checks)
}

// Close stops the Watch without ending anything, and waits for its goroutines.
func (w *Watch) Close() {
	w.mu.Lock()
	w.closed = true
	w.due, w.checks = nil, nil
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	w.stop()
	w.running.Wait()
}

// addLocked adds e to the agenda, for its end or its next check.
func (w *Watch) addLocked(e *entry) {
	e.at = time.Now().Add(every)
	if at := e.id.Expires; !at.IsZero() && (at.Before(e.at) || !e.id.MayBeRefused()) {
		e.at = at
	}
	heap.Push(&w.due, e)
	if e.index == 0 {
		w.armLocked()
	}
}

// armLocked sets the timer for the first entry of the agenda.
func (w *Watch) armLocked() {
	if len(w.due) == 0 {
		return
	}
	// Timers do not count the time while the machine sleeps, so check at least this often.
	left := min(max(time.Until(w.due[0].at), 0), every)
	if w.timer == nil {
		w.timer = time.AfterFunc(left, w.fire)
		return
	}
	w.timer.Reset(left)
}

// fire runs on the timer's goroutine. It ends what has expired, and starts checks that are
// due.
func (w *Watch) fire() {
	var over []*entry
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	w.running.Add(1)
	defer w.running.Done()
	for now := time.Now(); len(w.due) > 0 && !w.due[0].at.After(now); {
		e := heap.Pop(&w.due).(*entry)
		if e.expired(now) {
			e.done = true
			over = append(over, e)
		} else {
			w.checks = append(w.checks, e)
		}
	}
	w.armLocked()
	w.checkLocked()
	w.mu.Unlock()
	for _, e := range over {
		e.end(ErrExpired)
	}
}

// checkLocked starts goroutines for the checks that are due.
func (w *Watch) checkLocked() {
	for n := min(len(w.checks), maxChecks); w.busy < n; {
		w.busy++
		w.running.Go(w.check) // ends with the last check; Close stops it
	}
}

// check runs checks until none is due.
func (w *Watch) check() {
	for {
		w.mu.Lock()
		if len(w.checks) == 0 {
			w.busy--
			w.mu.Unlock()
			return
		}
		e := w.checks[0]
		w.checks = w.checks[1:]
		w.mu.Unlock()
		if err := w.verify(e.id); w.settle(e, err) {
			e.end(ErrRefused)
		}
	}
}

func (w *Watch) verify(id *mcp.Identity) error {
	ctx, cancel := context.WithTimeout(w.live, checkTimeout)
	defer cancel()
	return id.Verify(ctx)
}

// settle records the outcome of a check, and reports whether to end the entry.
func (w *Watch) settle(e *entry, refused error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.done || w.closed {
		return false
	}
	if e.done = refused != nil; !e.done {
		w.addLocked(e)
	}
	return e.done
}

func (w *Watch) forget(e *entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.done {
		return
	}
	e.done = true
	if e.index >= 0 && !w.closed {
		heap.Remove(&w.due, e.index) // the timer may then fire for nothing
	}
}
