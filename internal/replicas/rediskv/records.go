package rediskv

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// Put keeps a record.
func (s *Store) Put(ctx context.Context, key string, record []byte, ttl time.Duration) error {
	return wrap(s.client.Set(ctx, s.recordKey(key), record, max(ttl, time.Millisecond)).Err())
}

// Get returns a record.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	return found(s.client.Get(ctx, s.recordKey(key)).Bytes())
}

// take is GETDEL, which servers before 6.2 do not have.
var take = redis.NewScript(`
local record = redis.call('GET', KEYS[1])
if record then redis.call('DEL', KEYS[1]) end
return record`)

// Take returns a record and deletes it.
func (s *Store) Take(ctx context.Context, key string) ([]byte, error) {
	text, err := take.Run(ctx, s.client, []string{s.recordKey(key)}).Text()
	return found([]byte(text), err)
}

func found(record []byte, err error) ([]byte, error) {
	switch {
	case errors.Is(err, redis.Nil):
		return nil, replicas.ErrNotFound
	case err != nil:
		return nil, wrap(err)
	}
	return record, nil
}
