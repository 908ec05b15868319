package engines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
	"github.com/mcpbridge/mcpbridge/internal/replicas/natskv"
	"github.com/mcpbridge/mcpbridge/internal/replicas/rediskv"
)

// A junkyard is an engine where somebody else writes, too.
type junkyard struct {
	open func(log *slog.Logger) member.Store
	// large writes records of members of 60 MiB in all, and claims and records that are too large.
	large func(key string)
	// many writes n records of members that look like those of replicas.
	many  func(n int)
	where string // what the warning names
	most  uint64 // MiB that are allocated in three seconds; here a server of NATS runs, too
}

// Records of others are bounded before they take memory, in size and number, and so are their
// lines in the log. Replicas go on knowing each other.
func TestBoundedRecords(t *testing.T) {
	for name, yard := range map[string]func(*testing.T) *junkyard{"Redis": redisJunk, "NATS": natsJunk} {
		t.Run(name, func(t *testing.T) { // not beside others: it looks at the heap
			y := yard(t)
			a, log := y.join(t, "AAAAAAAA", 1)
			b, _ := y.join(t, "BBBBBBBB", 2)
			know := func(what string) {
				t.Helper()
				eventually(t, patience, what, func() bool {
					_, ab := a.View().Member("BBBBBBBB")
					_, ba := b.View().Member("AAAAAAAA")
					return ab && ba
				})
			}
			know("two replicas know each other")
			y.largeOnes(t, a, log)
			y.manyOnes(t, a, log)
			if s := log.String(); strings.Contains(s, `silent" replica=BBBBBBBB`) {
				t.Errorf("a replica was silent:\n%s", s)
			}
			c, _ := y.join(t, "CCCCCCCC", 3)
			eventually(t, patience, "a replica joins beside them", func() bool {
				_, ac := a.View().Member("CCCCCCCC")
				_, cb := c.View().Member("BBBBBBBB")
				return ac && cb
			})
			know("they still do")
		})
	}
}

// largeOnes has records of 60 MiB beside those of the replicas.
func (y *junkyard) largeOnes(t *testing.T, a replicas.Engine, log *lines) {
	const name, record = "claimed by junk", "a record of junk"
	y.large(replicas.Key(name))
	y.large(replicas.Key(record))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	eventually(t, patience, "a warning", func() bool { return strings.Contains(log.String(), y.where) })
	for end := time.Now().Add(3 * replicas.Heartbeat); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if v := a.View(); !v.Away.IsZero() || len(v.Members) != 2 {
			t.Fatalf("the view is %+v, want two members", v)
		}
	}
	runtime.ReadMemStats(&after)
	// Each round of each of both replicas would have allocated 60 MiB.
	got := (after.TotalAlloc - before.TotalAlloc) >> 20
	t.Logf("%d MiB were allocated", got)
	if got > y.most {
		t.Errorf("%d MiB were allocated, want %d at most", got, y.most)
	}
	var c replicas.Claim
	var err error
	eventually(t, patience, "a claim of junk is taken", func() bool {
		c, err = a.Claim(t.Context(), name)
		return err == nil
	})
	if c.Holder.Instance != "AAAAAAAA" {
		t.Errorf("Claim = %+v, want AAAAAAAA", c)
	}
	for i, read := range []func(context.Context, string) ([]byte, error){a.Get, a.Take} { // in this order: Take deletes
		if got, err := read(t.Context(), record); !errors.Is(err, replicas.ErrTooLarge) {
			t.Errorf("%s of 600 KiB = %d bytes, %v, want %v", []string{"Get", "Take"}[i], len(got), err, replicas.ErrTooLarge)
		}
	}
}

// manyOnes has 20,000 records that look like those of replicas.
func (y *junkyard) manyOnes(t *testing.T, a replicas.Engine, log *lines) {
	before := log.size()
	most, stop := mostMembers(t, a) // they are members for some seconds only, which writing them may take
	y.many(20_000)
	s := y.open(logger())
	defer func() { _ = s.Close(t.Context()) }()
	eventually(t, patience, "the store is read", func() bool {
		snap, err := s.Poll(t.Context(), nil, false)
		if n := len(snap.Members); n > replicas.MaxMembers {
			t.Fatalf("%d records are read, want %d at most", n, replicas.MaxMembers)
		}
		return err == nil
	})
	eventually(t, patience, "some are taken for replicas", func() bool { return most() > 2 })
	eventually(t, patience, "they are silent", func() bool {
		v := a.View()
		if _, knows := v.Member("BBBBBBBB"); !knows {
			t.Fatal("a replica is not known any more")
		}
		return len(v.Members) == 2
	})
	stop()
	if n := most(); n > replicas.MaxMembers+1 {
		t.Errorf("%d replicas were known, want %d at most", n, replicas.MaxMembers)
	}
	if got := log.size() - before; got > 200<<10 {
		t.Errorf("%d bytes were logged, want 200 KiB at most", got)
	}
}

// mostMembers looks how many members a has, and returns what says the most so far, and what
// ends it.
func mostMembers(t *testing.T, a replicas.Engine) (most func() int, stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var n atomic.Int64
	var looking sync.WaitGroup
	looking.Go(func() { // ends with ctx
		for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
			n.Store(max(n.Load(), int64(len(a.View().Members))))
		}
	})
	stop = func() { cancel(); looking.Wait() }
	t.Cleanup(stop)
	return func() int { return int(n.Load()) }, stop
}

// join has a replica join.
func (y *junkyard) join(t *testing.T, instance string, n int) (replicas.Engine, *lines) {
	t.Helper()
	log := new(lines)
	logger := slog.New(slog.NewTextHandler(log, nil))
	e := closing(t, member.New(y.open(logger), member.Options{Logger: logger}))
	if err := e.Join(t.Context(), replicas.Replica{Instance: instance, Addr: fmt.Sprintf("10.0.0.%d:1", n), Version: "test"}); err != nil {
		t.Fatal(err)
	}
	return e, log
}

func junkRecord(i int) []byte {
	return fmt.Appendf(nil, `{"addr":"10.1.%d.%d:1","version":"junk","beat":1}`, i>>8, i&255)
}

func redisJunk(t *testing.T) *junkyard {
	p := newRedis(t, "--appendfsync", "no")
	p.start(false)
	writer := redis.NewClient(&redis.Options{Addr: p.addr(), Password: password, ReadTimeout: time.Minute, WriteTimeout: time.Minute})
	t.Cleanup(func() { _ = writer.Close() })
	done := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	return &junkyard{
		where: "Redis, {test}:members", most: 60,
		open: func(log *slog.Logger) member.Store {
			return rediskv.Open(rediskv.Options{URL: parse(t, "redis://"+user+p.addr()), Prefix: "test", Name: "test", Logger: log})
		},
		large: func(key string) {
			done(writer.HSet(t.Context(), "{test}:members", "large", make([]byte, 60<<20)).Err())
			done(writer.Set(t.Context(), "{test}:claim:"+key, bytes.Repeat([]byte("BBBBBBBB 1 "), 60_000), 0).Err())
			done(writer.Set(t.Context(), "{test}:record:"+key, make([]byte, 600<<10), 0).Err())
		},
		many: func(n int) {
			done(writer.HDel(t.Context(), "{test}:members", "large").Err())
			now, err := writer.Time(t.Context()).Result()
			done(err)
			pipe := writer.Pipeline()
			for i := range n {
				pipe.HSet(t.Context(), "{test}:members", fmt.Sprint("j", i), junkRecord(i))
				switch i % 3 { // the others have no end, as whoever knows nothing of ends leaves them
				case 0:
					pipe.ZAdd(t.Context(), "{test}:ends", redis.Z{Score: float64(now.Add(replicas.MemberTTL).UnixMilli()), Member: fmt.Sprint("j", i)})
				case 1:
					pipe.ZAdd(t.Context(), "{test}:ends", redis.Z{Score: float64(now.Add(time.Hour).UnixMilli()), Member: fmt.Sprint("j", i)})
				}
			}
			_, err = pipe.Exec(t.Context())
			done(err)
		},
	}
}

func natsJunk(t *testing.T) *junkyard {
	w, js := newNATS(t)
	buckets := make(map[string]jetstream.KeyValue)
	for name, ttl := range map[string]time.Duration{"members": replicas.MemberTTL, "claims": 0, "records": 24 * time.Hour} {
		kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "test_" + name, TTL: ttl, Storage: jetstream.MemoryStorage}) // as an operator may
		if err != nil {
			t.Fatal(err)
		}
		buckets[name] = kv
	}
	put := func(bucket, key string, value []byte) {
		t.Helper()
		if _, err := buckets[bucket].Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	return &junkyard{
		where: "NATS, bucket test_members", most: 240,
		open: func(log *slog.Logger) member.Store {
			s, err := natskv.Open(natskv.Options{URL: parse(t, "nats://replica:open%20sesame@"+w.s.Addr().String()), Prefix: "test", Name: t.Name(), Logger: log})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		large: func(key string) {
			for i := range 60 {
				put("members", fmt.Sprint("large", i), make([]byte, 1000<<10))
			}
			put("claims", key, bytes.Repeat([]byte("BBBBBBBB 1 "), 60_000))
			record := make([]byte, 600<<10)
			record[4] = 1 // lives a while
			put("records", key, record)
		},
		many: func(n int) {
			for i := range n {
				if _, err := js.PublishAsync(fmt.Sprint("$KV.test_members.j", i), junkRecord(i)); err != nil {
					t.Fatal(err)
				}
				if i%1000 == 999 {
					<-js.PublishAsyncComplete()
				}
			}
		},
	}
}

// lines are what is logged.
type lines struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lines) size() int { return len(l.String()) }
