package member

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// An Explainer is a Store that knows what its errors come from.
type Explainer interface {
	// Explain says what is the case and what to compare; "" if the broker can't be reached, or
	// more is not known.
	Explain(ctx context.Context, err error) string
}

const (
	// answering is how long the store has until it is there, whoever asks from outside.
	answering = 5 * replicas.Heartbeat
	// look is how often it is looked whether a record was written again.
	look = replicas.Heartbeat / 4
)

// Living asks the store who lives: whose record is written again. It is for a Member that does
// not join, and takes little more than a heartbeat of the slowest. The error says why the store can't be asked.
func (m *Member) Living(ctx context.Context) ([]replicas.Replica, error) {
	first, slowest, err := m.firstRecords(ctx)
	if err != nil {
		return nil, err
	}
	var living []replicas.Replica
	for end := time.Now().Add(slowest.TTL()); len(first) > 0 && time.Now().Before(end); {
		if err := wake.Wait(ctx, look); err != nil {
			return nil, err
		}
		records, err := m.records(ctx)
		if err != nil {
			continue // until the end; the records stay
		}
		for instance, was := range first {
			r, rec, err := decode(instance, records[instance])
			switch {
			case err != nil || rec.Left: // it has ended, and so has its record
				delete(first, instance)
			case rec.Beat > was:
				delete(first, instance)
				living = append(living, r)
			}
		}
	}
	slices.SortFunc(living, func(a, b replicas.Replica) int {
		return cmp.Or(strings.Compare(a.Addr, b.Addr), strings.Compare(a.Instance, b.Instance))
	})
	return living, nil
}

// firstRecords returns the count that each member has told, and the slowest pace of all, as soon as
// the store answers.
func (m *Member) firstRecords(ctx context.Context) (first map[string]uint64, slowest replicas.Pace, err error) {
	err = m.await(ctx, func(ctx context.Context) error {
		records, err := m.records(ctx)
		if err != nil {
			return err
		}
		first, slowest = make(map[string]uint64), 0
		for instance, data := range records {
			if r, rec, err := decode(instance, data); err == nil && !rec.Left {
				first[instance], slowest = rec.Beat, slowest.Slower(r.Pace)
			}
		}
		return nil
	})
	return first, slowest, err
}

// Trouble says why the store can't be asked at this moment, and whether it refuses this replica,
// which somebody has to mend: not if it is out of reach. It is empty if the store answers.
func (m *Member) Trouble(ctx context.Context) (why string, refuses bool) {
	m.mu.Lock()
	failed, err := m.clock.failed && m.clock.why != nil, m.clock.why
	m.mu.Unlock()
	if !failed {
		return "", false
	}
	if why := m.explain(ctx, err); why != "" {
		return why, true
	}
	return fmt.Sprintf("it can't be reached: %v", err), false
}

func (m *Member) explain(ctx context.Context, err error) string {
	if e, ok := m.store.(Explainer); ok {
		return e.Explain(ctx, err)
	}
	return ""
}

func (m *Member) records(ctx context.Context) (all map[string][]byte, err error) {
	err = m.once(ctx, func(ctx context.Context) error {
		snap, err := m.store.Poll(ctx, nil, false)
		all = snap.Members
		return err
	})
	return all, err
}
