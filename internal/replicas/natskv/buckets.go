package natskv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	// recordsTTL is the longest that a record lives.
	recordsTTL = 24 * time.Hour
	// maxClaims bounds how many claims are known. Of others the server is asked.
	maxClaims = 200_000
)

// errDeaf says that heartbeats of this replica were written and not told back.
var errDeaf = errors.New("NATS does not tell of changes")

// buckets are those of one connection.
type buckets struct {
	members, claims *mirror
	records         jetstream.KeyValue

	mu    sync.Mutex    // guards the fields below
	last  uint64        // revision of the last heartbeat that was written here
	since time.Time     // since when the watch of members has not told of it
	begun time.Time     // when it was begun to be written
	asof  time.Time     // the begin of the last one that the watch has told; zero before
	keeps time.Duration // that records of members live at least
}

// silentFor is how long the record of a member is known that is not written any more: NATS does not
// tell of those that end.
func silentFor(record []byte) time.Duration {
	_, lasts := member.Told(record)
	return 2 * lasts
}

// openBuckets opens the buckets, makes those that do not exist, and waits until the watches
// have told what is in them.
func (s *Store) openBuckets(ctx context.Context) (b *buckets, err error) {
	b = &buckets{keeps: replicas.Pace(0).Patience()}
	begin, cancel := context.WithTimeout(ctx, beginTimeout)
	defer cancel()
	members, err := s.bucket(begin, "members", b.keeps, replicas.MaxMember)
	if err != nil {
		return nil, err
	}
	claims, err := s.bucket(begin, "claims", 0, replicas.MaxMember)
	if err != nil {
		return nil, err
	}
	if b.records, err = s.bucket(begin, "records", recordsTTL, replicas.MaxRecord); err != nil {
		return nil, err
	}
	if b.claims, err = s.watch(begin, claims, bounds{size: replicas.MaxClaim, most: maxClaims}); err != nil {
		return nil, err
	}
	if b.members, err = s.watch(begin, members, bounds{size: replicas.MaxMember, most: replicas.MaxMembers, lasts: silentFor}); err != nil {
		b.claims.stop()
		return nil, err
	}
	for _, m := range []*mirror{b.claims, b.members} {
		if err := m.await(ctx); err != nil {
			b.stop()
			return nil, err
		}
	}
	return b, nil
}

// bucket returns a bucket that exists, or makes it: on three servers if the cluster has them,
// and with room for values that are twice as large as they may be here.
func (s *Store) bucket(ctx context.Context, name string, ttl time.Duration, size int32) (jetstream.KeyValue, error) {
	full := s.bucketName(name)
	kv, err := s.js.KeyValue(ctx, full)
	if err == nil {
		return s.lasting(ctx, kv, ttl), nil
	}
	if !errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, wrapBucket(full, err)
	}
	conf := jetstream.KeyValueConfig{
		Bucket: full, Description: described + name, TTL: ttl, History: 1,
		Storage: storage(name), Replicas: copies, MaxValueSize: 2 * size,
	}
	if kv, err = s.js.CreateKeyValue(ctx, conf); tooFew(err) {
		conf.Replicas = 1
		kv, err = s.js.CreateKeyValue(ctx, conf)
	}
	if errors.Is(err, jetstream.ErrBucketExists) {
		kv, err = s.js.KeyValue(ctx, full) // another replica was faster
	}
	return kv, wrapBucket(full, err)
}

// storage returns where a bucket is: what has no end outlives the servers.
func storage(name string) jetstream.StorageType {
	if name == keptBucket {
		return jetstream.FileStorage
	}
	return jetstream.MemoryStorage
}

func (s *Store) bucketName(name string) string { return s.prefix + "_" + name }

// lasting returns a bucket that exists, whose keys live for ttl at least if NATS lets this
// replica change that: those of an earlier version may live shorter.
func (s *Store) lasting(ctx context.Context, kv jetstream.KeyValue, ttl time.Duration) jetstream.KeyValue {
	status, err := kv.Status(ctx)
	if err != nil || status.TTL() == 0 || status.TTL() >= ttl {
		return kv
	}
	conf := status.Config()
	conf.TTL = ttl
	longer, err := s.js.UpdateKeyValue(ctx, conf)
	if err != nil {
		s.log.Warn("a bucket of NATS forgets early", "bucket", kv.Bucket(), "after", status.TTL(), "want", ttl, "error", err)
		return kv
	}
	return longer
}

func wrapBucket(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("opening bucket %s of NATS: %w", name, err)
}

// codeNotAvailable is JetStream's error code of a server that knows of no leader.
const codeNotAvailable = 10008

// Error codes of JetStream that say that a bucket can't have three replicas.
const (
	codeInsufficientResources = 10023
	codeNoPeers               = 10005
	codeNotClustered          = 10074
)

func tooFew(err error) bool {
	api := (*jetstream.APIError)(nil)
	if !errors.As(err, &api) {
		return false
	}
	return api.ErrorCode == codeInsufficientResources || api.ErrorCode == codeNoPeers || api.ErrorCode == codeNotClustered
}

func (b *buckets) stop() {
	b.members.stop()
	b.claims.stop()
}

// told notes that a heartbeat was written, of which the watch has to tell.
func (b *buckets) told(revision uint64, begun time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.caughtUpLocked() {
		b.since = time.Now()
	}
	if revision > b.last {
		b.last, b.begun = revision, begun
	}
}

// caughtUpLocked reports whether the watch of members has told of the last heartbeat from here, and so
// of all that was written before.
func (b *buckets) caughtUpLocked() bool {
	if b.members.reached() < b.last {
		return false
	}
	b.asof = b.begun
	return true
}

// age is how long ago all was told that the watch of members has told.
func (b *buckets) age(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.caughtUpLocked()
	return now.Sub(b.asof)
}

// deaf reports whether the watches have ended, or have not told for two heartbeats what this
// replica wrote.
func (b *buckets) deaf(now time.Time) bool {
	if wake.Closed(b.members.done) || wake.Closed(b.claims.done) {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.caughtUpLocked() && now.Sub(b.since) > 2*replicas.Heartbeat
}

func (b *buckets) snapshot(keys []string) member.Snapshot {
	snap := member.Snapshot{Members: make(map[string][]byte), Claims: b.claims.some(keys), Age: b.age(time.Now())}
	for _, m := range []*mirror{b.claims, b.members} {
		snap.Skipped.Add(m.skips(), "NATS, bucket "+m.kv.Bucket())
	}
	for instance, e := range b.members.all(time.Now()) {
		if e.Value != "" {
			snap.Members[instance] = []byte(e.Value)
		}
	}
	return snap
}
