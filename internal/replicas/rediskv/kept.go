package rediskv

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// versionLen is how long the version of a kept record is, which stands before it.
const versionLen = 26

// Kept returns a record that Keep has kept, of which it reads what may be too much, and no more.
func (s *Store) Kept(ctx context.Context, key string) (record []byte, version string, err error) {
	return s.keptAt(ctx, s.keptKey(key))
}

func (s *Store) keptAt(ctx context.Context, at string) (record []byte, version string, err error) {
	value, err := s.client.GetRange(ctx, at, 0, versionLen+replicas.MaxRecord).Bytes()
	switch {
	case err != nil:
		return nil, "", wrap(err)
	case len(value) < versionLen:
		return nil, "", nil
	case len(value) > versionLen+replicas.MaxRecord:
		return nil, "", replicas.ErrTooLarge
	}
	return value[versionLen:], string(value[:versionLen]), nil
}

// keep compares versions, which are random.
var keep = redis.NewScript(`
if redis.call('GETRANGE', KEYS[1], 0, #ARGV[2] - 1) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2] .. ARGV[3])
return 1`)

// Keep replaces a record by its version.
func (s *Store) Keep(ctx context.Context, key, version string, record []byte) (string, error) {
	now := rand.Text() // 26 characters
	n, err := keep.Run(ctx, s.client, []string{s.keptKey(key)}, version, now, record).Int()
	if err != nil || n == 0 {
		return "", wrap(err)
	}
	return now, nil
}

// EachKept calls f with each record that Keep has kept.
func (s *Store) EachKept(ctx context.Context, f func([]byte)) error {
	holder, err := s.holder(ctx)
	if err != nil {
		return wrap(err)
	}
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		keys, next, err := holder.Scan(ctx, cursor, s.keptKey(strings.Repeat("?", keyLen)), scanned).Result()
		if err != nil {
			return wrap(err)
		}
		for _, at := range keys {
			record, version, err := s.keptAt(ctx, at)
			switch {
			case errors.Is(err, replicas.ErrTooLarge): // it is none of ours
			case err != nil:
				return err
			case version != "": // else it is gone
				f(record)
			}
		}
		cursor = next
	}
	return nil
}

// Discard removes a record.
func (s *Store) Discard(ctx context.Context, key string) error {
	return wrap(s.client.Del(ctx, s.keptKey(key)).Err())
}
