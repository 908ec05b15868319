package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// Options configures a Member.
type Options struct {
	Logger   *slog.Logger      // gets every change; nil discards
	Observer replicas.Observer // counts them; nil discards
	// Now is the clock by which silences and leases are measured; nil is [time.Now].
	Now func() time.Time
}

// A Member is this replica's part in the deployment. It implements
// replicas.Engine.
type Member struct {
	*asker
	*picture
	neighborhood

	// Set by New, read-only after.
	journal *journal
	kick    wake.Signal // runs a round at once
	cancel  context.CancelFunc
	ctx     context.Context // of the loop; ends by Close
	done    chan struct{}   // closed when the loop has returned

	sweeper   *sweeper
	claims    claimer
	inquiries *inquiries
}

// New returns a Member that has not joined. It owns the store. Close ends it.
func New(store Store, opts Options) *Member {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	opts.Observer = cmp.Or[replicas.Observer](opts.Observer, replicas.Unobserved{})
	if opts.Now == nil {
		opts.Now = time.Now
	}
	j := newJournal(opts.Logger)
	m := &Member{
		asker: &asker{store: store, away: true}, picture: newPicture(opts, j), journal: j, inquiries: newInquiries(j, opts.Observer),
		kick: wake.NewSignal(), done: make(chan struct{}),
	}
	m.sweeper, m.claims.m = &sweeper{m: m}, m
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Join begins the heartbeats. The loop and the sweeps end by Close.
func (m *Member) Join(ctx context.Context, self replicas.Replica) error {
	if self.Instance == "" || self.Addr == "" {
		return errors.New("joining the replicas: a replica needs an instance and an address")
	}
	self.Pace = self.Pace.Bounded()
	m.picture.mu.Lock()
	if m.state != created {
		m.picture.mu.Unlock()
		return errors.New("joining the replicas: it was done before")
	}
	m.state, m.self, m.news = joined, self, true
	m.join()
	m.picture.mu.Unlock()
	stop := context.AfterFunc(ctx, m.cancel)
	m.round(m.ctx)
	if !stop() {
		close(m.done)
		return fmt.Errorf("joining the replicas: %w", context.Cause(ctx))
	}
	go m.run(m.ctx)
	m.sweeper.start(m.ctx)
	if m.neighbors != nil {
		m.asking.Go(func() { m.tell(m.ctx) })
	}
	return nil
}

// Update changes what is told of this replica.
func (m *Member) Update(self replicas.Replica) {
	self.Pace = self.Pace.Bounded()
	m.picture.mu.Lock()
	m.news = m.news || m.self != self
	m.self = self
	m.clock.beat = time.Time{} // due
	m.publishLocked()
	m.picture.mu.Unlock()
	m.kick.Send()
}

// Leave writes the last record of this replica, by which its claims are void
// for everybody, and then deletes them.
func (m *Member) Leave(ctx context.Context) error {
	m.picture.mu.Lock()
	if m.state != joined {
		m.picture.mu.Unlock()
		return nil
	}
	m.state = left
	self, beat := m.self, m.clock.beats+1
	m.wishes.resignAll(self.Instance)
	m.picture.mu.Unlock()
	data, err := encode(self, beat, true, 0)
	if err == nil {
		err = m.store.Beat(ctx, Beat{Instance: self.Instance, Record: data, Count: beat, Lasts: self.Pace.Patience(), News: true})
	}
	if err != nil {
		return fmt.Errorf("telling the other replicas that this one ends: %w", err)
	}
	return m.claims.resign(ctx)
}

// Close ends the loop and closes the store.
func (m *Member) Close(ctx context.Context) error {
	m.picture.mu.Lock()
	was := m.state
	m.state = closed
	m.end()
	m.picture.mu.Unlock()
	if was == closed {
		return nil
	}
	m.cancel()
	if was != created {
		<-m.done
	}
	m.sweeper.running.Wait()
	m.asking.Wait()
	return m.store.Close(ctx)
}
