package natskv

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// unreadKV takes no reads for a while.
type unreadKV struct {
	jetstream.KeyValue
	until time.Time
}

func (kv *unreadKV) Get(context.Context, string) (jetstream.KeyValueEntry, error) {
	if time.Now().Before(kv.until) {
		return nil, nats.ErrNoResponders
	}
	return nil, jetstream.ErrKeyNotFound
}

// What no server reads for a moment is asked for again; who waits no longer, or too long, is told.
func TestRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			unread, patience time.Duration
			want             error
			within           time.Duration
		}{
			{unread: 0, patience: time.Minute, want: jetstream.ErrKeyNotFound, within: 0},
			{unread: 600 * time.Millisecond, patience: time.Minute, want: jetstream.ErrKeyNotFound, within: 800 * time.Millisecond},
			{unread: time.Hour, patience: time.Minute, want: nats.ErrNoResponders, within: rereadFor + reread.Max},
			{unread: time.Hour, patience: 100 * time.Millisecond, want: nats.ErrNoResponders, within: 100 * time.Millisecond},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), c.patience)
			begun := time.Now()
			_, err := readAny(ctx, &unreadKV{until: begun.Add(c.unread)}, "key")
			if took := time.Since(begun); !errors.Is(err, c.want) || took > c.within {
				t.Errorf("unread for %v: %v after %v, want %v within %v", c.unread, err, took, c.want, c.within)
			}
			cancel()
		}
	})
}

// behindKV is a bucket as a server sees it that has none of its keys yet.
type behindKV struct{ jetstream.KeyValue }

func (behindKV) Get(context.Context, string) (jetstream.KeyValueEntry, error) {
	return nil, jetstream.ErrKeyNotFound
}

// olderKV is a bucket as a server sees it that has an older value still.
type olderKV struct {
	jetstream.KeyValue
	old jetstream.KeyValueEntry
}

func (kv olderKV) Get(context.Context, string) (jetstream.KeyValueEntry, error) { return kv.old, nil }

// What a server that is behind does not know of, the leader is asked for; and Take asks the leader
// alone, as a server that is behind may know of an older record.
func TestServerIsBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.store()
	first, err := s.Keep(t.Context(), "4567", "", []byte("kept"))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := s.forever(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if e, err := s.read(t.Context(), behindKV{kept}, "4567"); string(e.value) != "kept" || err != nil {
		t.Errorf("read of what was kept = %q, %v", e.value, err)
	}
	if _, err := s.Keep(t.Context(), "4567", first, []byte("again")); err != nil {
		t.Fatal(err)
	}
	if e, err := s.read(t.Context(), behindKV{kept}, "4567"); string(e.value) != "again" || err != nil {
		t.Errorf("read of what was replaced = %q, %v", e.value, err)
	}
	for _, key := range []string{"4567", "never"} {
		if err := s.Discard(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if e, err := s.read(t.Context(), behindKV{kept}, key); !errors.Is(err, jetstream.ErrKeyNotFound) {
			t.Errorf("read of key %s, which was discarded = %q, %v", key, e.value, err)
		}
	}

	b, err := s.kept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.records = behindKV{b.records}
	record := slices.Repeat([]byte("0123456789abcdef"), replicas.MaxRecord/16)
	if err := s.Put(t.Context(), "89ab", record, time.Hour); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), "89ab"); !slices.Equal(got, record) || err != nil {
		t.Errorf("Get = %d bytes, %v", len(got), err)
	}
	old, err := b.records.(behindKV).KeyValue.Get(t.Context(), "89ab")
	if err != nil {
		t.Fatal(err)
	}
	b.records = olderKV{b.records.(behindKV).KeyValue, old}
	record = record[:16]
	if err := s.Put(t.Context(), "89ab", record, time.Hour); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Take(t.Context(), "89ab"); !slices.Equal(got, record) || err != nil {
		t.Errorf("Take = %d bytes, %v", len(got), err)
	}
	b.records = b.records.(olderKV).KeyValue
	if got, err := s.Get(t.Context(), "89ab"); !errors.Is(err, replicas.ErrNotFound) {
		t.Errorf("Get of what was taken = %d bytes, %v", len(got), err)
	}
}
