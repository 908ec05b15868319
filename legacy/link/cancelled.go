package link

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxPings bounds the pings behind cancellations that a server has not answered.
const maxPings = 64

// errNoPong is why such pings are given up.
var errNoPong = errors.New("a later request was answered, and the ping was not")

// An aftermath is what is known of calls that were cancelled, and of which the server may still send
// something.
type aftermath struct {
	pings   context.Context // ends when the server was found to answer none
	giveUp  context.CancelCauseFunc
	overdue atomic.Int64 // the last id of a request when a ping was found to be overdue; zero while none is

	// mu guards the fields below, and that overdue is set only while the ping is unanswered. It is a
	// leaf.
	mu         sync.Mutex
	unanswered int                     // pings
	late       map[int64]chan struct{} // by the id of a call; closed when a response has come late
}

func newAftermath() *aftermath {
	a := &aftermath{late: make(map[int64]chan struct{})}
	a.pings, a.giveUp = context.WithCancelCause(context.Background())
	return a
}

// ExpectLate has [Outlast], which the caller calls later, notice a response to c that comes after the
// end of c.
func (t *Calls) ExpectLate(c *Call) {
	t.aftermath.mu.Lock()
	defer t.aftermath.mu.Unlock()
	t.aftermath.late[c.ID] = make(chan struct{})
}

// cameLate notes that a response to no call in flight has come.
func (a *aftermath) cameLate(id wire.ID) {
	n, _ := id.Int() // zero is the id of no call
	a.mu.Lock()
	defer a.mu.Unlock()
	if late := a.late[n]; late != nil && !wake.Closed(late) {
		close(late)
	}
}

// lateOf returns what is closed when a response to c has come late.
func (a *aftermath) lateOf(c *Call) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.late[c.ID]
}

// forget ends what ExpectLate has begun.
func (a *aftermath) forget(c *Call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.late, c.ID)
}

// begin reports whether one more ping may be sent.
func (a *aftermath) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pings.Err() != nil || a.unanswered >= maxPings {
		return false
	}
	a.unanswered++
	return true
}

// end closes a ping, which was answered or given up.
func (a *aftermath) end(ping chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unanswered--
	a.overdue.Store(0)
	close(ping)
}

// missed notes that a ping is overdue, and the last id of a request.
func (a *aftermath) missed(ping <-chan struct{}, lastID int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !wake.Closed(ping) {
		a.overdue.Store(lastID)
	}
}

// passed notes that c was answered. If it was sent when a ping was long overdue, which is not answered
// even so, then the server answers none: it reads in order, or does several things at a time.
func (a *aftermath) passed(c *Call) {
	since := a.overdue.Load()
	if since == 0 || c.ID <= since || c.Method == spec.MethodPing || !a.overdue.CompareAndSwap(since, 0) {
		return
	}
	a.giveUp(&upstream.Failure{Cause: errNoPong, Fate: upstream.MayHaveRun}) // which has nothing cancelled at the server
}

// Outlast returns when the server has nothing more to say of c, which was cancelled, and ended: when a
// response to c has come late, when the session has ended, or grace after the server has read the
// cancellation.
//
// A server that is busy may read it much later. If messages do not tell their call, and asks says that
// what the server requests could reach a client, then the answer to a ping that was sent after the
// cancellation shows that it was read; an error is an answer, too. If there is none for pingTimeout,
// overdue is called, and further calls may be sent. If one of them is answered before the ping, the
// server answers none, and is sent none any more.
func Outlast(l *Link, c *Call, grace time.Duration, asks bool, overdue func()) {
	defer l.aftermath.forget(c)
	late := l.aftermath.lateOf(c)
	if c.Cancelled != nil {
		select {
		case <-c.Cancelled:
		case <-late:
			return
		case <-l.done:
			return
		}
	}
	if asks && !l.attributes && !awaitReading(l, late, overdue) {
		return
	}
	rest := time.NewTimer(grace)
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-late:
	case <-l.done:
	}
}

// awaitReading returns true when the server has answered a ping, or is known to answer none. It returns
// false if over is closed, or the session has ended, before.
func awaitReading(l *Link, over <-chan struct{}, overdue func()) bool {
	a := l.aftermath
	if !a.begin() {
		return true
	}
	ping := make(chan struct{})
	started := l.Start(func() { // ends with the answer, the session or a.pings
		defer a.end(ping)
		a.ask(l, ping, overdue)
	})
	if !started {
		return false
	}
	select {
	case <-ping:
		return true
	case <-over:
		return false
	case <-l.done:
		return false
	}
}

// ask sends a ping, and calls overdue if there is no answer for pingTimeout.
func (a *aftermath) ask(l *Link, ping <-chan struct{}, overdue func()) {
	late := time.AfterFunc(pingTimeout, func() {
		a.missed(ping, l.Calls.LastID())
		overdue()
	})
	defer late.Stop()
	if _, err := l.Request(a.pings, spec.MethodPing, nil); errors.Is(err, errNoPong) {
		l.log.Info("server answers no pings: it is not known when it has read a cancellation")
	}
}
