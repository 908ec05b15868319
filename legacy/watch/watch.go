package watch

import (
	"cmp"
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// Unreachable is how long streams stay open if their server can't be reached.
const Unreachable = 2 * time.Minute

// A pace has times and limits.
type pace struct {
	retry       wake.Backoff  // the pauses between attempts
	unreachable time.Duration // see Unreachable
	parallel    int           // the limit of calls in flight
}

var usual = pace{
	retry:       wake.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second},
	unreachable: Unreachable,
	parallel:    32,
}

// A HoldFunc returns a profile's session, and opens it if necessary. The session is in use
// until release is called.
type HoldFunc func(ctx context.Context, p mcp.Profile) (s Session, release func(), err error)

// options configure the watches of one server.
type options struct {
	*upstream.Options
	pace
	hold HoldFunc
}

// Watches contains the watches of one server, at most one per profile. A watch runs while
// its profile has topics.
type Watches = subscribe.Table[state, *Watch]

// New returns the watches of a server. o must be complete. None runs yet.
func New(o *upstream.Options, hold HoldFunc) *Watches { return newTable(&options{o, usual, hold}) }

func newTable(o *options) *Watches {
	return subscribe.NewTable(o.Options, o.retry, func(b *book, p mcp.Profile) *Watch { return &Watch{opts: o, profile: p, book: b} })
}

// A Watch keeps the subscriptions made by resources/subscribe equal to what one profile
// needs. It is the [subscribe.Driver] of the profile's book. A nil Watch is that of a
// profile without topics; its methods do nothing.
type Watch struct {
	// Read-only.
	opts    *options
	profile mcp.Profile
	book    *book

	// Set by the session, for Pump.
	gap     atomic.Bool // messages may have been missed
	channel atomic.Bool // the channel has opened or closed

	// Used by the loop only.
	calls
	sessionState
}

type (
	book  = subscribe.Book[state]
	topic = subscribe.Topic[state]
)

// Changed handles a notification of the server: of a list, or of the resource uri, with its
// _meta or nil. It never blocks: sessions call it while reading. It reports whether a
// subscriber gets the change.
func (w *Watch) Changed(kind fanout.Kind, uri string, meta json.RawMessage) bool {
	if w == nil {
		return false
	}
	return w.book.Hear(fanout.Event{Topic: fanout.Topic{Scope: w.profile.Scope, Kind: kind, URI: uri}, Meta: meta}, nil)
}

// ListenChanged is called when the session's channel has opened or closed, which Offers
// says; missed says that messages may have been lost (M2L-37). It never blocks.
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

// Unwanted reports whether the watch has no subscribers, and keeps the session only in case
// they come back soon. It may be called by any goroutine.
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
	if w.book.TakeResponse() {
		w.redialAt = 0
	}
	w.markSlow(w.book.Now())
	w.sessionTick()
	w.pumpDial(ctx)
	w.pumpCalls(ctx)
}

// Wake implements [subscribe.Driver].
func (w *Watch) Wake() time.Duration { return subscribe.Earliest(w.nextSlow(), w.nextSession()) }

// Busy implements [subscribe.Driver]: subscriptions that are left at the server must be
// undone.
func (w *Watch) Busy() bool { return w.book.Len() > 0 || w.sent > 0 || w.dialing }

// Away implements [subscribe.Driver].
func (w *Watch) Away() error {
	if w.session != nil {
		return nil
	}
	return cmp.Or(w.dialErr, errNoAnswer)
}

// Starting implements [subscribe.Driver].
func (w *Watch) Starting() bool { return w.dialing }

// Close implements [subscribe.Driver]. It releases the session when its calls have ended.
func (w *Watch) Close() {
	w.book.Join()
	if w.release != nil {
		w.release()
	}
}
