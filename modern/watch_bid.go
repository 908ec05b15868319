package modern

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
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
	// maxOmitted is the most between tries for a topic that was left out.
	maxOmitted = 5 * time.Minute
)

// A bid is a listen request on its way. Several may be out, never two for a topic.
type bid struct {
	topics   []*tracked
	had      int             // how many of topics, at the front, a server has accepted together
	suspect  bool            // a larger bid with these topics was refused
	replaces []*sharedStream // of a merge: what it makes superfluous
	merge    bool
	leaving  *sharedStream // closed before the server is asked
}

type bidReport struct {
	b      *bid
	stream listenStream
	err    error
}

// bidState is what the loop knows of bids.
type bidState struct {
	out        int        // bids on their way
	fresh      []*tracked // wait for the next bid
	freshAt    time.Duration
	suspects   [][]*tracked // wait for bids of their own
	suspecting bool         // one of these is out
	had        []*tracked   // of a single stream whose last bid was refused; see bid.had
	failures   int          // bids in a row that did not reach the server
	floor      time.Duration
	refusals   int // bids in a row that were refused
}

// seek puts e into the next bid.
func (w *watch) seek(e *tracked) {
	if e.place == plQueued || e.place == plBidding {
		return
	}
	e.place = plQueued
	if len(w.fresh) == 0 {
		w.freshAt = w.now() + w.opts.gather
	}
	w.fresh = append(w.fresh, e)
}

// nextBid returns when a bid is due that is not held up by another.
func (w *watch) nextBid() time.Duration {
	switch {
	case w.opts.single && w.out > 0:
		return 0
	case len(w.suspects) > 0 && !w.suspecting, len(w.had) > 0:
		return w.floor + 1 // not 0
	case len(w.fresh) > 0 && (w.opts.single || w.room()):
		return max(w.freshAt, w.floor)
	}
	return 0
}

// takeFresh returns the topics that are due for a bid.
func (w *watch) takeFresh() []*tracked {
	if w.now() < max(w.freshAt, w.floor) {
		return nil
	}
	topics := w.pick(w.fresh)
	w.fresh = nil
	return topics
}

// takeSuspects returns the next topics that are to be tried by themselves.
func (w *watch) takeSuspects() []*tracked {
	for len(w.suspects) > 0 && w.now() >= w.floor {
		topics := w.pick(w.suspects[0])
		if w.suspects = w.suspects[1:]; len(topics) > 0 {
			return topics
		}
	}
	return nil
}

// pick returns those of the queued topics that are still to be had.
func (w *watch) pick(queued []*tracked) []*tracked {
	var out []*tracked
	for _, e := range queued {
		if e.place == plQueued && w.tracks(e) {
			out = append(out, e)
		}
	}
	return out
}

func (w *watch) pumpSuspects(ctx context.Context) {
	if w.suspecting {
		return
	}
	if topics := w.takeSuspects(); len(topics) > 0 {
		w.suspecting = true
		w.send(ctx, &bid{topics: topics, suspect: true})
	}
}

func (w *watch) pumpFresh(ctx context.Context) {
	switch now := w.now(); {
	case len(w.fresh) == 0 || now < max(w.freshAt, w.floor):
	case !w.room():
		w.mergeBy(now) // which takes them along
	default:
		if topics := w.takeFresh(); len(topics) > 0 {
			w.send(ctx, &bid{topics: topics})
		}
	}
}

// send makes a bid.
func (w *watch) send(ctx context.Context, b *bid) {
	want := make([]fanout.Topic, 0, len(b.topics))
	for _, e := range b.topics {
		e.place = plBidding
		want = append(want, e.topic)
	}
	w.out++
	// Ends with the answer, within ackTimeout, or with the loop.
	w.workers.Go(func() { w.carry(ctx, b, filterOf(want)) })
}

// carry makes a bid and reports how it ended.
func (w *watch) carry(ctx context.Context, b *bid, want exchange.Filter) {
	stream, err := w.listen(ctx, b, want)
	select {
	case w.reports <- bidReport{b, stream, err}:
	case <-ctx.Done():
		if err == nil {
			exhaust(stream)
		}
	}
}

func (w *watch) listen(ctx context.Context, b *bid, want exchange.Filter) (listenStream, error) {
	if b.leaving != nil {
		b.leaving.stream.close()
		if err := pause(ctx, turnover); err != nil {
			return nil, err
		}
	}
	return w.opts.open(ctx, w.profile, want)
}

// bidEnded takes the outcome of a bid.
func (w *watch) bidEnded(ctx context.Context, r bidReport) {
	w.out--
	if r.b.suspect {
		w.suspecting = false
	}
	for _, e := range r.b.topics {
		e.place = plNone
	}
	var refusal *wire.Error
	switch {
	case r.err == nil:
		w.won(ctx, r.b, r.stream)
	case errors.As(r.err, &refusal):
		w.refused(r.b, refusal)
	default:
		w.away(r.b, r.err)
	}
	for _, e := range r.b.topics {
		w.look(e)
	}
}

// won takes an acknowledged stream.
func (w *watch) won(ctx context.Context, b *bid, stream listenStream) {
	w.reached()
	w.refusals = 0
	granted := make(map[fanout.Topic]bool)
	for _, t := range stream.honored().Topics(w.profile.Scope) {
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
	case !w.opts.single:
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
			w.opts.changes.Publish(fanout.Event{Topic: e.topic, URI: e.topic.URI})
		}
		if len(e.on) == 0 {
			e.owed = true
			e.tries = min(e.tries+1, 32)
			tries = max(tries, e.tries)
			resting = append(resting, e)
		}
	}
	if news > 0 {
		w.opts.logger.Warn("the server no longer tells of changes that it had agreed to tell of; it will be asked again",
			"topics", news, "first", lost[slices.IndexFunc(lost, func(e *tracked) bool { return e.omitted })].topic)
	}
	w.pauseTopics(resting, w.now()+seldom(int(tries)), false)
}

// seldom is how long to wait after a server has said no so many times in a row.
func seldom(times int) time.Duration {
	return jitter(min(time.Second<<min(times, 16), maxOmitted))
}

// refused takes a server's no to a whole stream. Some give it for a single resource
// they don't like: which one is found out by halves.
func (w *watch) refused(b *bid, refusal *wire.Error) {
	w.reached()
	w.refusals++
	w.opts.logger.Debug("listen refused", "topics", len(b.topics), "err", refusal)
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
		w.opts.logger.Warn("no listen stream can be opened, trying again until one can", "err", err)
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

// filterOf returns the filter that stands for topics.
func filterOf(topics []fanout.Topic) exchange.Filter {
	var f exchange.Filter
	for _, t := range topics {
		switch t.Kind {
		case fanout.ToolsListChanged:
			f.Tools = true
		case fanout.PromptsListChanged:
			f.Prompts = true
		case fanout.ResourcesListChanged:
			f.Resources = true
		case fanout.ResourceUpdated:
			f.URIs = append(f.URIs, t.URI)
		}
	}
	return f
}
