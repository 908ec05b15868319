package member

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

const (
	// courtesy is how long those wait that View.Pick does not choose, before they take a dead
	// holder's name: so that not all try each name.
	courtesy = 100 * time.Millisecond
	// atOnce is how many claims are changed at the same time.
	atOnce = 16
)

// grace is how long a living holder has to claim again, when its claim has vanished.
func grace(pace replicas.Pace) time.Duration { return 3 * pace.Every() / 2 }

// hearClaimsLocked takes in who holds what is wanted, as the store has told that was asked before
// now, and marks what is due to be taken.
func (cl *claimer) hearClaimsLocked(asked, now time.Time, claims map[string]Entry) {
	for key, w := range cl.m.wishes.all {
		c := parse(claims[key].Value)
		w.highest = max(w.highest, c.epoch)
		w.tell(c, asked)
		if lives, known := cl.m.keepsLocked(c); !lives || !known {
			cl.orphanedLocked(now, key, w, c, known)
			continue
		}
		parting := cl.partingLocked(c.holder)
		w.gone = time.Time{}
		switch {
		case c == w.claim && w.doubted:
			w.due = now
		case c == w.claim && parting:
			w.dueAt(now.Add(cl.turnLocked(key)))
		case c == w.claim:
			w.due = time.Time{}
		case c.before(w.claim):
			w.due = now // heard late, or claimed anew in an empty store: the store is asked
		default:
			found, forgotten := w.found || w.claim.holder != cl.m.self.Instance, w.forgotten
			cl.m.wishes.moved(key, w, c, cl.m.self.Instance)
			cl.m.news = true
			if c.holder == cl.m.self.Instance { // by another one, or unawares
				w.doubted, w.due, w.found, w.forgotten = true, now, found, forgotten
			}
			if parting {
				w.dueAt(now.Add(cl.turnLocked(key)))
			}
		}
		if w.due.IsZero() {
			w.decide()
		}
	}
}

// partingLocked reports whether a replica holds what it has until this one takes it: it is
// draining, and serves until then.
func (cl *claimer) partingLocked(holder string) bool {
	p := cl.m.peers.all[holder]
	return !cl.m.self.Draining && p != nil && p.lives && p.Draining
}

// turnLocked is how long the replica that all choose comes first.
func (cl *claimer) turnLocked(key string) time.Duration {
	if cl.m.view.Load().Pick(key).Instance == cl.m.self.Instance {
		return 0
	}
	return courtesy
}

// orphanedLocked decides when this replica takes a name that nobody living
// holds. A living holder whose claim has vanished, since the store was emptied,
// has time to claim again; so has one whose claim is heard of before itself.
func (cl *claimer) orphanedLocked(now time.Time, key string, w *wish, c claim, known bool) {
	before, lives := cl.m.holderLocked(w.claim.holder)
	if c.holder == "" && w.gone.IsZero() {
		w.gone = now
	}
	w.dueAt(now.Add(cl.waitLocked(now, key, w, c, before, known)))
	if !lives {
		cl.m.news = cl.m.news || w.claim.holder != ""
	}
}

// waitLocked is how long others come first. before is the holder that was known, if it lives:
// one that is draining has given the name up, and this replica, if it is, leaves it to others.
func (cl *claimer) waitLocked(now time.Time, key string, w *wish, c claim, before replicas.Replica, known bool) time.Duration {
	own := w.claim.holder == cl.m.self.Instance
	switch {
	case c.holder != "" && !known:
		return max(cl.m.clock.unknownUntil(cl.m.self.Pace.Slower(c.pace)).Sub(now), grace(cl.m.self.Pace))
	case cl.m.self.Draining:
		return grace(cl.m.self.Pace)
	case !own && c.holder == "" && before.Instance != "" && !before.Draining:
		return grace(cl.m.self.Pace.Slower(before.Pace))
	case own:
		return 0
	case c.holder == "":
		return max(cl.earlyLocked(now, w).Sub(now), cl.turnLocked(key))
	}
	return cl.turnLocked(key)
}

// takeOver claims what is due. What is left after half a heartbeat waits for
// the next round, so that this replica's own heartbeat does not.
func (cl *claimer) takeOver(ctx context.Context) error {
	var keys []string
	cl.m.picture.mu.Lock()
	if cl.m.state == joined {
		keys = cl.m.wishes.due(cl.m.now())
	}
	cl.m.picture.mu.Unlock()
	return each(ctx, keys, func(ctx context.Context, key string) error {
		cl.m.picture.mu.Lock()
		before := cl.m.wishes.last(key)
		cl.m.picture.mu.Unlock()
		c, err := cl.settle(ctx, key, claim{})
		cl.m.picture.mu.Lock()
		defer cl.m.picture.mu.Unlock()
		if undecided(err) || errors.Is(err, errContended) || errors.Is(err, replicas.ErrClosed) {
			cl.m.wishes.postpone(key, cl.m.now())
			return nil
		}
		cl.m.news = cl.m.news || err == nil && c != before
		return err
	})
}

// resign deletes claims of this replica that it does not want any more.
func (cl *claimer) resign(ctx context.Context) error {
	cl.m.picture.mu.Lock()
	keys, self := cl.m.wishes.resigned(), cl.m.self.Instance
	cl.m.picture.mu.Unlock()
	return each(ctx, keys, func(ctx context.Context, key string) error {
		e, err := cl.m.store.Load(ctx, key)
		if err == nil && parse(e.Value).holder == self && cl.resigning(key) {
			_, err = cl.m.store.Swap(ctx, key, e, "")
			cl.m.seen.Moved("released")
		}
		if err == nil {
			cl.m.picture.mu.Lock()
			delete(cl.m.wishes.resigns, key)
			cl.m.picture.mu.Unlock()
		}
		return err
	})
}

func (cl *claimer) resigning(key string) bool {
	cl.m.picture.mu.Lock()
	defer cl.m.picture.mu.Unlock()
	return cl.m.wishes.resigns[key]
}

// each calls f with each key, some at the same time, for at most half a
// heartbeat, and waits.
func each(ctx context.Context, keys []string, f func(context.Context, string) error) error {
	if len(keys) == 0 {
		return nil
	}
	end := time.Now().Add(replicas.Heartbeat / 2)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	next := make(chan string)
	errs := make([]error, min(atOnce, len(keys)))
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for key := range next {
				if errs[i] == nil {
					errs[i] = f(ctx, key)
				}
			}
		})
	}
	for _, key := range keys {
		if time.Now().After(end) {
			break
		}
		next <- key
	}
	close(next)
	wg.Wait()
	return errors.Join(errs...)
}
