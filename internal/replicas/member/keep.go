package member

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// Kept returns the record of a key that Keep has kept, and its version, which is empty if there
// is none. A Member that has not joined waits some seconds for the store.
func (m *Member) Kept(ctx context.Context, key string) (record []byte, version string, err error) {
	err = m.askOutside(ctx, func(ctx context.Context) (err error) {
		record, version, err = m.store.Kept(ctx, replicas.Key(key))
		return err
	})
	return record, version, err
}

// Keep replaces a record if it has a version still; the empty one means that there is none. It
// returns the version of the new one, or nothing if the record has another version. Records are
// at most [replicas.MaxRecord] bytes.
func (m *Member) Keep(ctx context.Context, key, version string, record []byte) (now string, err error) {
	if len(record) > replicas.MaxRecord {
		return "", fmt.Errorf("%w: %d bytes, over %d", replicas.ErrTooLarge, len(record), replicas.MaxRecord)
	}
	err = m.askOutside(ctx, func(ctx context.Context) (err error) {
		now, err = m.store.Keep(ctx, replicas.Key(key), version, record)
		return err
	})
	return now, err
}

// EachKept calls f with each record that Keep has kept. It may take longer than one question.
func (m *Member) EachKept(ctx context.Context, f func([]byte)) error {
	if err := m.usable(); err != nil {
		return err
	}
	if err := m.store.EachKept(ctx, f); err != nil {
		return fmt.Errorf("%w: %w", replicas.ErrAway, err)
	}
	return nil
}

// Discard removes a record that Keep has kept.
func (m *Member) Discard(ctx context.Context, key string) error {
	return m.ask(ctx, func(ctx context.Context) error { return m.store.Discard(ctx, replicas.Key(key)) })
}

// askOutside is ask, and also for a Member that has not joined.
func (m *Member) askOutside(ctx context.Context, f func(context.Context) error) error {
	m.mu.Lock()
	outside := m.state == created
	m.mu.Unlock()
	if outside {
		return m.await(ctx, f)
	}
	return m.ask(ctx, f)
}

// await calls f until the store answers. The error says why it does not.
func (m *Member) await(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	var last error
	for {
		err := m.once(ctx, f)
		if err == nil || errors.Is(err, replicas.ErrNotFound) || errors.Is(err, replicas.ErrTooLarge) {
			return err
		}
		if last == nil || !errors.Is(err, context.DeadlineExceeded) {
			last = err // a time that is over says less
		}
		if why := m.explain(ctx, last); why != "" {
			return fmt.Errorf("%s: %w", why, last)
		}
		if wake.Wait(ctx, look) != nil {
			return fmt.Errorf("it can't be reached: %w", last)
		}
	}
}

func (m *Member) once(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return f(ctx)
}
