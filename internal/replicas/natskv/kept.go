package natskv

import (
	"context"
	"errors"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// keptBucket is the name of the bucket of what has no end.
const keptBucket = "kept"

// forever returns the bucket of what has no end. It is opened when it is needed: whoever keeps
// nothing needs no right to it, and what fails there is none of the other buckets' concern.
func (s *Store) forever(ctx context.Context) (jetstream.KeyValue, error) {
	if !s.nc.IsConnected() {
		return nil, s.absence()
	}
	return s.bucket(ctx, keptBucket, 0, replicas.MaxRecord)
}

// Kept returns a record that Keep has kept.
func (s *Store) Kept(ctx context.Context, key string) (record []byte, version string, err error) {
	kv, err := s.forever(ctx)
	if err != nil {
		return nil, "", err
	}
	e, err := s.read(ctx, kv, key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return nil, "", nil
	case err != nil:
		return nil, "", err
	case len(e.value) > replicas.MaxRecord:
		return nil, "", replicas.ErrTooLarge
	}
	return e.value, strconv.FormatUint(e.revision, 10), nil
}

// Keep replaces a record by its revision.
func (s *Store) Keep(ctx context.Context, key, version string, record []byte) (now string, err error) {
	kv, err := s.forever(ctx)
	if err != nil {
		return "", err
	}
	var revision uint64
	if version == "" {
		revision, err = kv.Create(ctx, key, record)
	} else if revision, err = strconv.ParseUint(version, 10, 64); err == nil {
		revision, err = kv.Update(ctx, key, record, revision)
	}
	switch {
	case conflict(err):
		return "", nil
	case err != nil:
		return "", err
	}
	return strconv.FormatUint(revision, 10), nil
}

// EachKept calls f with each record that Keep has kept.
func (s *Store) EachKept(ctx context.Context, f func([]byte)) error {
	kv, err := s.forever(ctx)
	if err != nil {
		return err
	}
	w, err := kv.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return err
	}
	defer func() { _ = w.Stop() }() // it is of no use any more
	for {
		select {
		case e, open := <-w.Updates():
			if !open || e == nil { // that was all
				return nil
			}
			if len(e.Value()) <= replicas.MaxRecord {
				f(e.Value())
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Discard removes a record, and what NATS would remember of it.
func (s *Store) Discard(ctx context.Context, key string) error {
	kv, err := s.forever(ctx)
	if err != nil {
		return err
	}
	return kv.Purge(ctx, key)
}
