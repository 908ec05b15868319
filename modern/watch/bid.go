package watch

import (
	"context"
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
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
	stream Stream
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

	paid   bool          // the next bid is
	paidAt time.Duration // when it may be sent
}

// seek puts e into the next bid.
func (w *watch) seek(e *tracked) {
	if e.place == plQueued || e.place == plBidding {
		return
	}
	e.place = plQueued
	if len(w.fresh) == 0 {
		w.freshAt = w.now() + w.opts.Gather
	}
	w.fresh = append(w.fresh, e)
}

// nextBid returns when a bid is due that is not held up by another.
func (w *watch) nextBid() time.Duration {
	switch {
	case w.opts.Single && w.out > 0:
		return 0
	case len(w.suspects) > 0 && !w.suspecting, len(w.had) > 0:
		return max(w.floor, w.paidAt) + 1 // not 0
	case len(w.fresh) == 0:
		return 0
	}
	if at := max(w.freshAt, w.floor, w.paidAt); at > w.now() {
		return at
	}
	return 0 // it was due, and waits for room
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
	if len(w.suspects) == 0 || w.now() < w.floor || !w.allowed() {
		return
	}
	if topics := w.takeSuspects(); len(topics) > 0 {
		w.suspecting = true
		w.send(ctx, &bid{topics: topics, suspect: true})
	}
}

func (w *watch) pumpFresh(ctx context.Context) {
	switch {
	case len(w.fresh) == 0 || w.now() < max(w.freshAt, w.floor) || !w.allowed():
	case !w.room():
		w.mergeInHaste(ctx)
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
	w.paid = false
	// Ends with the answer, within ackTimeout, or with the loop.
	w.workers.Go(func() { w.carry(ctx, b, filterOf(want)) })
}

// carry makes a bid and reports how it ended.
func (w *watch) carry(ctx context.Context, b *bid, want mcp.Filter) {
	stream, err := w.listen(ctx, b, want)
	select {
	case w.reports <- bidReport{b, stream, err}:
	case <-ctx.Done():
		if err == nil {
			exhaust(stream)
		}
	}
}

func (w *watch) listen(ctx context.Context, b *bid, want mcp.Filter) (Stream, error) {
	for !w.payer.Enter() {
		if err := backoff.Wait(ctx, crowdedPause); err != nil {
			return nil, err
		}
	}
	defer w.payer.Leave()
	if b.leaving != nil {
		b.leaving.stream.Close()
		if err := backoff.Wait(ctx, turnover); err != nil {
			return nil, err
		}
	}
	return w.opts.Open(ctx, w.profile, want)
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
