package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/subscribe"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// slowAfter is when a call stops to count as one of pace.parallel, so that
	// URIs which the server never answers for don't keep the others waiting.
	slowAfter = time.Second
	// slowFactor bounds the calls on their way, the slow ones included, by a
	// multiple of pace.parallel.
	slowFactor = 8
	// maxTries is after how many calls in a row without an answer a topic that
	// was promised is given up, or an unsubscribe.
	maxTries = 5
	// crowdedPause is how long a call waits before it is tried again whose payer has too
	// many on their way.
	crowdedPause = 20 * time.Millisecond
)

var (
	errNotOffered = errors.New("the server does not offer it")
	errNoAnswer   = errors.New("the server does not answer")
	errNoChannel  = errors.New("there has been no way for its messages for too long")
)

// calls is what the loop knows of calls.
type calls struct {
	urgent []*topic // in phase urgent, and others that are passed over
	queue  []*topic // in phase queued, and others that are passed over
	recent []*call  // sent, oldest first; some have ended
	inTime int      // calls on their way that are not slow
	sent   int      // calls on their way
}

// A call is one subscribe or unsubscribe.
type call struct {
	t     *topic
	step  step
	epoch int           // of the session that it runs on
	slow  time.Duration // when it becomes slow; 0 once it is, or has ended
}

// enqueue puts t in line for a call.
func (cs *calls) enqueue(t *topic) {
	switch phase := &t.State.phase; {
	case *phase == idle && !t.Awaited():
		*phase = queued
		cs.queue = append(cs.queue, t)
	case *phase != urgent && t.Awaited():
		*phase = urgent
		cs.urgent = append(cs.urgent, t)
	}
}

// dequeue takes off the next in line, nil if there is none.
func (cs *calls) dequeue() *topic {
	t := takeFirst(&cs.urgent, urgent)
	if t == nil {
		t = takeFirst(&cs.queue, queued)
	}
	return t
}

// takeFirst takes the first off a line that is still in the phase of it: others went to
// another line or were forgotten.
func takeFirst(line *[]*topic, ph phase) *topic {
	for len(*line) > 0 {
		t := (*line)[0]
		(*line)[0] = nil
		*line = (*line)[1:]
		if t.State.phase == ph {
			t.State.phase = idle
			return t
		}
	}
	return nil
}

// emptyQueue has nothing wait for a call any more.
func (cs *calls) emptyQueue() {
	for cs.dequeue() != nil {
	}
	cs.urgent, cs.queue = nil, nil
}

// add counts a call that is about to be sent.
func (cs *calls) add(c *call) {
	cs.recent = append(cs.recent, c)
	cs.inTime++
	cs.sent++
}

// remove counts out a call that has ended.
func (cs *calls) remove(c *call) {
	cs.sent--
	cs.countSlow(c)
}

// countSlow has a call not count as one in time any more.
func (cs *calls) countSlow(c *call) {
	if c.slow != 0 {
		c.slow = 0
		cs.inTime--
	}
}

// markSlow makes room for others beside calls that take long.
func (cs *calls) markSlow(now time.Duration) {
	for len(cs.recent) > 0 && cs.recent[0].slow <= now {
		cs.countSlow(cs.recent[0])
		cs.recent[0] = nil
		cs.recent = cs.recent[1:]
	}
}

// nextSlow returns when the next call becomes slow, if that matters. Calls that have ended
// were taken off by markSlow.
func (cs *calls) nextSlow() time.Duration {
	if len(cs.recent) == 0 || len(cs.urgent)+len(cs.queue) == 0 {
		return 0
	}
	return cs.recent[0].slow
}

// pumpCalls starts the calls that there is reason and room for.
func (w *Watch) pumpCalls(ctx context.Context) {
	for w.session != nil && w.inTime < w.opts.parallel && w.sent < w.opts.parallel*slowFactor {
		t := w.dequeue()
		if t == nil {
			return
		}
		switch step := w.next(t); step {
		case stepSubscribe, stepUnsubscribe:
			if w.allowed(t, step) {
				w.start(ctx, t, step)
			}
		case stepForget:
			w.forget(t)
		}
	}
}

// allowed reports whether a call for t may be sent at this moment, and counts it in. If
// not it is put off, or denied. To restore what was promised is nobody's doing, and no
// promise is broken for want of allowance.
func (w *Watch) allowed(t *topic, step step) bool {
	s, restores := &t.State, step == stepSubscribe && t.Promised()
	if !restores && s.paidAt == 0 && s.tries == 0 && !w.charge(t, step) {
		return false
	}
	if !restores && s.paidAt > w.book.Now() {
		w.book.At(t, s.paidAt)
		return false
	}
	if !t.Payer().Enter() {
		w.book.At(t, w.book.Now()+crowdedPause)
		return false
	}
	s.paidAt = 0
	return true
}

// charge has the payer of t pay for a call, and reports false if it can't: then those who
// wait for t are told no.
func (w *Watch) charge(t *topic, step step) bool {
	if step == stepUnsubscribe {
		t.State.paidAt = w.book.Now() + t.Payer().Unsubscribe()
		return true
	}
	wait, ok := t.Payer().Subscribe()
	if !ok {
		w.deny(t, subscribe.ErrTooMany)
		return false
	}
	t.State.paidAt = w.book.Now() + wait
	return true
}

// start sends a call.
func (w *Watch) start(ctx context.Context, t *topic, step step) {
	if step == stepSubscribe {
		w.book.Ask(t)
	} else {
		w.book.Withdraw(t)
		t.Settle(false) // those who wait have left the index
	}
	c := &call{t: t, step: step, epoch: w.epoch, slow: w.book.Now() + slowAfter}
	w.calls.add(c)
	t.State.phase = calling
	s, payer := w.session, t.Payer()
	// Ends with the answer, in Options.Request at the latest, or with the session
	// or the loop.
	w.book.Go(func() {
		err := w.send(ctx, s, c)
		payer.Leave()
		w.book.Do(ctx, func() { w.answered(c, err) })
	})
}

// send sends a call and waits for the answer.
func (w *Watch) send(ctx context.Context, s Session, c *call) error {
	ctx, cancel := context.WithTimeout(ctx, w.opts.Timeouts.Request)
	defer cancel()
	switch on := c.step == stepSubscribe; {
	case isList(c.t) && on:
		return s.WatchList(ctx, c.t.Kind)
	case isList(c.t):
		s.UnwatchList(c.t.Kind)
		return nil
	case on:
		return s.Subscribe(ctx, c.t.URI)
	default:
		return s.Unsubscribe(ctx, c.t.URI)
	}
}

// answered takes the outcome of a call.
func (w *Watch) answered(c *call, err error) {
	t := c.t
	w.calls.remove(c)
	t.State.phase = idle
	var refusal *wire.Error
	switch refused := errors.As(err, &refusal); {
	case c.epoch != w.epoch:
		w.Look(t) // the subscriptions of a lost session are gone, whatever it said
	case err != nil && !refused:
		w.unanswered(t, err)
	case c.step == stepUnsubscribe:
		t.State.standing, t.State.tries = off, 0
		w.Look(t)
	case refused:
		w.opts.Logger.Debug("subscription refused", "code", refusal.Code)
		w.deny(t, refusal)
	default:
		w.subscribed(t)
	}
}

// subscribed takes the server's yes. If nobody waits for it any more it is undone.
func (w *Watch) subscribed(t *topic) {
	t.State.standing, t.State.tries = on, 0
	if w.book.Wanted(t) {
		w.grant(t)
		return
	}
	w.restored(t)
	w.tellMissed(t)
	w.Look(t)
}

// unanswered puts off another try. What was promised is given up after a while; what is
// to be undone as well: at worst it costs updates that nobody hears of.
func (w *Watch) unanswered(t *topic, err error) {
	s := &t.State
	s.standing = unsure
	s.tries++
	w.restored(t)
	if s.tries >= maxTries && !t.Awaited() {
		w.opts.Logger.Warn("giving up on a subscription", "err", err)
		w.deny(t, fmt.Errorf("%w: %v", errNoAnswer, err))
		return
	}
	w.book.At(t, w.book.Now()+w.book.Pause(int(s.tries)-1))
}
