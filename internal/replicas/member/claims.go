package member

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

const (
	// courtesy is how long those wait that View.Pick does not choose, before they take a dead
	// holder's name: so that not all try each name.
	courtesy = 100 * time.Millisecond
	// grace is how long a living holder has to claim again, when its claim has vanished.
	grace = 3 * replicas.Heartbeat / 2
	// atOnce is how many claims are changed at the same time.
	atOnce = 16
	// tries bounds how often one claim is raced for.
	tries = 4
)

var errContended = errors.New("other replicas keep changing the claim")

// wish is a name that this replica wants.
type wish struct {
	claim   claim     // the last one of a holder that lived
	highest uint64    // epoch ever heard
	due     time.Time // when this replica takes the name; zero while its holder lives
}

// Holder returns who holds a name, by what is known here.
func (m *Member) Holder(name string) (replicas.Claim, bool) {
	key := replicas.Key(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.wishes[key]
	if w == nil {
		return replicas.Claim{}, false
	}
	holder, lives := m.replicaLocked(w.claim.holder)
	return replicas.Claim{Holder: holder, Epoch: w.claim.epoch}, lives
}

// Claims implements [replicas.Lister].
func (m *Member) Claims() []replicas.Named {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]replicas.Named, 0, len(m.wishes))
	for _, key := range slices.Sorted(maps.Keys(m.wishes)) {
		w := m.wishes[key]
		holder, _ := m.replicaLocked(w.claim.holder)
		all = append(all, replicas.Named{Key: key, Claim: replicas.Claim{Holder: holder, Epoch: w.claim.epoch}})
	}
	return all
}

// Claim returns who holds name, and claims it if nobody living does.
func (m *Member) Claim(ctx context.Context, name string) (replicas.Claim, error) {
	key := replicas.Key(name)
	m.want(key)
	return m.claimNow(ctx, key, claim{})
}

// Seize takes name from a holder that can't be reached.
func (m *Member) Seize(ctx context.Context, name string, from replicas.Claim) (replicas.Claim, error) {
	key := replicas.Key(name)
	m.want(key)
	return m.claimNow(ctx, key, claim{holder: from.Holder.Instance, epoch: from.Epoch})
}

// Release ends the wish for name.
func (m *Member) Release(name string) {
	key := replicas.Key(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.wishes[key]
	if w == nil {
		return
	}
	delete(m.wishes, key)
	if w.claim.holder == m.self.Instance {
		m.resigns[key] = true
		m.kick.Send()
	}
}

func (m *Member) want(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.resigns, key)
	if m.wishes[key] == nil {
		m.wishes[key] = &wish{}
	}
}

func (m *Member) claimNow(ctx context.Context, key string, from claim) (c replicas.Claim, err error) {
	err = m.ask(ctx, func(ctx context.Context) error {
		got, err := m.settle(ctx, key, from)
		if err != nil {
			return err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		c.Holder, _ = m.replicaLocked(got.holder)
		c.Epoch = got.epoch
		return nil
	})
	return c, err
}

// settle returns who holds key, after this replica has claimed it if nobody
// living does, or if it is from's still.
func (m *Member) settle(ctx context.Context, key string, from claim) (claim, error) {
	for range tries {
		e, err := m.store.Load(ctx, key)
		if err != nil {
			return claim{}, err
		}
		c := parse(e.Value)
		if c != from || c.holder == "" {
			if lives, err := m.look(ctx, c.holder); err != nil || lives {
				return m.note(key, c), err
			}
		}
		next, err := m.successor(key, c)
		if err != nil {
			return claim{}, err
		}
		if done, err := m.store.Swap(ctx, key, e, next.value()); err != nil || done {
			if done {
				m.taken(key, c, next)
			}
			return m.note(key, next), err
		}
	}
	return claim{}, errContended
}

// look reports whether the holder lives. One that nothing is known of may have
// joined a moment before: then the members are read.
func (m *Member) look(ctx context.Context, holder string) (bool, error) {
	m.mu.Lock()
	lives, known := m.livesLocked(holder)
	m.mu.Unlock()
	if known || holder == "" {
		return lives, nil
	}
	snap, err := m.store.Poll(ctx, nil, false)
	if err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if data, kept := snap.Members[holder]; kept {
		m.hearPeerLocked(time.Now(), holder, data)
		m.publishLocked()
	}
	lives, _ = m.livesLocked(holder)
	return lives, nil
}

// successor is the claim by which this replica follows c.
func (m *Member) successor(key string, c claim) (claim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state != joined {
		return claim{}, replicas.ErrClosed
	}
	epoch := c.epoch
	if w := m.wishes[key]; w != nil {
		epoch = max(epoch, w.highest)
	}
	return claim{holder: m.self.Instance, epoch: epoch + 1}, nil
}

// note remembers who holds key, if it is wanted still.
func (m *Member) note(key string, c claim) claim {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.wishes[key]; w != nil {
		m.movedLocked(key, w, c)
	} else if c.holder == m.self.Instance {
		m.resigns[key] = true // released meanwhile
		m.kick.Send()
	}
	return c
}

// taken tells of a claim of this replica.
func (m *Member) taken(key string, before, after claim) {
	m.seen.Moved("claimed")
	if before.holder == "" {
		m.logger.Debug("this replica holds a claim", "claim", key, "epoch", after.epoch)
		return
	}
	m.logger.Info("this replica takes over a claim", "claim", key, "epoch", after.epoch, "from", before.holder)
}

// hearClaimsLocked takes in who holds what is wanted, and marks what is due to
// be taken.
func (m *Member) hearClaimsLocked(now time.Time, claims map[string]Entry) {
	for key, w := range m.wishes {
		c := parse(claims[key].Value)
		w.highest = max(w.highest, c.epoch)
		if lives, known := m.livesLocked(c.holder); !lives || c.holder == "" {
			m.orphanedLocked(now, key, w, c, known)
			continue
		}
		switch {
		case c == w.claim:
			w.due = time.Time{}
		case c.epoch < w.claim.epoch:
			w.due = now // heard late, or claimed anew in an empty store: the store is asked
		default:
			m.movedLocked(key, w, c)
			m.news = true
		}
	}
}

// movedLocked remembers who holds a claim.
func (m *Member) movedLocked(key string, w *wish, c claim) {
	if w.claim.holder == m.self.Instance && c.holder != m.self.Instance {
		m.logger.Info("this replica yields a claim", "claim", key, "epoch", c.epoch, "to", c.holder)
		m.seen.Moved("yielded")
	}
	w.claim, w.due = c, time.Time{}
	w.highest = max(w.highest, c.epoch)
}

// orphanedLocked decides when this replica takes a name that nobody living
// holds. A living holder whose claim has vanished, since the store was emptied,
// has time to claim again; so has one whose claim is heard of before itself.
func (m *Member) orphanedLocked(now time.Time, key string, w *wish, c claim, known bool) {
	before, lives := m.replicaLocked(w.claim.holder)
	if due := now.Add(m.waitLocked(key, w, c, before, known)); w.due.IsZero() || due.Before(w.due) {
		w.due = due
	}
	if !lives {
		m.news = m.news || w.claim.holder != ""
	}
}

// waitLocked is how long others come first. before is the holder that was known, if it lives:
// one that is draining has given the name up, and this replica, if it is, leaves it to others.
func (m *Member) waitLocked(key string, w *wish, c claim, before replicas.Replica, known bool) time.Duration {
	own := w.claim.holder == m.self.Instance
	switch {
	case m.self.Draining, c.holder != "" && !known:
		return grace
	case !own && c.holder == "" && before.Instance != "" && !before.Draining:
		return grace
	case own, m.view.Load().Pick(key).Instance == m.self.Instance:
		return 0
	}
	return courtesy
}

// dueLocked returns the keys that are to be taken.
func (m *Member) dueLocked(now time.Time) (keys []string) {
	if m.state != joined {
		return nil
	}
	for key, w := range m.wishes {
		if !w.due.IsZero() && !now.Before(w.due) {
			keys = append(keys, key)
		}
	}
	return keys
}

// takeOver claims what is due. What is left after half a heartbeat waits for
// the next round, so that this replica's own heartbeat does not.
func (m *Member) takeOver(ctx context.Context, keys []string) error {
	return m.each(ctx, keys, func(ctx context.Context, key string) error {
		before := m.known(key)
		c, err := m.settle(ctx, key, claim{})
		if errors.Is(err, errContended) || errors.Is(err, replicas.ErrClosed) {
			m.postpone(key)
			return nil
		}
		if err == nil && c != before {
			m.mu.Lock()
			m.news = true
			m.mu.Unlock()
		}
		return err
	})
}

// postpone has a name tried again a little later.
func (m *Member) postpone(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.wishes[key]; w != nil {
		w.due = time.Now().Add(courtesy)
	}
}

func (m *Member) known(key string) claim {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.wishes[key]; w != nil {
		return w.claim
	}
	return claim{}
}

// resign deletes claims of this replica that it does not want any more.
func (m *Member) resign(ctx context.Context) error {
	m.mu.Lock()
	keys := make([]string, 0, len(m.resigns))
	for key := range m.resigns {
		keys = append(keys, key)
	}
	self := m.self.Instance
	m.mu.Unlock()
	return m.each(ctx, keys, func(ctx context.Context, key string) error {
		e, err := m.store.Load(ctx, key)
		if err == nil && parse(e.Value).holder == self && m.resigning(key) {
			_, err = m.store.Swap(ctx, key, e, "")
			m.seen.Moved("released")
		}
		if err == nil {
			m.mu.Lock()
			delete(m.resigns, key)
			m.mu.Unlock()
		}
		return err
	})
}

func (m *Member) resigning(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.resigns[key]
}

// each calls f with each key, some at the same time, for at most half a
// heartbeat, and waits.
func (m *Member) each(ctx context.Context, keys []string, f func(context.Context, string) error) error {
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

func (m *Member) ownLocked() (n int) {
	for _, w := range m.wishes {
		if w.claim.holder == m.self.Instance {
			n++
		}
	}
	return n
}
