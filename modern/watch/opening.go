package watch

import (
	"context"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	// crowdedPause is the pause before another attempt if a share has too many requests in
	// flight.
	crowdedPause = 20 * time.Millisecond
	// exhaustedPause is the pause if a share has caused so many requests that the time of
	// the next is not known.
	exhaustedPause = time.Second
)

// A listen is a listen request in flight. There may be several, but never two for the same
// topic.
type listen struct {
	topics   []*topic
	accepted int             // so many topics at the front were accepted together before
	part     bool            // a larger request that included these topics was refused
	replaces []*sharedStream // of a merge: the streams that it replaces
	merge    bool
	former   *sharedStream // closed before the request is sent
}

// openings is the state of listen requests; only the loop uses it.
type openings struct {
	out      int   // requests in flight
	partOut  bool  // one of them is for a part
	awayErr  error // why the last one did not reach the server; nil if it did
	failures int   // requests in a row that did not reach the server
	refusals int   // requests in a row that were refused
	payment
	backlog
}

// A payment charges a share for the next listen request, unless that is a merge.
type payment struct {
	payer  *subscribe.Allowance // nil before the first
	paid   bool
	paidAt time.Duration // when the request may be sent
}

// allowed reports whether the request may be sent. Accepted topics that have lost their
// stream wait as well: their subscribers get an event after the gap.
func (p *payment) allowed(now time.Duration) bool {
	if !p.paid && now >= p.paidAt {
		wait, ok := p.payer.Subscribe()
		if p.paid = ok; !ok {
			wait = exhaustedPause
		}
		p.paidAt = now + wait
	}
	return p.paid && now >= p.paidAt
}

// A backlog contains the topics that wait for a request. Topics that are elsewhere by now
// are skipped.
type backlog struct {
	floor    time.Duration // no request before
	fresh    []*topic      // for the next request
	freshAt  time.Duration
	parts    [][]*topic // of refused requests, each requested separately
	accepted []*topic   // of a single stream whose last request was refused; see listen.accepted
}

// freshDue reports whether it is time to request the fresh topics.
func (b *backlog) freshDue(now time.Duration) bool {
	return len(b.fresh) > 0 && now >= max(b.freshAt, b.floor)
}

// partsDue reports whether it is time to request a part.
func (b *backlog) partsDue(now time.Duration) bool { return len(b.parts) > 0 && now >= b.floor }

// takeFresh returns the topics for the next request.
func (b *backlog) takeFresh() []*topic {
	topics := pick(b.fresh)
	b.fresh = nil
	return topics
}

// takePart returns the topics of the next part.
func (b *backlog) takePart() []*topic {
	for len(b.parts) > 0 {
		topics := pick(b.parts[0])
		if b.parts = b.parts[1:]; len(topics) > 0 {
			return topics
		}
	}
	return nil
}

// bisect makes a part of topics, before the other parts.
func (b *backlog) bisect(topics []*topic) {
	if len(topics) > 0 {
		b.parts = slices.Insert(b.parts, 0, queue(topics))
	}
}

// queue marks topics as waiting for a request.
func queue(topics []*topic) []*topic {
	for _, t := range topics {
		t.State.place = queued
	}
	return topics
}

// pick returns the topics that still wait for a request.
func pick(topics []*topic) []*topic {
	var out []*topic
	for _, t := range topics {
		if t.State.place == queued {
			out = append(out, t)
		}
	}
	return out
}

// seek adds t to the next request.
func (w *watch) seek(t *topic) {
	if t.State.place == queued || t.State.place == opening {
		return
	}
	t.State.place = queued
	w.book.At(t, 0)
	if len(w.fresh) == 0 {
		w.freshAt = w.book.Now() + gather
	}
	w.fresh = append(w.fresh, t)
}

// nextOpening returns when a request is due that does not have to wait for another.
func (w *watch) nextOpening() time.Duration {
	switch {
	case w.opts.single && w.out > 0:
		return 0
	case len(w.parts) > 0 && !w.partOut, len(w.accepted) > 0:
		return max(w.floor, w.paidAt) + 1 // not 0
	case len(w.fresh) == 0:
		return 0
	}
	if at := max(w.freshAt, w.floor, w.paidAt); at > w.book.Now() {
		return at
	}
	return 0 // it is due, and waits for room
}

// pumpParts requests the parts.
func (w *watch) pumpParts(ctx context.Context) {
	if now := w.book.Now(); w.partOut || !w.partsDue(now) || !w.allowed(now) {
		return
	}
	if topics := w.takePart(); len(topics) > 0 {
		w.partOut = true
		w.send(ctx, &listen{topics: topics, part: true})
	}
}

// pumpFresh requests the fresh topics.
func (w *watch) pumpFresh(ctx context.Context) {
	switch now := w.book.Now(); {
	case !w.freshDue(now) || !w.allowed(now):
	case !merger{w}.room():
		merger{w}.inHaste(ctx)
	default:
		if topics := w.takeFresh(); len(topics) > 0 {
			w.send(ctx, &listen{topics: topics})
		}
	}
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
	// Ends with the response, which Options.Open bounds, or with the loop.
	w.book.Go(func() {
		stream, err := w.open(ctx, l, filterOf(want))
		if !w.book.Do(ctx, func() { w.answered(ctx, l, stream, err) }) && err == nil {
			drain(stream)
		}
	})
}

// open waits until the share may send, and opens a stream.
func (w *watch) open(ctx context.Context, l *listen, want mcp.Filter) (Stream, error) {
	for !w.payer.Enter() {
		if err := wake.Wait(ctx, crowdedPause); err != nil {
			return nil, err
		}
	}
	defer w.payer.Leave()
	if l.former != nil {
		l.former.stream.Close()
	}
	return w.opts.open(ctx, w.profile, want)
}

// filterOf returns the filter for topics.
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
