package member

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	// maxInquiries bounds the names of an outage whose holders were asked for, and inquiriesAtOnce how
	// many are at the same time.
	maxInquiries    = 16384
	inquiriesAtOnce = 64
	// askTimeout bounds the answers, and the wait for a turn before.
	askTimeout = replicas.Heartbeat
	// recall is how long the answer of a holder counts: it gives up what is not used for minutes.
	recall = 30 * replicas.Heartbeat
)

var errOverasked = fmt.Errorf("%w: other replicas were asked for %d names already, or too many at this moment", replicas.ErrUnasked, maxInquiries)

// inquiries are what other replicas have answered in an outage. It is safe for concurrent use.
type inquiries struct {
	journal *journal
	seen    replicas.Observer
	turns   chan struct{} // has a value for each that is under way

	mu     sync.Mutex // guards the fields below; a leaf
	outage uint64
	by     map[string]*inquiry // by key; those that have failed are forgotten
}

// An inquiry is who holds a name. Once done is closed it does not change.
type inquiry struct {
	done  chan struct{}
	claim replicas.Claim // of another replica; zero if nobody holds it
	at    time.Time      // when that was asked
	err   error
	left  bool // who has asked did not wait for the answer
}

func newInquiries(j *journal, seen replicas.Observer) *inquiries {
	return &inquiries{journal: j, seen: seen, turns: make(chan struct{}, inquiriesAtOnce)}
}

// begin returns what is asked of a name in an outage, and whether the caller has to ask it, and then
// call end. It is nil if too many were asked.
func (qs *inquiries) begin(outage uint64, key string, now time.Time) (q *inquiry, asks bool) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if qs.outage != outage {
		qs.outage, qs.by = outage, make(map[string]*inquiry)
	}
	q = qs.by[key]
	switch {
	case q != nil && !q.past(now):
		return q, false
	case q == nil && len(qs.by) >= maxInquiries:
		return nil, false
	}
	q = &inquiry{done: make(chan struct{}), at: now}
	qs.by[key] = q
	return q, true
}

// end notes the answer, or that who has asked has left.
func (qs *inquiries) end(q *inquiry, key string, c replicas.Claim, err error, left bool) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q.claim, q.err, q.left = c, err, left
	if err != nil && qs.by[key] == q {
		delete(qs.by, key)
	}
	close(q.done)
}

// answered returns who holds a name by what was answered in an outage: zero if nobody does.
func (qs *inquiries) answered(outage uint64, key string, now time.Time) (c replicas.Claim, ok bool) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.by[key]
	if outage == 0 || qs.outage != outage || q == nil || !wake.Closed(q.done) || q.past(now) {
		return replicas.Claim{}, false
	}
	return q.claim, true
}

// inTurn calls ask once it has its turn, unless that takes too long.
func (qs *inquiries) inTurn(ctx context.Context, ask func() (replicas.Claim, error)) (replicas.Claim, error) {
	wait, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	select {
	case qs.turns <- struct{}{}:
		defer func() { <-qs.turns }()
		return ask()
	case <-wait.Done():
	}
	if ctx.Err() != nil {
		return replicas.Claim{}, context.Cause(ctx)
	}
	return replicas.Claim{}, qs.overasked()
}

// overasked tells that too many names are asked for, and returns the error.
func (qs *inquiries) overasked() error {
	qs.seen.Overasked()
	qs.journal.log(warnings, slog.LevelWarn, "the engine is away, and too many names are asked for whether other replicas hold them: their requests are refused", "most", maxInquiries, "at once", inquiriesAtOnce)
	return errOverasked
}

// past reports whether the answer does not count any more.
func (q *inquiry) past(now time.Time) bool {
	return wake.Closed(q.done) && q.claim.Holder.Instance != "" && now.Sub(q.at) >= recall
}

// Vacant implements [replicas.Engine].
func (m *Member) Vacant(name string) (outage uint64) {
	outage = m.outage()
	if c, ok := m.inquiries.answered(outage, replicas.Key(name), m.now()); !ok || c.Holder.Instance != "" {
		return 0
	}
	return outage
}

// told returns the other replica that has said that it holds key.
func (m *Member) told(key string) (replicas.Claim, bool) {
	c, _ := m.inquiries.answered(m.outage(), key, m.now())
	return c, c.Holder.Instance != ""
}

// Inquire implements [replicas.Engine].
func (m *Member) Inquire(ctx context.Context, name string) error {
	key := replicas.Key(name)
	for {
		outage := m.outage()
		if outage == 0 {
			return replicas.ErrUnasked
		}
		q, asks := m.inquiries.begin(outage, key, m.now())
		switch {
		case q == nil:
			return m.inquiries.overasked()
		case asks:
			c, err := m.inquiries.inTurn(ctx, func() (replicas.Claim, error) {
				m.picture.mu.Lock()
				living, silent := m.peers.living(), m.peers.silents()
				m.picture.mu.Unlock()
				return m.neighborhood.askAll(ctx, key, living, silent)
			})
			m.inquiries.end(q, key, c, err, ctx.Err() != nil)
			return err
		}
		select {
		case <-q.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if q.err == nil || !q.left {
			return q.err
		}
	}
}

// Holds implements [replicas.Engine]. What this replica has held, and can't act on, it claims anew as
// soon as the engine is there: so that counts.
func (m *Member) Holds(key string) (epoch uint64, err error) {
	m.picture.mu.Lock()
	defer m.picture.mu.Unlock()
	w := m.wishes.all[key]
	switch {
	case m.state != joined:
		return 0, replicas.ErrClosed
	case w != nil && w.claim.holder == m.self.Instance:
		return w.claim.epoch, nil
	case !m.claims.promiseLocked():
		return 0, errTaking
	}
	return 0, nil
}
