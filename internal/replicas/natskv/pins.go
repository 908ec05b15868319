package natskv

import (
	"context"
	"errors"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// pinsBucket is the name of the bucket of pins.
const pinsBucket = "pins"

// pins returns the bucket of pins, which has no time to live. It is opened when it is needed:
// whoever pins nothing needs no right to it, and what fails there is none of the other buckets'
// concern.
func (s *Store) pins(ctx context.Context) (jetstream.KeyValue, error) {
	if !s.nc.IsConnected() {
		return nil, s.absence()
	}
	return s.bucket(ctx, pinsBucket, 0, replicas.MaxRecord)
}

// Kept returns a record that Keep has kept.
func (s *Store) Kept(ctx context.Context, key string) (record []byte, version string, err error) {
	kv, err := s.pins(ctx)
	if err != nil {
		return nil, "", err
	}
	e, err := kv.Get(ctx, key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return nil, "", nil
	case err != nil:
		return nil, "", err
	case len(e.Value()) > replicas.MaxRecord:
		return nil, "", replicas.ErrTooLarge
	}
	return e.Value(), strconv.FormatUint(e.Revision(), 10), nil
}

// Keep replaces a record by its revision.
func (s *Store) Keep(ctx context.Context, key, version string, record []byte) (now string, err error) {
	kv, err := s.pins(ctx)
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
