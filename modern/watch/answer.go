package watch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// maxRefusals is how many requests in a row may be refused while the watch finds out
	// which topics a server refuses. It must not send one for each topic to a server that
	// refuses all.
	maxRefusals = 64
	// awaitedPause is the pause before another attempt to reach a server while a subscriber
	// waits.
	awaitedPause = time.Second
)

// omittedPauses are the pauses before a topic that a server left out is requested again.
var omittedPauses = wake.Backoff{Min: time.Second, Max: 5 * time.Minute}

// omittedPause is the pause after a server has left out a topic so many times in a row.
func omittedPause(times int) time.Duration { return wake.Jitter(omittedPauses.After(times)) }

// answered handles the outcome of a listen request.
func (w *watch) answered(ctx context.Context, l *listen, stream Stream, err error) {
	w.out--
	if l.part {
		w.partOut = false
	}
	for _, t := range l.topics {
		t.State.place = none
	}
	var refusal *wire.Error
	switch {
	case err == nil:
		w.acknowledged(ctx, l, stream)
	case errors.As(err, &refusal):
		w.refused(l, refusal)
	default:
		w.away(l, err)
	}
	for _, t := range l.topics {
		w.Look(t)
	}
}

// acknowledged handles a stream that was opened: it may have fewer topics than were
// requested.
func (w *watch) acknowledged(ctx context.Context, l *listen, stream Stream) {
	w.reached()
	w.refusals = 0
	granted := make(map[fanout.Topic]bool)
	for _, t := range stream.Honored().Topics(w.profile.Scope) {
		granted[t] = true
	}
	var honored, omitted []*topic
	for _, t := range l.topics {
		if granted[t.Topic] {
			honored = append(honored, t)
		} else {
			omitted = append(omitted, t)
		}
	}
	if len(honored) > 0 {
		w.take(ctx, stream, honored)
	} else {
		w.book.Go(func() { drain(stream) }) // ends at once: the stream is closed
	}
	w.omit(omitted)
	switch {
	case l.merge:
		merger{w}.done(l, len(honored) > 0, omitted)
	case !w.opts.single:
		merger{w}.later()
	}
}

// omit handles the topics that the server left out. Subscribers of one that was accepted
// before get one more event, and it is requested again later.
func (w *watch) omit(omitted []*topic) {
	var again, news []*topic
	tries := uint8(0)
	for _, t := range omitted {
		if w.opts.peer && t.Kind != fanout.ResourceUpdated {
			t.PutOff()
		}
		t.Settle(false)
		if !t.Promised() {
			continue
		}
		if s := &t.State; !s.omitted {
			s.omitted = true
			news = append(news, t)
			w.book.Tell(t)
		}
		if !carried(t) {
			t.Missed = true
			t.State.tries = min(t.State.tries+1, 32)
			tries = max(tries, t.State.tries)
			again = append(again, t)
		}
	}
	if len(news) > 0 {
		w.opts.Logger.Warn("server left out topics that it had accepted before; trying again",
			"topics", len(news), "first", news[0].Topic)
	}
	w.rest(again, w.book.Now()+omittedPause(int(tries)), resting)
}

// refused handles a server that refused a whole stream. Some servers do so because of a
// single resource; the watch finds out which one by bisection.
func (w *watch) refused(l *listen, refusal *wire.Error) {
	w.reached()
	w.refusals++
	w.opts.Logger.Debug("listen refused", "topics", len(l.topics), "err", refusal)
	if l.merge {
		w.mergeFailed(w.book.Now(), l)
		w.bisect(without(l.topics))
		return
	}
	accepted, doubtful := l.topics[:l.accepted], l.topics[l.accepted:]
	if len(doubtful) == 0 {
		accepted, doubtful = nil, accepted
	}
	w.accepted = queue(accepted)
	if refusal.Code == spec.CodeMethodNotFound || len(doubtful) == 1 || w.refusals > maxRefusals {
		w.omit(doubtful)
		return
	}
	half := len(doubtful) / 2
	w.bisect(doubtful[half:])
	w.bisect(doubtful[:half])
}

// away handles a server that can't be reached. Accepted topics stay accepted.
func (w *watch) away(l *listen, err error) {
	now, wait := w.book.Now(), w.book.Pause(w.failures)
	if w.awayErr == nil {
		w.opts.Logger.Warn("no listen stream can be opened, trying again until one can", "err", err)
	}
	w.awayErr = err
	w.failures++
	w.floor = now + min(wait, awaitedPause)
	if l.merge {
		w.mergeFailed(w.book.Now(), l)
	}
	w.rest(without(l.topics), now+wait, unreached)
	for _, t := range l.topics {
		if t.Awaited() { // briefly: it is tried again as long as a subscriber waits
			w.rest([]*topic{t}, w.floor, unreached)
		}
	}
	w.book.Unreached(err)
}

// reached says that the server has responded: topics for which no stream could be opened
// need not wait any longer.
func (w *watch) reached() {
	w.book.Reached()
	if w.awayErr == nil {
		return
	}
	w.failures, w.floor, w.awayErr = 0, 0, nil
	for _, t := range allResting(w.book) {
		if t.State.place == unreached {
			w.book.At(t, w.book.Now())
		}
	}
}

// allResting returns the topics that rest, ordered by the time at which they are due.
func allResting(b *book) []*topic {
	var out []*topic
	for t := range b.All() {
		if rests(t) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *topic) int {
		return cmp.Or(cmp.Compare(a.Due(), b.Due()), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.URI, b.URI))
	})
	return out
}

// without returns the topics that are on no stream.
func without(topics []*topic) []*topic {
	var out []*topic
	for _, t := range topics {
		if !carried(t) {
			out = append(out, t)
		}
	}
	return out
}
