package natskv

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
)

// claims polls until a store knows these claims.
func (w *world) claims(s *Store, want map[string]string) {
	w.t.Helper()
	var got map[string]string
	var err error
	bridgetest.Eventually(w.t, fmt.Sprint("the claims ", want), func() bool {
		var snap member.Snapshot
		snap, err = s.Poll(w.t.Context(), []string{"0123", "4567", "89ab"}, false)
		got = make(map[string]string)
		for key, e := range snap.Claims {
			got[key] = e.Value
		}
		return err == nil && maps.Equal(got, want)
	})
}

// A claim is replaced by whoever knows its revision, and nobody else; all hear of it.
func TestSwap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, other := w.store(), w.store()
	swap := func(s *Store, old member.Entry, value string, want bool) member.Entry {
		t.Helper()
		if done, err := s.Swap(t.Context(), "0123", old, value); done != want || err != nil {
			t.Errorf("Swap(%+v, %q) = %v, %v, want %v", old, value, done, err, want)
		}
		e, err := s.Load(t.Context(), "0123")
		if err != nil {
			t.Errorf("Load: %v", err)
		}
		return e
	}
	none := member.Entry{}
	if e, err := s.Load(t.Context(), "0123"); e != none || err != nil {
		t.Errorf("Load of no claim = %+v, %v", e, err)
	}
	first := swap(s, none, "A 1", true)
	if e := swap(other, none, "B 1", false); e != first || e.Value != "A 1" {
		t.Errorf("another has claimed: %+v", e)
	}
	w.claims(other, map[string]string{"0123": "A 1"})
	second := swap(other, first, "B 2", true)
	if second.Value != "B 2" || second.Revision <= first.Revision {
		t.Errorf("Load after Swap = %+v, before it was %+v", second, first)
	}
	w.claims(s, map[string]string{"0123": "B 2"})
	swap(s, first, "A 3", false)
	swap(s, first, "", false)
	if e := swap(s, second, "", true); e != none {
		t.Errorf("a claim that was deleted is %+v", e)
	}
	w.claims(other, map[string]string{})
	swap(other, none, "B 4", true)
	w.claims(s, map[string]string{"0123": "B 4"})
}

// A store that is opened knows, when it answers at first, all claims that were there before.
func TestClaims(t *testing.T) {
	t.Parallel()
	w, want := newWorld(t), make(map[string]string)
	w.store()
	kv, err := w.look().KeyValue(t.Context(), "test_claims")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		key := fmt.Sprintf("%04x", i)
		want[key] = fmt.Sprint("A ", i)
		if _, err := kv.PutString(t.Context(), key, want[key]); err != nil {
			t.Fatal(err)
		}
	}
	s, got := w.open(), make(map[string]string)
	bridgetest.Eventually(t, "an answer", func() bool {
		return s.Claims(t.Context(), func(key string, e member.Entry) { got[key] = e.Value }) == nil
	})
	if !maps.Equal(got, want) {
		t.Errorf("Claims: %d claims, want the %d that were there", len(got), len(want))
	}
}

// A record is taken by one alone, who asks at the same time as others.
func TestTake(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stores := []*Store{w.store(), w.store()}
	if err := stores[0].Put(t.Context(), "4567", []byte("alice's"), time.Hour); err != nil {
		t.Fatal(err)
	}
	if got, err := stores[1].Get(t.Context(), "4567"); string(got) != "alice's" || err != nil {
		t.Errorf("Get = %q, %v", got, err)
	}
	var wg sync.WaitGroup
	var taken atomic.Int32
	for _, s := range slices.Repeat(stores, 4) {
		wg.Go(func() {
			switch got, err := s.Take(t.Context(), "4567"); {
			case err == nil && string(got) == "alice's":
				taken.Add(1)
			case !errors.Is(err, replicas.ErrNotFound):
				t.Errorf("Take = %q, %v", got, err)
			}
		})
	}
	if wg.Wait(); taken.Load() != 1 {
		t.Errorf("the record was taken %d times, want once", taken.Load())
	}
	if _, err := stores[1].Get(t.Context(), "4567"); !errors.Is(err, replicas.ErrNotFound) {
		t.Errorf("Get of what was taken: %v, want ErrNotFound", err)
	}
}

// What is kept is replaced by its version, and outlives a server that is started again with its
// disk: it is in a bucket of files, without a time to live.
func TestKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, other := w.store(), w.store()
	if record, version, err := s.Kept(t.Context(), "0123"); record != nil || version != "" || err != nil {
		t.Errorf("Kept of nothing = %q, %q, %v", record, version, err)
	}
	first, err := s.Keep(t.Context(), "0123", "", []byte("one"))
	if first == "" || err != nil {
		t.Fatalf("Keep = %q, %v", first, err)
	}
	if now, err := other.Keep(t.Context(), "0123", "", []byte("two")); now != "" || err != nil {
		t.Errorf("Keep of what is kept already = %q, %v", now, err)
	}
	if now, err := other.Keep(t.Context(), "0123", first, []byte("two")); now == "" || err != nil {
		t.Errorf("Keep = %q, %v", now, err)
	}
	if record, version, err := s.Kept(t.Context(), "0123"); string(record) != "two" || version == first || err != nil {
		t.Errorf("Kept = %q, %q, %v", record, version, err)
	}
	stream, err := w.look().Stream(t.Context(), "KV_test_kept")
	if err != nil {
		t.Fatal(err)
	}
	if c := stream.CachedInfo().Config; c.Storage != jetstream.FileStorage || c.MaxAge != 0 {
		t.Errorf("the bucket is in %v for %v, want it in files for ever", c.Storage, c.MaxAge)
	}
}

// A record ends by its own time to live, also one that was to end before it was put.
func TestRecordsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.store()
	for _, ttl := range []time.Duration{time.Millisecond, 0, -time.Hour} {
		if err := s.Put(t.Context(), "4567", []byte("alice's"), ttl); err != nil {
			t.Fatal(err)
		}
		bridgetest.Eventually(t, fmt.Sprintf("the end of a record for %v", ttl), func() bool {
			_, err := s.Get(t.Context(), "4567")
			return errors.Is(err, replicas.ErrNotFound)
		})
		if _, err := s.Take(t.Context(), "4567"); !errors.Is(err, replicas.ErrNotFound) {
			t.Errorf("Take of a record for %v that ended: %v, want ErrNotFound", ttl, err)
		}
	}
	if err := s.Put(t.Context(), "4567", make([]byte, replicas.MaxRecord), time.Hour); err != nil {
		t.Errorf("Put of the largest record: %v", err)
	}
	if got, err := s.Get(t.Context(), "4567"); len(got) != replicas.MaxRecord || err != nil {
		t.Errorf("Get of the largest record: %d bytes, %v", len(got), err)
	}
}

// A record lives for as long as it was put for: whose a task is, for a day. A bucket of an
// earlier version keeps it as long from then on.
func TestRecordsAreKeptForADay(t *testing.T) {
	t.Parallel()
	for _, before := range []time.Duration{0, time.Hour} {
		w := newWorld(t)
		js := w.look()
		if before > 0 {
			if _, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "test_records", TTL: before, Storage: jetstream.MemoryStorage}); err != nil {
				t.Fatal(err)
			}
		}
		w.store()
		kv, err := js.KeyValue(t.Context(), "test_records")
		if err != nil {
			t.Fatal(err)
		}
		status, err := kv.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := status.TTL(); got < 24*time.Hour {
			t.Errorf("a bucket of %v before: records live %v, want a day", before, got)
		}
	}
}

// members reports whether a store knows these members, by the records that beat wrote.
func (w *world) members(s *Store, want ...string) bool {
	w.t.Helper()
	snap, err := s.Poll(w.t.Context(), nil, false)
	for instance, record := range snap.Members {
		if string(record) != "record of "+instance {
			w.t.Errorf("the record of %s is %q", instance, record)
		}
	}
	return err == nil && slices.Equal(slices.Sorted(maps.Keys(snap.Members)), want)
}

func (w *world) beat(s *Store, instance string) error {
	return s.Beat(w.t.Context(), member.Beat{Instance: instance, Record: []byte("record of " + instance), Lasts: replicas.Pace(0).Patience()})
}

// A heartbeat that is late replaces none that is newer, whatever a watch has told; and a later one
// replaces what another store has written, or what has ended.
func TestALateHeartbeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.store(), w.store()
	beat := func(s *Store, count uint64) {
		t.Helper()
		record := fmt.Sprintf(`{"addr":"h:1","beat":%d}`, count)
		if err := s.Beat(t.Context(), member.Beat{Instance: "AAAAAAAA", Record: []byte(record), Count: count, Lasts: time.Minute}); err != nil {
			t.Fatalf("Beat of %d: %v", count, err)
		}
	}
	want := func(count uint64) {
		t.Helper()
		b, err := one.kept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		e, err := current(t.Context(), b.members.kv, "AAAAAAAA")
		if got, _ := member.Told([]byte(e.Value)); err != nil || got != count {
			t.Errorf("NATS has heartbeat %d, %v, want %d", got, err, count)
		}
	}
	beat(one, 5)
	beat(two, 7) // the watch of one may not know of it
	beat(one, 6)
	want(7)
	beat(one, 8)
	beat(two, 9)
	want(9)
	b, err := one.kept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.members.kv.Purge(t.Context(), "AAAAAAAA"); err != nil {
		t.Fatal(err)
	}
	beat(two, 10)
	want(10)
}

// A replica that was killed is forgotten by the others: one that is started again and again
// would have each fill their memory. One that lives is not, nor is a claim.
func TestTheDeadAreForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.store()
	for _, instance := range []string{"DEADDEAD", "LIVELIVE"} {
		if err := w.beat(s, instance); err != nil {
			t.Fatal(err)
		}
	}
	if done, err := s.Swap(t.Context(), "0123", member.Entry{}, "DEADDEAD 1"); !done || err != nil {
		t.Fatalf("Swap = %v, %v", done, err)
	}
	w.claims(s, map[string]string{"0123": "DEADDEAD 1"})
	bridgetest.Eventually(t, "both heartbeats to be told", func() bool { return w.members(s, "DEADDEAD", "LIVELIVE") })
	b, err := s.kept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	time.Sleep(20 * time.Millisecond) // so that the next one is later, by any clock
	if err := w.beat(s, "LIVELIVE"); err != nil {
		t.Fatal(err)
	}
	bridgetest.Eventually(t, "a heartbeat to be told", func() bool { return b.members.reached() >= b.last })

	later := before.Add(silentFor(nil) + time.Millisecond)
	if got := slices.Collect(maps.Keys(b.members.all(later))); !slices.Equal(got, []string{"LIVELIVE"}) {
		t.Errorf("members known after %v: %v, want LIVELIVE alone", silentFor(nil), got)
	}
	if got := b.claims.all(later.AddDate(1, 0, 0)); len(got) != 1 {
		t.Errorf("claims known after a year: %v", got)
	}
}

// A server that was started again has forgotten all. The buckets are made anew, with no word
// of what was in the others, and what changes is hinted at.
func TestServerForgets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, other := w.store(), w.store()
	if err := w.beat(s, "AAAAAAAA"); err != nil {
		t.Fatal(err)
	}
	if done, err := s.Swap(t.Context(), "0123", member.Entry{}, "A 1"); !done || err != nil {
		t.Fatalf("Swap = %v, %v", done, err)
	}
	w.claims(other, map[string]string{"0123": "A 1"})

	w.stop()
	bridgetest.Eventually(t, "a connection that ends", func() bool { return !s.nc.IsConnected() && !other.nc.IsConnected() })
	if _, err := s.Poll(t.Context(), nil, false); !errors.Is(err, errUnconnected) {
		t.Errorf("Poll without a server: %v, want %v", err, errUnconnected)
	}
	if _, err := s.Get(t.Context(), "usable"); !errors.Is(err, errUnconnected) {
		t.Errorf("Get without a server: %v, want %v", err, errUnconnected)
	}
	w.start()
	w.await(s)
	w.await(other)
	if !w.members(s) {
		t.Error("a member is known of a server that is gone")
	}
	w.claims(other, map[string]string{})
	for len(other.Changed()) > 0 {
		<-other.Changed()
	}
	if done, err := s.Swap(t.Context(), "0123", member.Entry{}, "B 2"); !done || err != nil {
		t.Fatalf("Swap = %v, %v", done, err)
	}
	select {
	case <-other.Changed():
	case <-time.After(bridgetest.Patience):
		t.Error("no hint of a claim")
	}
	w.claims(other, map[string]string{"0123": "B 2"})
}

// A bucket that somebody deletes is noticed by what fails, and made anew.
func TestBucketIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.store()
	if err := w.look().DeleteKeyValue(t.Context(), "test_records"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "usable"); err == nil || errors.Is(err, replicas.ErrNotFound) {
		t.Errorf("Get from a bucket that is gone: %v", err)
	}
	w.await(s)
	if _, err := s.Get(t.Context(), "usable"); err != nil {
		t.Errorf("Get: %v", err)
	}
}

// A watch that does not tell what this replica wrote for two heartbeats is opened again.
func TestDeaf(t *testing.T) {
	t.Parallel()
	b := &buckets{members: &mirror{done: make(chan struct{})}, claims: &mirror{done: make(chan struct{})}}
	want := func(after time.Duration, want bool) {
		t.Helper()
		if got := b.deaf(b.since.Add(after)); got != want {
			t.Errorf("told up to %d of %d: deaf after %v = %v, want %v", b.members.last, b.last, after, got, want)
		}
	}
	b.told(5, time.Now())
	want(2*replicas.Heartbeat, false)
	want(2*replicas.Heartbeat+1, true)
	since := b.since
	if b.told(6, time.Now()); b.since != since {
		t.Error("another heartbeat that is not told begins the wait anew")
	}
	b.members.last = 6
	want(time.Hour, false)
	if b.told(7, time.Now()); b.since == since {
		t.Error("a heartbeat after one that was told does not begin a wait")
	}
	want(time.Hour, true)
	b.members.last = 7
	close(b.claims.done)
	want(0, true)
}
