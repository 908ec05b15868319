package watch

import (
	"context"
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

const (
	gather  = 5 * time.Millisecond   // how long topics are gathered into one stream
	settle  = 2 * time.Second        // after the last new stream, before streams are merged
	overlap = 500 * time.Millisecond // how long merged streams are read on
)

// retry are the pauses before another try.
var retry = backoff.Backoff{Min: 250 * time.Millisecond, Max: 10 * time.Second}

// ErrEnded says that the server ended a listen stream gracefully.
var ErrEnded = errors.New("the server ended the stream")

// A Stream is one open subscriptions/listen upstream, acknowledged. Next is called by one
// goroutine at a time; Close may be called by another, and again.
type Stream interface {
	// Honored returns the filter that the server acknowledged.
	Honored() mcp.Filter
	// Next returns the next change, its topic in the profile's scope with the URI as it
	// was sent. It blocks until there is one. It returns ErrEnded once the server has
	// ended the stream gracefully, and another error if the stream broke or was closed;
	// then it goes on returning the same.
	Next() (fanout.Event, error)
	// Close ends the stream upstream and releases what it holds.
	Close()
}

// An OpenFunc opens a listen stream for want and returns once the server has acknowledged
// it. ctx bounds the opening only. The error has a [*wire.Error] in its chain if the
// server refused, and only then.
type OpenFunc func(ctx context.Context, p mcp.Profile, want mcp.Filter) (Stream, error)

// options describe one upstream to its watches.
type options struct {
	*upstream.Options
	open OpenFunc
	// single: the server bears one listen stream at a time, as some do that share a
	// connection (L2M-22).
	single bool
}

// Watches holds the watches of one upstream, at most one per profile. Each lives while
// something of its profile is wanted.
type Watches = subscribe.Table[state, *watch]

// New returns the watches of an upstream, whose options are filled in. None is begun yet.
func New(o *upstream.Options, open OpenFunc) *Watches {
	return newTable(&options{o, open, o.URL == ""})
}

func newTable(o *options) *Watches {
	return subscribe.NewTable(o.Options, retry, func(b *book, p mcp.Profile) *watch { return &watch{opts: o, profile: p, book: b} })
}

// A watch keeps the listen streams of one profile such that they carry what is needed. It
// is the [subscribe.Driver] of the profile's book. Streams are opened and read beside the
// loop; readers publish by themselves, so that no change waits for it.
type watch struct {
	opts    *options    // read-only
	profile mcp.Profile // read-only
	book    *book

	// The loop's own.
	streams []*sharedStream // open, oldest first
	broken  int             // streams in a row that did not last
	openings
	mergeState
	gapState
}

type (
	book  = subscribe.Book[state]
	topic = subscribe.Topic[state]
)

// state is what a watch knows of a topic.
type state struct {
	place   place
	omitted bool            // the last acknowledgment left it out
	tries   uint8           // acknowledgments in a row that did
	on      []*sharedStream // that carry it: two while streams are merged; read by carries
}

// place is where a topic waits for a stream.
type place uint8

const (
	none      place = iota // it has a stream, or is not needed
	queued                 // in one of the lists of openings
	opening                // a stream is being opened for it, whether or not it has one
	resting                // until it is due: the server has no stream for it
	unreached              // until it is due: no stream could be had at all
)

// rests reports whether t waits for the time at which it is due.
func rests(t *topic) bool { return t.State.place == resting || t.State.place == unreached }

// carried reports whether a stream carries t.
func carried(t *topic) bool { return len(t.State.on) > 0 }

// Serve implements [subscribe.Driver].
func (w *watch) Serve(ts []*topic) {
	for _, t := range ts {
		if w.payer == nil {
			w.payer = t.Payer()
		}
		if carried(t) {
			w.accept(t)
		} else {
			w.seek(t)
		}
	}
}

// Look implements [subscribe.Driver]: it sees to it that t has a stream or is on its way to
// one if it is needed, and is forgotten if it is not and no stream carries it.
func (w *watch) Look(t *topic) {
	if rests(t) && t.Due() == 0 {
		t.State.place = none
	}
	switch {
	case t.State.place == opening: // looked at when that ends
	case !t.Needed() && !carried(t):
		t.State.place = none // whatever list it is in
		w.book.Forget(t)
	case !t.Needed():
		w.excess()
	case !carried(t) && t.State.place == none:
		w.seek(t)
	}
}

// Pump implements [subscribe.Driver]: it opens the streams that are needed and may be
// opened.
func (w *watch) Pump(ctx context.Context) {
	w.endOverlaps()
	w.tellGaps()
	if w.opts.single {
		w.pumpSingle(ctx)
		return
	}
	w.pumpParts(ctx)
	w.pumpFresh(ctx)
	w.pumpMerge(ctx)
}

// Wake implements [subscribe.Driver].
func (w *watch) Wake() time.Duration {
	return subscribe.Earliest(w.nextOpening(), w.nextMerge(), w.nextGap())
}

// Busy implements [subscribe.Driver]: streams that nobody needs end with the loop.
func (w *watch) Busy() bool { return false }

// Away implements [subscribe.Driver].
func (w *watch) Away() error { return w.awayErr }

// Close implements [subscribe.Driver].
func (w *watch) Close() {
	for _, s := range w.streams {
		w.book.Go(s.stream.Close)
	}
}
