package back

import (
	"context"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	// rootsTimeout bounds the wait for a server to request roots after it was told that
	// they have changed.
	rootsTimeout = time.Second
	forever      = 1<<63 - 1 // if something else bounds the wait
	// rootsSettleTime is how long a server has to process new roots before the waiting
	// call is sent.
	rootsSettleTime = 100 * time.Millisecond
	// reorderTime is how much later than the response to a ping a request may arrive that
	// the server sent earlier: on another stream, or from another thread.
	reorderTime = 50 * time.Millisecond
)

// refresh corrects a server that got a provisional answer. Before the call c is sent, it
// tells the server that the roots have changed, and passes the server's roots/list to c's
// caller. Other calls wait only briefly. A server with the roots of another client is also
// corrected; if c's client can't be asked, it gets no roots.
//
// The first call of a session waits to see whether the server requests roots at its start:
// some servers do, and refuse everything until they have them.
func (r *roots) refresh(ctx context.Context, c *call) error {
	if !r.declared || len(r.s.opts.Settings.Roots) > 0 {
		return nil
	}
	if others := r.ownedByOther(c); !others && (!c.mayBeAsked || r.started.Load() && !r.isDue()) {
		return nil
	}
	t := time.NewTimer(rootsTimeout)
	defer t.Stop()
	select {
	case r.turn <- struct{}{}:
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-r.turn }()
	if err := r.awaitStartup(ctx); err != nil || !r.isDue() {
		return err
	}
	// An earlier answer must not arrive after the new one.
	if _, err := r.waitOpen(ctx, false, rootsTimeout); err != nil {
		return err
	}
	r.setAwaited(c)
	defer r.setAwaited(nil)
	if err := r.s.Tell(ctx, spec.NotifyRootsListChanged, nil); err != nil {
		return err
	}
	return r.await(ctx)
}

// awaitStartup returns when the server has processed notifications/initialized: its
// requests then precede its response to a ping, or follow it closely.
func (r *roots) awaitStartup(ctx context.Context) error {
	if r.started.Load() {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, rootsTimeout)
	defer cancel()
	r.setStarting(true)
	defer r.setStarting(false)
	_, err := r.s.Request(bounded, spec.MethodPing, nil)
	if err == nil && !r.isDue() {
		err = wake.Wait(bounded, reorderTime)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		r.s.log.Debug("waiting for the start of the server", "error", transport.Cause(err))
	}
	r.started.Store(true)
	return nil
}

// await returns when the server has got the roots, or has not requested them for a while.
// It is not told again for every call.
func (r *roots) await(ctx context.Context) error {
	asked, err := r.waitOpen(ctx, true, rootsTimeout)
	switch {
	case err != nil:
		return err
	case !asked:
		r.settled(-1)
		return nil
	}
	if _, err = r.waitOpen(ctx, false, forever); err != nil {
		return err
	}
	// Servers read the directories before they use them, and don't tell when they have
	// finished: a call right after the answer would still use the old roots.
	return wake.Wait(ctx, rootsSettleTime)
}

// waitOpen waits until a roots/list is pending, or none is, and reports whether that
// happened in time.
func (r *roots) waitOpen(ctx context.Context, want bool, d time.Duration) (bool, error) {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		changed := r.changed.Changed()
		if open, came := r.isOpen(); open == want || want && (came || !r.isDue()) { // it was answered before this check
			return true, nil
		}
		select {
		case <-changed:
		case <-t.C:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}
