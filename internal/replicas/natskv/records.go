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
		e, err := load(ctx, s.read, b.records, key)
		record = e.value
		return err
	})
	return record, err
}

// Take returns a record and deletes it, if it is the same still. The leader of the bucket has to be there
// for that, and is asked for both.
func (s *Store) Take(ctx context.Context, key string) (record []byte, err error) {
	err = s.use(ctx, func(b *buckets) error {
		e, err := load(ctx, s.readLeader, b.records, key)
		if err != nil {
			return err
		}
		if err = b.records.Purge(ctx, key, jetstream.LastRevision(e.revision)); conflict(err) {
			return replicas.ErrNotFound
		}
		if err == nil {
			record = e.value
		}
		return err
	})
	return record, err
}

// load returns a record that has time left.
func load(ctx context.Context, read reader, kv jetstream.KeyValue, key string) (entry, error) {
	e, err := read(ctx, kv, key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return entry{}, replicas.ErrNotFound
	case err != nil:
		return entry{}, err
	}
	record, ttl, ok := unwrapRecord(e.value)
	if !ok || time.Since(e.created) >= ttl {
		return entry{}, replicas.ErrNotFound
	}
	if len(record) > replicas.MaxRecord {
		return entry{}, replicas.ErrTooLarge
	}
	e.value = record
	return e, nil
}
