package back

import (
	"context"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

const (
	// rootsTimeout bounds the wait for a server to ask again after it was told that
	// the roots have changed.
	rootsTimeout = time.Second
	forever      = 1<<63 - 1 // where something else bounds a wait
	// rootsSettleTime is how long a server has to act on an answer about roots before
	// the call that waited for it is sent.
	rootsSettleTime = 100 * time.Millisecond
	// reorderTime is how much later than its answer to a ping a request of a server may
	// come that it had begun to send before: on another stream, or by another thread.
	reorderTime = 50 * time.Millisecond
)

// refresh puts a server right that was answered provisionally: before the
// call c is sent, the server is told that the roots have changed, and its
// roots/list goes to c's caller. Other calls wait for that a moment only. So is one that has
// the roots of another client, which are taken back where c's can't be asked.
//
// The first call of a session waits to see whether the server asks as it starts,
// which some do and deny everything until they are answered.
func (r *roots) refresh(ctx context.Context, c *call) error {
	if !r.declared || r.s.opts.Roots != nil {
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
	// An earlier answer must not come after the right one.
	if _, err := r.waitOpen(ctx, false, rootsTimeout); err != nil {
		return err
	}
	r.setAwaited(c)
	defer r.setAwaited(nil)
	if err := r.s.Notify(ctx, spec.NotifyRootsListChanged, nil); err != nil {
		return err
	}
	return r.await(ctx)
}

// awaitStartup returns when the server has done what it does on notifications/initialized:
// what it asks then precedes its answer to a ping, or follows it closely.
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
		err = backoff.Wait(bounded, reorderTime)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		r.s.log.Debug("greeting server", "error", cause(err))
	}
	r.started.Store(true)
	return nil
}

// await returns when the server was answered, or has not asked for a while.
// A server that does not ask again is not told for every call.
func (r *roots) await(ctx context.Context) error {
	asked, err := r.waitOpen(ctx, true, rootsTimeout)
	switch {
	case err != nil:
		return err
	case !asked:
		r.settled()
		return nil
	}
	if _, err = r.waitOpen(ctx, false, forever); err != nil {
		return err
	}
	// Servers look at the directories before they act on the answer, and nothing
	// tells when they have: a call right behind it would still meet the old ones.
	return backoff.Wait(ctx, rootsSettleTime)
}

// waitOpen waits until a roots/list is open, or none is, and reports whether that came
// to be in time.
func (r *roots) waitOpen(ctx context.Context, want bool, d time.Duration) (bool, error) {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		changed := r.changed.changed()
		if r.isOpen() == want || want && !r.isDue() { // it was answered before we looked
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
