package watch

import (
	"cmp"
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// Unreachable is how long streams outlive their server.
const Unreachable = 2 * time.Minute

// A pace says how long things take and how many run at a time.
type pace struct {
	retry       backoff.Backoff // the pauses before another try
	unreachable time.Duration   // see Unreachable
	parallel    int             // calls on their way at a time
}

var usual = pace{
	retry:       backoff.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second},
	unreachable: Unreachable,
	parallel:    32,
}

// A HoldFunc gives a profile's session, opening one if need be. The session is not idle
// until release is called.
type HoldFunc func(ctx context.Context, p mcp.Profile) (s Session, release func(), err error)

// options describe one upstream to its watches.
type options struct {
	*upstream.Options
	pace
	hold HoldFunc
}

// Watches holds the watches of one upstream, at most one per profile. Each lives while
// something of its profile is wanted.
type Watches = subscribe.Table[state, *Watch]

// New returns the watches of an upstream, whose options are filled in. None is begun yet.
func New(o *upstream.Options, hold HoldFunc) *Watches { return newTable(&options{o, usual, hold}) }

func newTable(o *options) *Watches {
	return subscribe.NewTable(o.Options, o.retry, func(b *book, p mcp.Profile) *Watch { return &Watch{opts: o, profile: p, book: b} })
}

// A Watch keeps what a server was asked for by resources/subscribe equal to what one
// profile needs. It is the [subscribe.Driver] of the profile's book. A nil Watch is of a
// profile that needs nothing: what it is told has no effect.
type Watch struct {
	// Read-only.
	opts    *options
	profile mcp.Profile
	book    *book

	// What a session has told, to be looked at by Pump.
	gap     atomic.Bool // messages may have been missed
	channel atomic.Bool // the channel has opened or closed

	// The loop's own.
	calls
	sessionState
}

type (
	book  = subscribe.Book[state]
	topic = subscribe.Topic[state]
)

// Changed takes a notification of the server: of a list, or of the resource uri, with its
// _meta or nil. It never blocks: sessions call it while reading. The result tells whether
// anybody was or will be told.
func (w *Watch) Changed(kind fanout.Kind, uri string, meta json.RawMessage) bool {
	if w == nil {
		return false
	}
	return w.book.Hear(fanout.Event{Topic: fanout.Topic{Scope: w.profile.Scope, Kind: kind, URI: uri}, Meta: meta}, nil)
}

// ListenChanged says that the session's channel has opened or closed, the session tells
// which, and whether messages may have been missed meanwhile (M2L-37). It never blocks.
func (w *Watch) ListenChanged(missed bool) {
	if w == nil {
		return
	}
	if missed {
		w.gap.Store(true)
	}
	w.channel.Store(true)
	w.book.Poke()
}

// Unwanted reports whether nobody wants any more what is watched: the session is held for
// the case that somebody soon does. It may be called by any goroutine.
func (w *Watch) Unwanted() bool { return w.book.Unwanted() }

// Serve implements [subscribe.Driver].
func (w *Watch) Serve(ts []*topic) {
	w.refreshOffers(false)
	for _, t := range ts {
		w.serve(t)
	}
}

// Pump implements [subscribe.Driver].
func (w *Watch) Pump(ctx context.Context) {
	if w.channel.Swap(false) {
		w.refreshOffers(w.gap.Swap(false))
	}
	w.markSlow(w.book.Now())
	w.sessionTick()
	w.pumpDial(ctx)
	w.pumpCalls(ctx)
}

// Wake implements [subscribe.Driver].
func (w *Watch) Wake() time.Duration { return subscribe.Earliest(w.nextSlow(), w.nextSession()) }

// Busy implements [subscribe.Driver]: what is left at the server has to be undone.
func (w *Watch) Busy() bool { return w.book.Len() > 0 || w.sent > 0 || w.dialing }

// Away implements [subscribe.Driver].
func (w *Watch) Away() error {
	if w.session != nil {
		return nil
	}
	return cmp.Or(w.dialErr, errNoAnswer)
}

// Close implements [subscribe.Driver]. The session is let go once its calls have ended.
func (w *Watch) Close() {
	w.book.Join()
	if w.release != nil {
		w.release()
	}
}
