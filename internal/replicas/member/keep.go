package member

import (
	"context"
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// Kept returns the record of a key that Keep has kept, and its version, which is empty if there
// is none. A Member that has not joined waits some seconds for the store.
func (a *asker) Kept(ctx context.Context, key string) (record []byte, version string, err error) {
	err = a.askOutside(ctx, func(ctx context.Context) (err error) {
		record, version, err = a.store.Kept(ctx, replicas.Key(key))
		return err
	})
	return record, version, err
}

// Keep replaces a record if it has a version still; the empty one means that there is none. It
// returns the version of the new one, or nothing if the record has another version. Records are
// at most [replicas.MaxRecord] bytes.
func (a *asker) Keep(ctx context.Context, key, version string, record []byte) (now string, err error) {
	if len(record) > replicas.MaxRecord {
		return "", fmt.Errorf("%w: %d bytes, over %d", replicas.ErrTooLarge, len(record), replicas.MaxRecord)
	}
	err = a.askOutside(ctx, func(ctx context.Context) (err error) {
		now, err = a.store.Keep(ctx, replicas.Key(key), version, record)
		return err
	})
	return now, err
}

// EachKept calls f with each record that Keep has kept. It may take longer than one question.
func (a *asker) EachKept(ctx context.Context, f func([]byte)) error {
	if err := a.usable(); err != nil {
		return err
	}
	if err := a.store.EachKept(ctx, f); err != nil {
		return fmt.Errorf("%w: %w", replicas.ErrAway, err)
	}
	return nil
}

// Discard removes a record that Keep has kept.
func (a *asker) Discard(ctx context.Context, key string) error {
	return a.ask(ctx, func(ctx context.Context) error { return a.store.Discard(ctx, replicas.Key(key)) })
}
