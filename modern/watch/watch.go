package watch

import (
	"context"
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	gather = 5 * time.Millisecond // how long topics are collected for one stream
	settle = 2 * time.Second      // after the last new stream, before streams are merged
)

// retry are the pauses between attempts.
var retry = wake.Backoff{Min: 250 * time.Millisecond, Max: 10 * time.Second}

// ErrEnded says that the server has ended a listen stream gracefully.
var ErrEnded = errors.New("the server ended the stream")

var errNoSession = errors.New("there are no sessions to lose")

// A Stream is one open subscriptions/listen upstream, acknowledged. Next is called by one
// goroutine at a time; Close may be called by another, and more than once.
type Stream interface {
	// Honored returns the filter that the server acknowledged.
	Honored() mcp.Filter
	// Next returns the next change; its topic has the profile's scope and the URI as it was
	// sent. Next blocks until there is one. It returns ErrEnded when the server has ended
	// the stream gracefully, and another error if the stream broke or was closed; further
	// calls return the same.
	Next() (fanout.Event, error)
	// Close ends the stream upstream and releases its resources.
	Close()
}

// An OpenFunc opens a listen stream for want and returns when the server has acknowledged
// it. ctx bounds the opening only. The error has a [*wire.Error] in its chain if the server
// refused, and only then.
type OpenFunc func(ctx context.Context, p mcp.Profile, want mcp.Filter) (Stream, error)

// options configure the watches of one server.
type options struct {
	*upstream.Options
	open OpenFunc
	// starting reports whether the server has not been reached yet, or not again.
	starting func() bool
	// peer: the server is another replica, which leaves out what it can't report at the moment.
	peer bool
	// single: the server supports only one listen stream at a time, as some do on a
	// connection (L2M-22).
	single bool
}

// Watches contains the watches of one server, at most one per profile. A watch runs while
// its profile has topics.
type Watches = subscribe.Table[state, *watch]

// New returns the watches of a server, or of another replica if peer is set. o must be complete;
// starting reports whether the server has not been reached yet, or not again. None runs yet.
func New(o *upstream.Options, open OpenFunc, starting func() bool, peer bool) *Watches {
	return newTable(&options{Options: o, open: open, starting: starting, peer: peer, single: o.URL == ""})
}

func newTable(o *options) *Watches {
	if o.single {
		o.open = (&joint{open: o.open, turn: make(chan struct{}, 1)}).listen
	}
	return subscribe.NewTable(o.Options, retry, func(b *book, p mcp.Profile) *watch {
		return &watch{opts: o, profile: p, book: b, twice: twice{topics: b}}
	})
}

// A watch keeps the listen streams open that the topics of one profile need. It is the
// [subscribe.Driver] of the profile's book. Other goroutines open and read the streams;
// readers publish changes themselves, so that no change waits for the loop.
type watch struct {
	opts    *options    // read-only
	profile mcp.Profile // read-only
	book    *book

	// Used by the loop only.
	streams []*sharedStream // open, oldest first
	broken  int             // streams in a row that ended soon
	openings
	mergeState
	gapState
	twice
}

type (
	book  = subscribe.Book[state]
	topic = subscribe.Topic[state]
)

// state is a watch's state of a topic.
type state struct {
	place   place
	omitted bool            // the last acknowledgment left it out
	tries   uint8           // acknowledgments in a row that left it out
	on      []*sharedStream // the streams that have it, oldest first: two while streams are merged; see carried
	heard   bool            // the last of on has brought a change; see brings
}

// place says where a topic waits for a stream.
type place uint8

const (
	none      place = iota // it has a stream, or needs none
	queued                 // in one of the lists of openings
	opening                // a request with it is in flight, whether or not it has a stream
	resting                // until it is due: the server left it out or refused it
	unreached              // until it is due: no stream could be opened
)

// rests reports whether t waits for a time.
func rests(t *topic) bool { return t.State.place == resting || t.State.place == unreached }

// carried reports whether t is on a stream.
func carried(t *topic) bool { return len(t.State.on) > 0 }

// Serve implements [subscribe.Driver].
func (w *watch) Serve(ts []*topic) {
	for _, t := range ts {
		if w.payer == nil {
			w.payer = t.Payer()
		}
		switch {
		case t.Kind == fanout.StateLost:
			w.book.Deny(t, errNoSession)
		case carried(t):
			accept(w.book, t, !w.opts.single)
		default:
			w.seek(t)
		}
	}
}

// Look implements [subscribe.Driver]: it requests a stream for t if t needs one, and
// removes t if it is not needed and on no stream.
func (w *watch) Look(t *topic) {
	if rests(t) && t.Due() == 0 {
		t.State.place = none
	}
	switch {
	case t.State.place == opening: // handled when that ends
	case !t.Needed() && !carried(t):
		t.State.place = none // removes it from its list
		w.book.Forget(t)
	case !t.Needed():
		merger{w}.excess()
	case !carried(t) && t.State.place == none:
		w.seek(t)
	}
}

// Pump implements [subscribe.Driver]: it opens the streams that are needed and allowed.
func (w *watch) Pump(ctx context.Context) {
	merger{w}.endOverlaps()
	if !w.merging {
		w.expectOnce(w.streams)
	}
	if w.book.TakeResponse() {
		w.reached()
	}
	if w.opts.single {
		single{w}.tellGaps()
		single{w}.pump(ctx)
		return
	}
	w.pumpParts(ctx)
	w.pumpFresh(ctx)
	merger{w}.pump(ctx)
}

// Wake implements [subscribe.Driver].
func (w *watch) Wake() time.Duration {
	return subscribe.Earliest(w.nextOpening(), merger{w}.next(), w.nextGap())
}

// Busy implements [subscribe.Driver]: unneeded streams end with the loop.
func (w *watch) Busy() bool { return false }

// Away implements [subscribe.Driver].
func (w *watch) Away() error { return w.awayErr }

// Starting implements [subscribe.Driver].
func (w *watch) Starting() bool { return w.out > 0 && w.opts.starting() }

// Close implements [subscribe.Driver].
func (w *watch) Close() {
	for _, s := range w.streams {
		w.book.Go(s.stream.Close)
	}
}
