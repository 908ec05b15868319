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
	// slowAfter is when a call no longer counts as one of pace.parallel, so that URIs for
	// which the server never responds don't delay the others.
	slowAfter = time.Second
	// slowFactor bounds the calls in flight, including slow ones, by a multiple of
	// pace.parallel.
	slowFactor = 8
	// maxTries is how many calls in a row may get no response before the Watch gives up on
	// an accepted topic, or on an unsubscribe.
	maxTries = 5
	// crowdedPause is the pause before another attempt if a share has too many calls in
	// flight.
	crowdedPause = 20 * time.Millisecond
)

var (
	errNotOffered = errors.New("the server does not offer it")
	errNoAnswer   = errors.New("the server does not answer")
	errNoChannel  = errors.New("its stream for notifications has been closed for too long")
)

// calls is the state of the calls; only the loop uses it.
type calls struct {
	urgent []*topic // in phase urgent, and others that are skipped
	queue  []*topic // in phase queued, and others that are skipped
	recent []*call  // sent, oldest first; some have ended
	inTime int      // calls in flight that are not slow
	sent   int      // calls in flight
}

// A call is one subscribe or unsubscribe.
type call struct {
	t     *topic
	step  step
	epoch int           // of the session that it uses
	slow  time.Duration // when it becomes slow; 0 if it is slow, or has ended
}

// enqueue adds t to a queue for calls.
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

// dequeue removes and returns the next topic for a call, or nil.
func (cs *calls) dequeue() *topic {
	t := takeFirst(&cs.urgent, urgent)
	if t == nil {
		t = takeFirst(&cs.queue, queued)
	}
	return t
}

// takeFirst removes and returns the first topic of a queue that is still in its phase:
// others are in another queue by now, or were forgotten.
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

// emptyQueue removes all topics from the queues.
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

// remove stops counting a call that has ended.
func (cs *calls) remove(c *call) {
	cs.sent--
	cs.countSlow(c)
}

// countSlow stops counting a call as in time.
func (cs *calls) countSlow(c *call) {
	if c.slow != 0 {
		c.slow = 0
		cs.inTime--
	}
}

// markSlow makes room for others if calls take long.
func (cs *calls) markSlow(now time.Duration) {
	for len(cs.recent) > 0 && cs.recent[0].slow <= now {
		cs.countSlow(cs.recent[0])
		cs.recent[0] = nil
		cs.recent = cs.recent[1:]
	}
}

// nextSlow returns when the next call becomes slow, if that matters. markSlow has removed
// the calls that have ended.
func (cs *calls) nextSlow() time.Duration {
	if len(cs.recent) == 0 || len(cs.urgent)+len(cs.queue) == 0 {
		return 0
	}
	return cs.recent[0].slow
}

// pumpCalls starts calls as long as there are topics and room for them.
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

// allowed reports whether a call for t may be sent at this moment, and counts it. If not,
// the call is postponed, or the topic denied. Calls that restore accepted topics are not
// charged to a share: no accepted subscription may end because of a limit.
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

// charge counts a call for the share that caused it. If its limit is reached, charge denies
// t to those who wait for it, and returns false.
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
	// Ends with the response, at the latest by the limit of Options.Request, or with the
	// session or the loop.
	w.book.Go(func() {
		err := w.send(ctx, s, c)
		payer.Leave()
		w.book.Do(ctx, func() { w.answered(c, err) })
	})
}

// send sends a call and waits for the response.
func (w *Watch) send(ctx context.Context, s Session, c *call) error {
	ctx, cancel := context.WithTimeout(ctx, w.opts.Settings.Timeouts.Own())
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

// answered handles the outcome of a call.
func (w *Watch) answered(c *call, err error) {
	t := c.t
	w.calls.remove(c)
	t.State.phase = idle
	var refusal *wire.Error
	switch refused := errors.As(err, &refusal); {
	case c.epoch != w.epoch:
		w.Look(t) // the subscriptions of a lost session are gone, whatever its response was
	case err != nil && !refused:
		w.unanswered(t, err)
	case c.step == stepUnsubscribe:
		t.State.current, t.State.tries = off, 0
		w.Look(t)
	case refused:
		w.opts.Logger.Debug("subscription refused", "code", refusal.Code)
		w.deny(t, refusal)
	default:
		w.subscribed(t)
	}
}

// subscribed handles a successful subscribe. If no subscriber needs it any more, it is
// undone.
func (w *Watch) subscribed(t *topic) {
	t.State.current, t.State.tries = on, 0
	if w.book.Wanted(t) {
		w.grant(t)
		return
	}
	w.restored(t)
	w.tellMissed(t)
	w.Look(t)
}

// unanswered schedules another attempt. After maxTries it gives up on an accepted topic,
// and on an unsubscribe: at worst there are updates that have no subscriber.
func (w *Watch) unanswered(t *topic, err error) {
	s := &t.State
	s.current = unsure
	s.tries++
	w.restored(t)
	if s.tries >= maxTries && !t.Awaited() {
		w.opts.Logger.Warn("giving up on a subscription", "err", err)
		w.deny(t, fmt.Errorf("%w: %v", errNoAnswer, err))
		return
	}
	w.book.At(t, w.book.Now()+w.book.Pause(int(s.tries)-1))
}
