package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// slowAfter is when a call stops to count as one of opts.Parallel, so that
	// URIs which the server never answers for don't keep the others waiting.
	slowAfter = time.Second
	// slowFactor bounds the calls on their way, the slow ones included, by a
	// multiple of opts.Parallel.
	slowFactor = 8
	// maxTries is after how many calls in a row without an answer a topic that
	// was promised is given up, or an unsubscribe.
	maxTries = 5
)

var (
	errNotOffered = errors.New("the server does not offer it")
	errNoAnswer   = errors.New("the server does not answer")
	errNoChannel  = errors.New("there has been no way for its messages for too long")
)

// callState is what the loop knows of calls.
type callState struct {
	urgent []*tracked   // phUrgent, and others that are passed over
	queue  []*tracked   // phQueued, and others that are passed over
	fresh  []*watchCall // started, oldest first; some have ended
	inTime int          // calls on their way that are not slow
	out    int          // calls on their way
}

// A watchCall is one subscribe or unsubscribe.
type watchCall struct {
	e     *tracked
	step  step
	epoch int           // of the session that it runs on
	slow  time.Duration // when it becomes slow; 0 once it is, or has ended
}

// A callReport says how a call ended.
type callReport struct {
	call *watchCall
	err  error
}

func (w *Watch) maxCalls() int { return w.opts.Parallel * slowFactor }

// enqueue puts e in line for a call.
func (w *Watch) enqueue(e *tracked) {
	switch {
	case e.phase == phIdle && len(e.waiters) == 0:
		e.phase = phQueued
		w.queue = append(w.queue, e)
	case e.phase != phUrgent && len(e.waiters) > 0:
		e.phase = phUrgent
		w.urgent = append(w.urgent, e)
	}
}

// dequeue takes off the next in line, nil if there is none.
func (w *Watch) dequeue() *tracked {
	e := takeFirst(&w.urgent, phUrgent)
	if e == nil {
		e = takeFirst(&w.queue, phQueued)
	}
	return e
}

// takeFirst takes the first off a line that is still in the phase of it: others
// went to another line or were forgotten.
func takeFirst(line *[]*tracked, ph phase) *tracked {
	for len(*line) > 0 {
		e := (*line)[0]
		(*line)[0] = nil
		*line = (*line)[1:]
		if e.phase == ph {
			e.phase = phIdle
			return e
		}
	}
	return nil
}

// disband empties the lines.
func (w *Watch) disband() {
	for e := w.dequeue(); e != nil; e = w.dequeue() {
	}
	w.urgent, w.queue = nil, nil
}

// pump starts the dial or the calls that there is reason and room for.
func (w *Watch) pump(ctx context.Context) {
	w.pumpDial(ctx)
	for w.session != nil && w.inTime < w.opts.Parallel && w.out < w.maxCalls() {
		e := w.dequeue()
		if e == nil {
			return
		}
		switch step := w.next(e); step {
		case stepSubscribe, stepUnsubscribe:
			if w.allowed(e, step) {
				w.start(ctx, e, step)
			}
		case stepForget:
			w.forget(e)
		}
	}
}

// start sends a call.
func (w *Watch) start(ctx context.Context, e *tracked, step step) {
	w.mu.Lock()
	if step == stepSubscribe {
		e.asking = true
	} else {
		e.acked, e.asking, e.raced = false, false, nil
	}
	w.mu.Unlock()
	if step == stepUnsubscribe {
		e.owed = false
		w.answer(e, false) // those who wait have left the index
	}
	c := &watchCall{e: e, step: step, epoch: w.epoch, slow: w.now() + slowAfter}
	w.fresh = append(w.fresh, c)
	w.inTime++
	w.out++
	e.phase = phCalling
	s, payer := w.session, e.payer
	// Ends with the answer, in opts.Request at the latest, or with the session
	// or the loop.
	w.workers.Go(func() {
		err := w.call(ctx, s, c)
		payer.Leave()
		w.reports <- callReport{c, err}
	})
}

func (w *Watch) call(ctx context.Context, s Session, c *watchCall) error {
	ctx, cancel := context.WithTimeout(ctx, w.opts.Request)
	defer cancel()
	switch topic, on := c.e.topic, c.step == stepSubscribe; {
	case c.e.isList() && on:
		return s.WatchList(ctx, topic.Kind)
	case c.e.isList():
		s.UnwatchList(topic.Kind)
		return nil
	case on:
		return s.Subscribe(ctx, topic.URI)
	default:
		return s.Unsubscribe(ctx, topic.URI)
	}
}

// reported takes the outcome of a call.
func (w *Watch) reported(r callReport) {
	c, e := r.call, r.call.e
	w.out--
	if c.slow != 0 {
		c.slow = 0
		w.inTime--
	}
	e.phase = phIdle
	var refusal *wire.Error
	switch refused := errors.As(r.err, &refusal); {
	case c.epoch != w.epoch:
		w.look(e) // the subscriptions of a lost session are gone, whatever it said
	case r.err != nil && !refused:
		w.unanswered(e, r.err)
	case c.step == stepUnsubscribe:
		e.standing, e.tries = stOff, 0
		w.look(e)
	case refused:
		w.opts.Logger.Debug("subscription refused", "code", refusal.Code)
		w.refuse(e, refusal)
	default:
		w.subscribed(e)
	}
}

// subscribed takes the server's yes. If nobody waits for it any more it is
// undone.
func (w *Watch) subscribed(e *tracked) {
	e.standing, e.tries = stOn, 0
	if w.wanted(e) {
		w.accept(e)
		return
	}
	w.catchUp(e)
	w.payOwed(e)
	w.look(e)
}

// unanswered puts off another try. What was promised is given up after a while;
// what is to be undone as well: at worst it costs updates that nobody hears of.
func (w *Watch) unanswered(e *tracked, err error) {
	e.standing = stUnsure
	e.tries++
	w.catchUp(e)
	if e.tries >= maxTries && len(e.waiters) == 0 {
		w.opts.Logger.Warn("giving up on a subscription", "err", err)
		w.refuse(e, fmt.Errorf("%w: %v", errNoAnswer, err))
		return
	}
	w.schedule(e, w.now()+w.pause(int(e.tries)-1))
}

// pause is how long to wait after so many tries in vain: twice as long each
// time, and a random part more, so that many don't come at once.
func (w *Watch) pause(tries int) time.Duration {
	return backoff.Jitter(w.opts.Retry.After(tries))
}

// slowCalls makes room for others beside calls that take long.
func (w *Watch) slowCalls(now time.Duration) {
	for len(w.fresh) > 0 && w.fresh[0].slow <= now {
		if w.fresh[0].slow != 0 {
			w.fresh[0].slow = 0
			w.inTime--
		}
		w.fresh[0] = nil
		w.fresh = w.fresh[1:]
	}
}

// nextSlow returns when the next call becomes slow, if that matters.
func (w *Watch) nextSlow() time.Duration {
	for len(w.fresh) > 0 && w.fresh[0].slow == 0 {
		w.fresh[0] = nil
		w.fresh = w.fresh[1:]
	}
	if len(w.fresh) == 0 || len(w.urgent)+len(w.queue) == 0 {
		return 0
	}
	return w.fresh[0].slow
}
