package watch

import (
	"context"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

const (
	// crowdedPause is how long an opening waits before it is tried again whose payer has
	// too many on their way.
	crowdedPause = 20 * time.Millisecond
	// exhaustedPause is the same for a payer that has caused so many that it can't be
	// said when the next may follow.
	exhaustedPause = time.Second
)

// A listen is a listen request on its way. There may be several, never two for a topic.
type listen struct {
	topics   []*topic
	accepted int             // how many of topics, at the front, the server has accepted together
	part     bool            // a larger request with these topics was refused
	replaces []*sharedStream // of a merge: what it makes superfluous
	merge    bool
	former   *sharedStream // closed before the server is asked
}

// openings is what the loop knows of listen requests.
type openings struct {
	out      int      // on their way
	fresh    []*topic // wait for the next
	freshAt  time.Duration
	parts    [][]*topic    // of refused ones, each to be tried by itself
	partOut  bool          // one of these is on its way
	accepted []*topic      // of a single stream whose last request was refused; see listen.accepted
	floor    time.Duration // no request before
	awayErr  error         // why the last did not reach the server; nil if it did
	failures int           // in a row that did not reach the server
	refusals int           // in a row that were refused

	paid   bool          // the next one is
	paidAt time.Duration // when it may be sent
}

// seek has t asked for with the next request.
func (w *watch) seek(t *topic) {
	if t.State.place == queued || t.State.place == opening {
		return
	}
	t.State.place = queued
	w.book.At(t, 0)
	if len(w.fresh) == 0 {
		w.freshAt = w.book.Now() + w.opts.Gather
	}
	w.fresh = append(w.fresh, t)
}

// freshDue reports whether it is time to ask for what is fresh.
func (w *watch) freshDue() bool {
	return len(w.fresh) > 0 && w.book.Now() >= max(w.freshAt, w.floor)
}

// partsDue reports whether there are parts to be tried.
func (w *watch) partsDue() bool { return len(w.parts) > 0 && w.book.Now() >= w.floor }

// nextOpening returns when a request is due that is not held up by another.
func (w *watch) nextOpening() time.Duration {
	switch {
	case w.opts.Single && w.out > 0:
		return 0
	case len(w.parts) > 0 && !w.partOut, len(w.accepted) > 0:
		return max(w.floor, w.paidAt) + 1 // not 0
	case len(w.fresh) == 0:
		return 0
	}
	if at := max(w.freshAt, w.floor, w.paidAt); at > w.book.Now() {
		return at
	}
	return 0 // it was due, and waits for room
}

// takeFresh returns the topics that are due to be asked for.
func (w *watch) takeFresh() []*topic {
	if !w.freshDue() {
		return nil
	}
	topics := w.pick(w.fresh)
	w.fresh = nil
	return topics
}

// takePart returns the next topics that are to be tried by themselves.
func (w *watch) takePart() []*topic {
	for w.partsDue() {
		topics := w.pick(w.parts[0])
		if w.parts = w.parts[1:]; len(topics) > 0 {
			return topics
		}
	}
	return nil
}

// pick returns those of the queued topics that are still to be had.
func (w *watch) pick(topics []*topic) []*topic {
	var out []*topic
	for _, t := range topics {
		if t.State.place == queued && w.book.Tracks(t) {
			out = append(out, t)
		}
	}
	return out
}

// queue marks topics as waiting for a request.
func queue(topics []*topic) []*topic {
	for _, t := range topics {
		t.State.place = queued
	}
	return topics
}

// bisect has topics tried by themselves, before others.
func (w *watch) bisect(topics []*topic) {
	if len(topics) > 0 {
		w.parts = slices.Insert(w.parts, 0, queue(topics))
	}
}

// pumpParts asks for topics that are to be tried by themselves.
func (w *watch) pumpParts(ctx context.Context) {
	if w.partOut || !w.partsDue() || !w.allowed() {
		return
	}
	if topics := w.takePart(); len(topics) > 0 {
		w.partOut = true
		w.send(ctx, &listen{topics: topics, part: true})
	}
}

// pumpFresh asks for topics that are fresh.
func (w *watch) pumpFresh(ctx context.Context) {
	switch {
	case !w.freshDue() || !w.allowed():
	case !w.room():
		w.mergeInHaste(ctx)
	default:
		if topics := w.takeFresh(); len(topics) > 0 {
			w.send(ctx, &listen{topics: topics})
		}
	}
}

// allowed reports whether a request may be sent at this moment, one that is no merge.
// What was promised, and lost its stream, waits as well: it is told of after the gap.
func (w *watch) allowed() bool {
	now := w.book.Now()
	if !w.paid && now >= w.paidAt {
		wait, ok := w.payer.Subscribe()
		if w.paid = ok; !ok {
			wait = exhaustedPause
		}
		w.paidAt = now + wait
	}
	return w.paid && now >= w.paidAt
}

// send sends a request.
func (w *watch) send(ctx context.Context, l *listen) {
	want := make([]fanout.Topic, 0, len(l.topics))
	for _, t := range l.topics {
		t.State.place = opening
		want = append(want, t.Topic)
	}
	w.out++
	w.paid = false
	// Ends with the answer, which Options.Open bounds, or with the loop.
	w.book.Go(func() {
		stream, err := w.open(ctx, l, filterOf(want))
		if !w.book.Do(ctx, func() { w.answered(ctx, l, stream, err) }) && err == nil {
			drain(stream)
		}
	})
}

// open waits for its turn and opens a stream.
func (w *watch) open(ctx context.Context, l *listen, want mcp.Filter) (Stream, error) {
	for !w.payer.Enter() {
		if err := backoff.Wait(ctx, crowdedPause); err != nil {
			return nil, err
		}
	}
	defer w.payer.Leave()
	if l.former != nil {
		l.former.stream.Close()
		if err := backoff.Wait(ctx, handover); err != nil {
			return nil, err
		}
	}
	return w.opts.Open(ctx, w.profile, want)
}

// filterOf returns the filter that stands for topics.
func filterOf(topics []fanout.Topic) mcp.Filter {
	var f mcp.Filter
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
