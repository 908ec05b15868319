package rediskv

import (
	"context"
	"crypto/rand"

	"github.com/redis/go-redis/v9"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// versionLen is how long the version of a kept record is, which stands before it.
const versionLen = 26

// Kept returns a record that Keep has kept, of which it reads what may be too much, and no more.
func (s *Store) Kept(ctx context.Context, key string) (record []byte, version string, err error) {
	value, err := s.client.GetRange(ctx, s.pinKey(key), 0, versionLen+replicas.MaxRecord).Bytes()
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
	n, err := keep.Run(ctx, s.client, []string{s.pinKey(key)}, version, now, record).Int()
	if err != nil || n == 0 {
		return "", wrap(err)
	}
	return now, nil
}
