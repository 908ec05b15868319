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

// Get returns a record, of which it reads what may be too much, and no more.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	return found(s.client.GetRange(ctx, s.recordKey(key), 0, replicas.MaxRecord).Bytes())
}

// take is GETDEL, which servers before 6.2 do not have.
var take = redis.NewScript(`
local record = redis.call('GET', KEYS[1])
if record then redis.call('DEL', KEYS[1]) end
return record and string.sub(record, 1, ARGV[1] + 1)`)

// Take returns a record and deletes it.
func (s *Store) Take(ctx context.Context, key string) ([]byte, error) {
	text, err := take.Run(ctx, s.client, []string{s.recordKey(key)}, replicas.MaxRecord).Text()
	return found([]byte(text), err)
}

func found(record []byte, err error) ([]byte, error) {
	switch {
	case errors.Is(err, redis.Nil), err == nil && len(record) == 0:
		return nil, replicas.ErrNotFound
	case err != nil:
		return nil, wrap(err)
	case len(record) > replicas.MaxRecord:
		return nil, replicas.ErrTooLarge
	}
	return record, nil
}
