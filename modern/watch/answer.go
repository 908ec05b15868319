package watch

import (
	"context"
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
	// eagerness is how soon a server that could not be reached is tried again because
	// somebody asks.
	eagerness = time.Second
)

// omittedPauses are those before a topic is asked for again that a server left out.
var omittedPauses = backoff.Backoff{Min: time.Second, Max: 5 * time.Minute}

// won takes an acknowledged stream.
func (w *watch) won(ctx context.Context, b *bid, stream Stream) {
	w.reached()
	w.refusals = 0
	granted := make(map[fanout.Topic]bool)
	for _, t := range stream.Honored().Topics(w.profile.Scope) {
		granted[t] = true
	}
	var won, lost []*tracked
	for _, e := range b.topics {
		if granted[e.topic] {
			won = append(won, e)
		} else {
			lost = append(lost, e)
		}
	}
	if len(won) > 0 {
		w.take(ctx, stream, won)
	} else {
		w.workers.Go(func() { exhaust(stream) }) // ends at once: the stream is closed
	}
	w.omit(lost)
	switch {
	case b.merge:
		w.merged(b, won, lost)
	case !w.opts.Single:
		w.unsettle()
	}
}

// accept settles e, which a stream carries. From here on no change is lost.
func (w *watch) accept(e *tracked) {
	e.omitted, e.tries = false, 0
	if !e.needed() {
		return
	}
	w.promise(e)
	w.pay(e)
	w.answer(e, true)
}

// omit looks after topics that the server left out. Who was promised one gets a last
// cue, and it is tried again.
func (w *watch) omit(lost []*tracked) {
	var resting []*tracked
	news, tries := 0, uint8(0)
	for _, e := range lost {
		w.answer(e, false)
		if !e.promised {
			continue
		}
		if !e.omitted {
			e.omitted = true
			news++
			w.cue(e)
		}
		if len(e.on) == 0 {
			e.owed = true
			e.tries = min(e.tries+1, 32)
			tries = max(tries, e.tries)
			resting = append(resting, e)
		}
	}
	if news > 0 {
		w.opts.Logger.Warn("the server no longer tells of changes that it had agreed to tell of; it will be asked again",
			"topics", news, "first", lost[slices.IndexFunc(lost, func(e *tracked) bool { return e.omitted })].topic)
	}
	w.pauseTopics(resting, w.now()+seldom(int(tries)), false)
}

// seldom is how long to wait after a server has said no so many times in a row.
func seldom(times int) time.Duration {
	return backoff.Jitter(omittedPauses.After(times))
}

// refused takes a server's no to a whole stream. Some give it for a single resource
// they don't like: which one is found out by halves.
func (w *watch) refused(b *bid, refusal *wire.Error) {
	w.reached()
	w.refusals++
	w.opts.Logger.Debug("listen refused", "topics", len(b.topics), "err", refusal)
	if b.merge {
		w.mergeFailed(b)
		w.suspect(without(b.topics))
		return
	}
	had, doubted := b.topics[:b.had], b.topics[b.had:]
	if len(doubted) == 0 {
		had, doubted = nil, had
	}
	w.had = queue(had)
	if refusal.Code == spec.CodeMethodNotFound || len(doubted) == 1 || w.refusals > maxRefusals {
		w.omit(doubted)
		return
	}
	half := len(doubted) / 2
	w.suspect(doubted[half:])
	w.suspect(doubted[:half])
}

// suspect has topics tried by themselves, before others.
func (w *watch) suspect(topics []*tracked) {
	if len(topics) > 0 {
		w.suspects = slices.Insert(w.suspects, 0, queue(topics))
	}
}

// queue marks topics as waiting for a bid.
func queue(topics []*tracked) []*tracked {
	for _, e := range topics {
		e.place = plQueued
	}
	return topics
}

// away takes the failure to reach the server. What was promised stands; a server that
// was never reached may not exist: who waits is told at once.
func (w *watch) away(b *bid, err error) {
	wait := w.pause(w.failures)
	if w.awayErr == nil {
		w.opts.Logger.Warn("no listen stream can be opened, trying again until one can", "err", err)
	}
	w.awayErr = err
	w.failures++
	w.floor = w.now() + min(wait, eagerness)
	if b.merge {
		w.mergeFailed(b)
	}
	w.pauseTopics(without(b.topics), w.now()+wait, true)
	for _, e := range b.topics {
		if len(e.waiters) > 0 { // not for long: it is tried as long as they do
			w.pauseTopics([]*tracked{e}, w.floor, true)
		}
	}
	if !w.table.reached.Load() {
		w.failWaiting(err)
	}
}

// reached notes that the server has answered.
func (w *watch) reached() {
	w.table.reached.Store(true)
	w.failures, w.floor, w.awayErr = 0, 0, nil
	w.wake()
}

// without returns the topics that no stream carries.
func without(topics []*tracked) []*tracked {
	var out []*tracked
	for _, e := range topics {
		if len(e.on) == 0 {
			out = append(out, e)
		}
	}
	return out
}
