package watch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// maxRefusals is how many streams in a row are asked for to find out which topics
	// a server refuses. A server that refuses them all must not be asked for each.
	maxRefusals = 64
	// awaitedPause is how soon a server that could not be reached is tried again while
	// somebody waits.
	awaitedPause = time.Second
)

// omittedPauses are those before a topic is asked for again that a server left out.
var omittedPauses = backoff.Backoff{Min: time.Second, Max: 5 * time.Minute}

// omittedPause is how long to wait after a server has said no so many times in a row.
func omittedPause(times int) time.Duration { return backoff.Jitter(omittedPauses.After(times)) }

// answered takes the outcome of a listen request.
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

// acknowledged takes a stream, as far as the server honors what was asked for.
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
		w.merged(l, len(honored) > 0, omitted)
	case !w.opts.single:
		w.mergeLater()
	}
}

// omit looks after topics that the server left out. Who was promised one is told of it
// once more, and it is tried again.
func (w *watch) omit(omitted []*topic) {
	var again, news []*topic
	tries := uint8(0)
	for _, t := range omitted {
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
		w.opts.Logger.Warn("the server no longer tells of changes that it had agreed to tell of; it will be asked again",
			"topics", len(news), "first", news[0].Topic)
	}
	w.rest(again, w.book.Now()+omittedPause(int(tries)), resting)
}

// refused takes a server's no to a whole stream. Some give it for a single resource
// they don't like: which one is found out by halves.
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

// away takes the failure to reach the server. What was promised stands.
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
		if t.Awaited() { // not for long: it is tried as long as somebody waits
			w.rest([]*topic{t}, w.floor, unreached)
		}
	}
	w.book.Unreached(err)
}

// reached notes that the server has answered, which ends the rest of topics for which no
// stream could be had.
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

// allResting returns the topics that rest, in the order in which they are due.
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

// without returns the topics that no stream carries.
func without(topics []*topic) []*topic {
	var out []*topic
	for _, t := range topics {
		if !carried(t) {
			out = append(out, t)
		}
	}
	return out
}
