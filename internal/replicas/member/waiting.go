package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// maxWaiting bounds the calls of Claim that wait at the same time. Others fail at once.
const maxWaiting = 4096

var errCrowded = fmt.Errorf("%d calls wait already until it is known who holds what they claim", maxWaiting)

// undecided reports whether only time is missing until it is known who holds a name.
func undecided(err error) bool {
	return errors.Is(err, errEarly) || errors.Is(err, errUnsure) || errors.Is(err, errUnknown)
}

// claimNow wants key, and returns who holds it. If that can't be known yet, the loop finds it out
// for all who wait, and they ask the engine nothing.
func (cl *claimer) claimNow(ctx context.Context, key string, from claim) (c replicas.Claim, err error) {
	cl.m.picture.mu.Lock()
	w := cl.m.wishes.want(key)
	before := w.decisions
	cl.m.picture.mu.Unlock()
	err = cl.m.ask(ctx, func(ctx context.Context) error {
		got, err := cl.settle(ctx, key, from)
		if err != nil {
			return err
		}
		cl.m.picture.mu.Lock()
		defer cl.m.picture.mu.Unlock()
		c = cl.m.toldLocked(got)
		return nil
	})
	if !undecided(err) {
		return c, err
	}
	return cl.await(ctx, key, w, before, err)
}

// await returns who holds a wish's key, once more has been decided of it than before. why is what
// it waits for, and its error if that takes too long.
func (cl *claimer) await(ctx context.Context, key string, w *wish, before uint64, why error) (replicas.Claim, error) {
	m := cl.m
	ctx, cancel := context.WithTimeout(ctx, m.View().Slowest.Takeover())
	defer cancel()
	m.picture.mu.Lock()
	defer m.picture.mu.Unlock()
	if cl.waiting >= maxWaiting {
		m.seen.Crowded()
		m.journal.log(warnings, slog.LevelWarn, "too many calls wait until it is known which replica holds what they claim: others are refused", "waiting", cl.waiting)
		return replicas.Claim{}, fmt.Errorf("%w: %w", replicas.ErrAway, errCrowded)
	}
	cl.waiting++
	defer func() { cl.waiting-- }()
	if w.due.IsZero() {
		w.due = m.now().Add(courtesy)
		m.kick.Send()
	}
	for {
		switch err := m.usable(); {
		case err != nil:
			return replicas.Claim{}, err
		case m.state != joined:
			return replicas.Claim{}, replicas.ErrClosed
		case m.wishes.all[key] != w: // it was released
			return replicas.Claim{}, why
		case w.decisions != before && !w.doubted:
			return m.toldLocked(w.claim), nil
		}
		decided, changed := w.decidedLocked(), m.changed
		m.picture.mu.Unlock()
		select {
		case <-decided:
		case <-changed: // the engine may be away
		case <-m.ctx.Done(): // this replica has ended
		case <-ctx.Done():
		}
		m.picture.mu.Lock()
		if ctx.Err() != nil {
			return replicas.Claim{}, why
		}
	}
}

// decidedLocked returns what the next decision closes, or the end of the wish.
func (w *wish) decidedLocked() <-chan struct{} {
	if w.decided == nil {
		w.decided = make(chan struct{})
	}
	return w.decided
}

// decide notes that it is known who holds the name, or that nobody wants it here any more.
func (w *wish) decide() {
	w.decisions++
	if w.decided != nil {
		close(w.decided)
		w.decided = nil
	}
}

// earlyLocked is until when somebody else may hold a name of which the engine knows nothing, so
// that this replica leaves it to that one: the engine is back, and may have lost what it knew; or
// it has lost the claim of a replica that lives.
func (cl *claimer) earlyLocked(now time.Time, w *wish) time.Time {
	m := cl.m
	if w != nil && w.claim.holder == m.self.Instance {
		return time.Time{}
	}
	if w == nil || now.Before(m.clock.quiet) {
		return m.clock.quiet
	}
	before, lives := m.holderLocked(w.claim.holder)
	if !lives || before.Draining { // who is draining has given it up
		return time.Time{}
	}
	if w.gone.IsZero() {
		w.gone = now
	}
	return w.gone.Add(grace(m.self.Pace.Slower(before.Pace)))
}

// early reports whether that is so, and has the loop look again once it is not.
func (cl *claimer) early(key string) bool {
	m := cl.m
	m.picture.mu.Lock()
	defer m.picture.mu.Unlock()
	now, w := m.now(), m.wishes.all[key]
	until := cl.earlyLocked(now, w)
	if !now.Before(until) {
		return false
	}
	if w != nil {
		w.due = until
	}
	return true
}
