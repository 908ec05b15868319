package member

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// Living asks the store who lives: whose record is written again. It is for a Member that does
// not join, and takes little more than a heartbeat of the slowest. The error says why the store can't be asked.
func (a *asker) Living(ctx context.Context) ([]replicas.Replica, error) {
	first, slowest, err := a.firstRecords(ctx)
	if err != nil {
		return nil, err
	}
	var living []replicas.Replica
	for end := time.Now().Add(slowest.TTL()); len(first) > 0 && time.Now().Before(end); {
		if err := wake.Wait(ctx, look); err != nil {
			return nil, err
		}
		records, err := a.records(ctx)
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
func (a *asker) firstRecords(ctx context.Context) (first map[string]uint64, slowest replicas.Pace, err error) {
	err = a.await(ctx, func(ctx context.Context) error {
		records, err := a.records(ctx)
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

func (a *asker) records(ctx context.Context) (all map[string][]byte, err error) {
	err = a.once(ctx, func(ctx context.Context) error {
		snap, err := a.store.Poll(ctx, nil, false)
		all = snap.Members
		return err
	})
	return all, err
}
