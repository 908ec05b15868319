package watch

import (
	"context"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
)

// A watch keeps the listen streams of one profile such that they carry what is
// wanted. One loop owns all of it and never waits for anything but news; streams are
// opened and read beside it. Readers publish by themselves, so that no change waits
// for the loop.
type watch struct {
	// Set by newWatch, read-only after.
	table   *Watches
	opts    *Options
	profile mcp.Profile
	payer   *subscribe.Allowance // for the streams that are asked for
	born    time.Time            // what the clock of durations counts from

	// How others reach the loop.
	poked   chan struct{} // capacity 1: look at drops
	drops   drops
	reports chan bidReport // received from until the loop has ended
	ends    chan streamEnd // the same
	workers sync.WaitGroup // bids, readers, goodbyes

	// mu guards the map and the fields of its topics that say so, against readers.
	// Only the loop writes them, so it reads without. It is a leaf: nothing is
	// called while it is held.
	mu     sync.Mutex
	topics map[fanout.Topic]*tracked

	// The loop's own.
	clock   time.Duration
	waiting []*subscribe.Query // not yet answered, oldest first; answered ones between
	awayErr error              // why the last attempt to open a stream failed; nil if it did not
	topicState
	bidState
	mergeState
	cueState
	streams []*sharedStream // open, oldest first
	falls   int             // streams in a row that did not last
}

// drops are the queries whose callers have lost interest. mu is a leaf.
type drops struct {
	mu      sync.Mutex
	queries []*subscribe.Query
}

func newWatch(ws *Watches, p mcp.Profile) *watch {
	return &watch{
		table:   ws,
		opts:    &ws.opts,
		profile: p,
		payer:   ws.allowances.Of(p.Share),
		born:    time.Now(),
		poked:   make(chan struct{}, 1),
		reports: make(chan bidReport),
		ends:    make(chan streamEnd),
		topics:  make(map[fanout.Topic]*tracked),
	}
}

// now is the time on the watch's clock. It stands still between two waits, so that
// what is due is the same to all who look. It is never 0, which means "not set".
func (w *watch) now() time.Duration { return w.clock }

func (w *watch) readClock() { w.clock = time.Since(w.born) + 1 }

// Run implements [subscribe.Loop]. It ends when nothing is promised or waited for any more, or with
// ctx.
func (w *watch) Run(ctx context.Context, first *subscribe.Query, more <-chan *subscribe.Query) {
	ctx, stop := context.WithCancel(ctx)
	defer w.end(ctx, stop)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	w.readClock()
	w.admit(first)
	for {
		w.tick()
		if w.idle() {
			return
		}
		w.pump(ctx)
		timer.Reset(w.nextWake())
		select {
		case <-ctx.Done():
			return
		case q := <-more:
			w.readClock()
			w.admit(q)
		case <-w.poked:
			w.readClock()
			w.takeDropped()
		case r := <-w.reports:
			w.readClock()
			w.bidEnded(ctx, r)
		case e := <-w.ends:
			w.readClock()
			w.streamEnded(e)
		case <-timer.C:
			w.readClock()
		}
	}
}

// end closes the streams and joins what the loop started. Who waits is told why.
func (w *watch) end(ctx context.Context, stop context.CancelFunc) {
	for _, s := range w.streams {
		w.dismiss(s)
	}
	stop()
	w.workers.Wait()
	for _, q := range w.waiting {
		q.Finish(context.Cause(ctx))
	}
}

// idle reports whether nobody wants anything.
func (w *watch) idle() bool { return w.promises == 0 && len(w.waiting) == 0 }

// tick does what is due.
func (w *watch) tick() {
	now := w.now()
	w.expire(now)
	w.faded(now)
	w.rested(now)
	w.overlapped(now)
	w.payCues(now)
}

// pump opens the streams that are needed and may be opened.
func (w *watch) pump(ctx context.Context) {
	if w.opts.Single {
		w.pumpSingle(ctx)
		return
	}
	w.pumpSuspects(ctx)
	w.pumpFresh(ctx)
	w.pumpMerge(ctx)
}

// nextWake is how long the loop may sleep.
func (w *watch) nextWake() time.Duration {
	at := earliest(w.nextFade(), w.nextRest(), w.nextBid(), w.nextMerge(), w.nextCue())
	if len(w.waiting) > 0 {
		at = earliest(at, w.waiting[0].Until)
	}
	if at == 0 {
		return time.Hour
	}
	return max(at-w.now(), 0)
}

// earliest returns the least of the times that are set, 0 if none is.
func earliest(times ...time.Duration) time.Duration {
	var out time.Duration
	for _, t := range times {
		if t != 0 && (out == 0 || t < out) {
			out = t
		}
	}
	return out
}

// pause is how long to wait after so many failures in a row. The jitter keeps
// profiles from coming all at once.
func (w *watch) pause(failures int) time.Duration {
	return backoff.Jitter(w.opts.Retry.After(failures))
}
