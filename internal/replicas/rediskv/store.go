package rediskv

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	// patience bounds a dial, and each reading and writing.
	patience = time.Second
	// connections bounds those to Redis, besides that for hints.
	connections = 20
	// atOnce is how many claims one command asks for.
	atOnce = 500
)

// Options configure a Store.
type Options struct {
	URL    string      // redis:// or rediss://
	TLS    *tls.Config // of rediss://; nil: that of the system
	Prefix string      // of the keys
	Name   string      // of the connections, for whoever looks at the server
	Logger *slog.Logger
}

// A Store is a member.Store at Redis.
type Store struct {
	pool   *redis.Pool
	dial   func(context.Context) (redis.Conn, error)
	prefix string // of keys, with the hash tag
	log    *slog.Logger
	hints  wake.Signal
	cancel context.CancelFunc
	done   chan struct{} // closed when listen has returned
}

// Open returns a Store that connects when it is asked, until Close.
func Open(o Options) *Store {
	dialOptions := []redis.DialOption{
		redis.DialConnectTimeout(patience), redis.DialTLSHandshakeTimeout(patience),
		redis.DialReadTimeout(patience), redis.DialWriteTimeout(patience), redis.DialClientName(o.Name),
	}
	if o.TLS != nil {
		dialOptions = append(dialOptions, redis.DialTLSConfig(o.TLS))
	}
	s := &Store{prefix: "{" + o.Prefix + "}:", log: o.Logger, hints: wake.NewSignal(), done: make(chan struct{})}
	s.dial = func(ctx context.Context) (redis.Conn, error) { return redis.DialURLContext(ctx, o.URL, dialOptions...) }
	s.pool = &redis.Pool{DialContext: s.dial, MaxIdle: connections, MaxActive: connections, Wait: true, IdleTimeout: time.Minute}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go s.listen(ctx) // ends by Close
	return s
}

// Close ends all connections.
func (s *Store) Close(context.Context) error {
	s.cancel()
	<-s.done
	return wrap(s.pool.Close())
}

// Changed has a value after Redis told that something changed.
func (s *Store) Changed() <-chan struct{} { return s.hints }

func (s *Store) key(name string) string      { return s.prefix + name }
func (s *Store) claimKey(key string) string  { return s.prefix + "claim:" + key }
func (s *Store) recordKey(key string) string { return s.prefix + "record:" + key }
func (s *Store) channel() string             { return s.prefix + "changed" }

// use calls f with a connection.
func (s *Store) use(ctx context.Context, f func(redis.Conn) error) error {
	c, err := s.pool.GetContext(ctx)
	if err != nil {
		return wrap(err)
	}
	err = f(c)
	if cerr := c.Close(); err == nil {
		err = cerr // of what is given back; a broken connection has told before
	}
	if errors.Is(err, replicas.ErrNotFound) {
		return err
	}
	return wrap(err)
}

// do asks one command.
func (s *Store) do(ctx context.Context, command string, args ...any) (reply any, err error) {
	err = s.use(ctx, func(c redis.Conn) (err error) {
		reply, err = redis.DoContext(c, ctx, command, args...)
		return err
	})
	return reply, err
}

// run runs a script.
func (s *Store) run(ctx context.Context, script *redis.Script, args ...any) (reply any, err error) {
	err = s.use(ctx, func(c redis.Conn) (err error) {
		reply, err = script.DoContext(ctx, c, args...)
		return err
	})
	return reply, err
}

// beat writes the record of a member and when it ends, and removes those that have ended. If
// all replicas end, so do both keys.
var beat = redis.NewScript(3, `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
for _, dead in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)) do
	redis.call('HDEL', KEYS[1], dead)
	redis.call('ZREM', KEYS[2], dead)
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[1])
redis.call('PEXPIRE', KEYS[1], 2 * ARGV[3])
redis.call('PEXPIRE', KEYS[2], 2 * ARGV[3])
if ARGV[4] == '1' then redis.call('PUBLISH', KEYS[3], ARGV[1]) end
return 1`)

// Beat writes a member's record.
func (s *Store) Beat(ctx context.Context, instance string, record []byte, news bool) error {
	told := "0"
	if news {
		told = "1"
	}
	_, err := s.run(ctx, beat, s.key("members"), s.key("ends"), s.channel(), instance, record, replicas.MemberTTL.Milliseconds(), told)
	return err
}

// Poll asks for the members and for claims, in one go.
func (s *Store) Poll(ctx context.Context, keys []string, _ bool) (snap member.Snapshot, err error) {
	err = s.use(ctx, func(c redis.Conn) (err error) {
		snap, err = s.poll(ctx, c, keys)
		return err
	})
	return snap, err
}

func (s *Store) poll(ctx context.Context, c redis.Conn, keys []string) (snap member.Snapshot, err error) {
	for some := range slices.Chunk(keys, atOnce) {
		args := make([]any, len(some))
		for i, key := range some {
			args[i] = s.claimKey(key)
		}
		if err := c.Send("MGET", args...); err != nil {
			return snap, err
		}
	}
	// After the claims: a holder is known when its claim is.
	if err := errors.Join(c.Send("HGETALL", s.key("members")), c.Flush()); err != nil {
		return snap, err
	}
	snap.Claims = make(map[string]member.Entry, len(keys))
	for some := range slices.Chunk(keys, atOnce) {
		values, err := redis.Values(redis.ReceiveContext(c, ctx))
		if err != nil {
			return snap, err
		}
		note(snap.Claims, some, values)
	}
	members, err := redis.StringMap(redis.ReceiveContext(c, ctx))
	snap.Members = make(map[string][]byte, len(members))
	for instance, record := range members {
		snap.Members[instance] = []byte(record)
	}
	return snap, err
}

// note adds the claims that exist.
func note(claims map[string]member.Entry, keys []string, values []any) {
	for i, value := range values[:min(len(values), len(keys))] {
		if text, kept := value.([]byte); kept {
			claims[keys[i]] = member.Entry{Value: string(text)}
		}
	}
}

// Load asks for one claim.
func (s *Store) Load(ctx context.Context, key string) (member.Entry, error) {
	value, err := redis.String(s.do(ctx, "GET", s.claimKey(key)))
	if errors.Is(err, redis.ErrNil) {
		return member.Entry{}, nil
	}
	return member.Entry{Value: value}, err
}

// swap compares values: a value has the holder and an epoch that rises.
var swap = redis.NewScript(2, `
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2]) end
redis.call('PUBLISH', KEYS[2], KEYS[1])
return 1`)

// Swap replaces a claim if its value is old's.
func (s *Store) Swap(ctx context.Context, key string, old member.Entry, value string) (bool, error) {
	n, err := redis.Int(s.run(ctx, swap, s.claimKey(key), s.channel(), old.Value, value))
	return n == 1, err
}

// Claims calls f with each claim.
func (s *Store) Claims(ctx context.Context, f func(string, member.Entry)) error {
	above := s.claimKey("")
	for cursor := "0"; ; {
		reply, err := redis.Values(s.do(ctx, "SCAN", cursor, "MATCH", above+"*", "COUNT", atOnce))
		if err != nil {
			return err
		}
		var keys []string
		if _, err := redis.Scan(reply, &cursor, &keys); err != nil {
			return wrap(err)
		}
		if err := s.each(ctx, keys, above, f); err != nil || cursor == "0" {
			return err
		}
	}
}

func (s *Store) each(ctx context.Context, keys []string, above string, f func(string, member.Entry)) error {
	for _, key := range keys {
		key = strings.TrimPrefix(key, above)
		e, err := s.Load(ctx, key)
		if err != nil {
			return err
		}
		if e.Value != "" {
			f(key, e)
		}
	}
	return nil
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("asking Redis: %w", err)
}
