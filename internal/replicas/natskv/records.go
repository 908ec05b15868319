package natskv

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// A record is kept with its time to live before it, in milliseconds: the bucket has one
// time to live for all.
const ttlLen = 8

// Put keeps a record, for at most a day.
func (s *Store) Put(ctx context.Context, key string, record []byte, ttl time.Duration) error {
	value := binary.BigEndian.AppendUint64(make([]byte, 0, ttlLen+len(record)), uint64(max(ttl, 0).Milliseconds()))
	return s.use(ctx, func(b *buckets) error {
		_, err := b.records.Put(ctx, key, append(value, record...))
		return err
	})
}

// Get returns a record.
func (s *Store) Get(ctx context.Context, key string) (record []byte, err error) {
	err = s.use(ctx, func(b *buckets) error {
		record, _, err = load(ctx, b.records, key)
		return err
	})
	return record, err
}

// Take returns a record and deletes it, if it is the same still.
func (s *Store) Take(ctx context.Context, key string) (record []byte, err error) {
	err = s.use(ctx, func(b *buckets) error {
		found, revision, err := load(ctx, b.records, key)
		if err != nil {
			return err
		}
		if err = b.records.Purge(ctx, key, jetstream.LastRevision(revision)); conflict(err) {
			return replicas.ErrNotFound
		}
		if err == nil {
			record = found
		}
		return err
	})
	return record, err
}

// load returns a record that has time left, and its revision.
func load(ctx context.Context, kv jetstream.KeyValue, key string) ([]byte, uint64, error) {
	e, err := kv.Get(ctx, key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return nil, 0, replicas.ErrNotFound
	case err != nil:
		return nil, 0, err
	case len(e.Value()) < ttlLen:
		return nil, 0, replicas.ErrNotFound
	}
	ttl := time.Duration(binary.BigEndian.Uint64(e.Value())) * time.Millisecond
	if time.Since(e.Created()) >= ttl {
		return nil, 0, replicas.ErrNotFound
	}
	return e.Value()[ttlLen:], e.Revision(), nil
}
