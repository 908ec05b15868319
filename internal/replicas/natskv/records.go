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
	return s.use(ctx, func(b *buckets) error {
		_, err := b.records.Put(ctx, key, wrapRecord(record, ttl))
		return err
	})
}

func wrapRecord(record []byte, ttl time.Duration) []byte {
	value := binary.BigEndian.AppendUint64(make([]byte, 0, ttlLen+len(record)), uint64(max(ttl, 0).Milliseconds()))
	return append(value, record...)
}

// unwrapRecord returns what wrapRecord was given.
func unwrapRecord(value []byte) (record []byte, ttl time.Duration, ok bool) {
	if len(value) < ttlLen {
		return nil, 0, false
	}
	return value[ttlLen:], time.Duration(binary.BigEndian.Uint64(value)) * time.Millisecond, true
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
	e, err := read(ctx, kv, key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return nil, 0, replicas.ErrNotFound
	case err != nil:
		return nil, 0, err
	}
	record, ttl, ok := unwrapRecord(e.Value())
	if !ok || time.Since(e.Created()) >= ttl {
		return nil, 0, replicas.ErrNotFound
	}
	if len(record) > replicas.MaxRecord {
		return nil, 0, replicas.ErrTooLarge
	}
	return record, e.Revision(), nil
}
