package rediskv

import (
	"context"
	"errors"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// Put keeps a record.
func (s *Store) Put(ctx context.Context, key string, record []byte, ttl time.Duration) error {
	_, err := s.do(ctx, "SET", s.recordKey(key), record, "PX", max(ttl.Milliseconds(), 1))
	return err
}

// Get returns a record.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	return found(s.do(ctx, "GET", s.recordKey(key)))
}

// take is GETDEL, which servers before 6.2 do not have.
var take = redis.NewScript(1, `
local record = redis.call('GET', KEYS[1])
if record then redis.call('DEL', KEYS[1]) end
return record`)

// Take returns a record and deletes it.
func (s *Store) Take(ctx context.Context, key string) ([]byte, error) {
	return found(s.run(ctx, take, s.recordKey(key)))
}

func found(reply any, err error) ([]byte, error) {
	record, err := redis.Bytes(reply, err)
	if errors.Is(err, redis.ErrNil) {
		return nil, replicas.ErrNotFound
	}
	return record, err
}
