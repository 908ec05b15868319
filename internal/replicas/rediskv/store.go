package rediskv

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	// atOnce is how many claims one command asks for.
	atOnce = 500
	// keyLen is how long the keys are that a replicas.Key makes.
	keyLen = 32
	// scanned is how many keys one command looks through, those of others too.
	scanned = 5000
)

// Options configure a Store.
type Options struct {
	URL    *replicas.URL // of one of the kinds of Redis
	TLS    *tls.Config   // where the URL asks for it; nil: that of the system
	Prefix string        // of the keys
	Name   string        // of the connections, for whoever looks at the server
	Logger *slog.Logger
	// Dial connects, instead of a net.Dialer and TLS.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// A Store is a member.Store at Redis.
type Store struct {
	client redis.UniversalClient
	prefix string // of keys, with the hash tag
	log    *slog.Logger
	hints  wake.Signal
	cancel context.CancelFunc
	done   chan struct{} // closed when listen has returned
}

// Open returns a Store that connects when it is asked, until Close.
func Open(o Options) *Store {
	redis.SetLogger(silence{}) // which would write to standard error by itself
	ctx, cancel := context.WithCancel(context.Background())
	s := &Store{client: newClient(o), prefix: "{" + o.Prefix + "}:", log: o.Logger, hints: wake.NewSignal(), cancel: cancel, done: make(chan struct{})}
	go s.listen(ctx) // ends by Close
	return s
}

// silence is the log of the client, whose errors are returned as well.
type silence struct{}

// Printf implements the client's Logging.
func (silence) Printf(context.Context, string, ...any) {}

// Close ends all connections.
func (s *Store) Close(context.Context) error {
	s.cancel()
	<-s.done
	err := s.client.Close()
	if errors.Is(err, redis.ErrClosed) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Changed has a value after Redis told that something changed.
func (s *Store) Changed() <-chan struct{} { return s.hints }

func (s *Store) key(name string) string      { return s.prefix + name }
func (s *Store) claimKey(key string) string  { return s.prefix + "claim:" + key }
func (s *Store) recordKey(key string) string { return s.prefix + "record:" + key }
func (s *Store) keptKey(key string) string   { return s.prefix + "kept:" + key }
func (s *Store) channel() string             { return s.prefix + "changed" }
func (s *Store) claimKeys(keys []string) (out []string) {
	for _, key := range keys {
		out = append(out, s.claimKey(key))
	}
	return out
}

// beat writes the record of a member and when it ends, unless one of a higher count is there, and
// removes those that have ended. If all replicas end, so do both keys. The count is read in what is
// there, since replicas of other versions write it nowhere else.
var beat = redis.NewScript(`
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
for _, dead in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)) do
	redis.call('HDEL', KEYS[1], dead)
	redis.call('ZREM', KEYS[2], dead)
end
local length = redis.call('HSTRLEN', KEYS[1], ARGV[1])
if length > 0 and length <= tonumber(ARGV[6]) then
	local read, was = pcall(cjson.decode, redis.call('HGET', KEYS[1], ARGV[1]))
	local count = read and type(was) == 'table' and was.beat
	if type(count) == 'number' and count > tonumber(ARGV[5]) then return 0 end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[1])
for _, key in ipairs(KEYS) do
	if redis.call('PTTL', key) < 2 * ARGV[3] then redis.call('PEXPIRE', key, 2 * ARGV[3]) end
end
if ARGV[4] ~= '' then redis.call('PUBLISH', ARGV[4], ARGV[1]) end
return 1`)

// Beat writes a member's record.
func (s *Store) Beat(ctx context.Context, b member.Beat) error {
	told := ""
	if b.News {
		told = s.channel()
	}
	keys := []string{s.key("members"), s.key("ends")}
	return wrap(beat.Run(ctx, s.client, keys, b.Instance, b.Record, b.Lasts.Milliseconds(), told, b.Count, replicas.MaxMember).Err())
}

// Poll asks for claims, and then for the members: a holder is known when its claim is. These
// are commands one by one, since the client has data races in pipelines that a cluster sends
// elsewhere.
func (s *Store) Poll(ctx context.Context, keys []string, _ bool) (member.Snapshot, error) {
	snap := member.Snapshot{Members: make(map[string][]byte), Claims: make(map[string]member.Entry, len(keys))}
	err := s.each(ctx, s.claimKeys(keys), func(key string, e member.Entry) {
		if e.Value == "" {
			snap.Skipped.Add(1, "Redis, "+s.claimKey(key))
			return
		}
		snap.Claims[key] = e
	})
	if err == nil {
		err = s.readMembers(ctx, &snap)
	}
	return snap, err
}

// Load asks for one claim.
func (s *Store) Load(ctx context.Context, key string) (member.Entry, error) {
	value, err := s.client.GetRange(ctx, s.claimKey(key), 0, replicas.MaxClaim).Result()
	if len(value) > replicas.MaxClaim {
		value = ""
	}
	return member.Entry{Value: value}, wrap(err)
}

// swap compares values: a value has the holder and an epoch that rises. One that is too large
// is none.
var swap = redis.NewScript(`
local was = redis.call('GET', KEYS[1]) or ''
if #was > tonumber(ARGV[4]) then was = '' end
if was ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2]) end
redis.call('PUBLISH', ARGV[3], KEYS[1])
return 1`)

// Swap replaces a claim if its value is old's.
func (s *Store) Swap(ctx context.Context, key string, old member.Entry, value string) (bool, error) {
	n, err := swap.Run(ctx, s.client, []string{s.claimKey(key)}, old.Value, value, s.channel(), replicas.MaxClaim).Int()
	return n == 1, wrap(err)
}

// Claims calls f with each claim.
func (s *Store) Claims(ctx context.Context, f func(string, member.Entry)) error {
	holder, err := s.holder(ctx)
	if err != nil {
		return wrap(err)
	}
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		keys, next, err := holder.Scan(ctx, cursor, s.claimKey(strings.Repeat("?", keyLen)), scanned).Result()
		if err != nil {
			return wrap(err)
		}
		if err := s.each(ctx, keys, f); err != nil {
			return err
		}
		cursor = next
	}
	return nil
}

// holder is the server that has all keys of the prefix: what can't be sent by its key goes
// there.
func (s *Store) holder(ctx context.Context) (redis.Cmdable, error) {
	if all, ok := s.client.(*redis.ClusterClient); ok {
		return all.MasterForKey(ctx, s.key("members"))
	}
	return s.client, nil
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("asking Redis: %w", err)
}
