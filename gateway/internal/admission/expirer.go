package admission

import (
	"container/heap"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

const (
	// checkEvery is the time between two checks of a credential that can be revoked. Usually the
	// cache of recently verified tokens has the answer.
	checkEvery = time.Minute
	// checkTimeout limits one check, and maxChecks the number of concurrent ones.
	checkTimeout = 10 * time.Second
	maxChecks    = 8
)

// Reasons for ending a stream or connection.
var (
	ErrExpired = errors.New("its credential has expired")
	ErrRefused = errors.New("its credential is not accepted any more")
)

// An Expirer ends streams and connections whose credentials have ended: one timer serves all, and
// no goroutine waits. Its methods are safe for concurrent use.
type Expirer struct {
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

// NewExpirer returns an empty Expirer. The caller must call Close.
func NewExpirer() *Expirer {
	x := &Expirer{}
	x.live, x.stop = context.WithCancel(context.Background())
	return x
}

// Until calls end once when a credential expires or is refused, unless the returned
// function is called before; then end may still be running. end gets ErrExpired or
// ErrRefused, and must not block.
func (x *Expirer) Until(id *mcp.Identity, end func(reason error)) (forget func()) {
	if !id.MayEnd() {
		return func() {}
	}
	e := &entry{id: id, end: end, until: id.End(time.Now())}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return func() {}
	}
	x.addLocked(e)
	return func() { x.forget(e) }
}

// Len returns the number of entries.
func (x *Expirer) Len() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.due) + len(x.checks)
}

// Close stops the Expirer without ending anything, and waits for its goroutines.
func (x *Expirer) Close() {
	x.mu.Lock()
	x.closed = true
	x.due, x.checks = nil, nil
	if x.timer != nil {
		x.timer.Stop()
	}
	x.mu.Unlock()
	x.stop()
	x.running.Wait()
}

// addLocked adds e to the agenda, for its end or its next check.
func (x *Expirer) addLocked(e *entry) {
	e.at = time.Now().Add(checkEvery)
	if at := e.until; !at.IsZero() && (at.Before(e.at) || !e.id.MayBeRefused()) {
		e.at = at
	}
	heap.Push(&x.due, e)
	if e.index == 0 {
		x.armLocked()
	}
}

// armLocked sets the timer for the first entry of the agenda.
func (x *Expirer) armLocked() {
	if len(x.due) == 0 {
		return
	}
	// Timers do not count the time while the machine sleeps, so check at least this often.
	left := min(max(time.Until(x.due[0].at), 0), checkEvery)
	if x.timer == nil {
		x.timer = time.AfterFunc(left, x.fire)
		return
	}
	x.timer.Reset(left)
}

// fire runs on the timer's goroutine. It ends what has expired, and starts checks that are
// due.
func (x *Expirer) fire() {
	var over []*entry
	x.mu.Lock()
	if x.closed {
		x.mu.Unlock()
		return
	}
	x.running.Add(1)
	defer x.running.Done()
	for now := time.Now(); len(x.due) > 0 && !x.due[0].at.After(now); {
		e := heap.Pop(&x.due).(*entry)
		if e.expired(now) {
			e.done = true
			over = append(over, e)
		} else {
			x.checks = append(x.checks, e)
		}
	}
	x.armLocked()
	x.checkLocked()
	x.mu.Unlock()
	for _, e := range over {
		e.end(ErrExpired)
	}
}

// checkLocked starts goroutines for the checks that are due.
func (x *Expirer) checkLocked() {
	for n := min(len(x.checks), maxChecks); x.busy < n; {
		x.busy++
		x.running.Go(x.check) // ends with the last check; Close stops it
	}
}

// check runs checks until none is due.
func (x *Expirer) check() {
	for {
		x.mu.Lock()
		if len(x.checks) == 0 {
			x.busy--
			x.mu.Unlock()
			return
		}
		e := x.checks[0]
		x.checks = x.checks[1:]
		x.mu.Unlock()
		if err := x.verify(e.id); x.settle(e, err) {
			e.end(ErrRefused)
		}
	}
}

func (x *Expirer) verify(id *mcp.Identity) error {
	ctx, cancel := context.WithTimeout(x.live, checkTimeout)
	defer cancel()
	return id.Verify(ctx)
}

// settle records the outcome of a check, and reports whether to end the entry.
func (x *Expirer) settle(e *entry, refused error) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e.done || x.closed {
		return false
	}
	if e.done = refused != nil; !e.done {
		x.addLocked(e)
	}
	return e.done
}

func (x *Expirer) forget(e *entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e.done {
		return
	}
	e.done = true
	if e.index >= 0 && !x.closed {
		heap.Remove(&x.due, e.index) // the timer may then fire for nothing
	}
}
