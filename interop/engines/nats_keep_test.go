package engines

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
	"github.com/mcpbridge/mcpbridge/internal/replicas/natskv"
)

// newNATS returns a server, a store of it, and another client that looks at what is there.
func newNATS(t *testing.T) (*natsWorld, func() *natskv.Store, jetstream.JetStream) {
	t.Helper()
	w := &natsWorld{t: t, port: freePort(t), dir: t.TempDir()}
	w.Start(false)
	t.Cleanup(w.Stop)
	url := w.s.ClientURL()
	nc, err := nats.Connect(url, nats.UserInfo("replica", "open sesame"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	open := func() *natskv.Store {
		s, err := natskv.Open(natskv.Options{URL: parse(t, "nats://replica:open%20sesame@"+w.s.Addr().String()), Prefix: "test", Name: t.Name(), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(t.Context()); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
		return s
	}
	return w, open, js
}

// put stores a record, once the store is connected.
func put(t *testing.T, s *natskv.Store, ttl time.Duration) {
	t.Helper()
	var err error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = s.Put(t.Context(), "0123", []byte("alice's"), ttl); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// A record lives for as long as it was put for: whose a task is, for a day. A bucket of an
// earlier version keeps it as long from then on.
func TestNATSKeepsRecordsForADay(t *testing.T) {
	t.Parallel()
	for _, before := range []time.Duration{0, time.Hour} {
		_, open, js := newNATS(t)
		if before > 0 {
			if _, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "test_records", TTL: before, Storage: jetstream.MemoryStorage}); err != nil {
				t.Fatal(err)
			}
		}
		put(t, open(), 24*time.Hour)
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

// A replica that was killed is forgotten by the others: one that is started again and again
// would have each fill their memory.
func TestNATSForgetsTheDead(t *testing.T) {
	t.Parallel()
	_, open, _ := newNATS(t)
	s := open()
	put(t, s, time.Hour)
	if err := s.Beat(t.Context(), "DEADDEAD", []byte(`{"addr":"a:1","beat":1}`), true); err != nil {
		t.Fatal(err)
	}
	known := func() bool {
		if err := s.Beat(t.Context(), "LIVELIVE", []byte(`{"addr":"b:1","beat":1}`), false); err != nil {
			t.Fatal(err)
		}
		var snap member.Snapshot
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			var err error
			if snap, err = s.Poll(t.Context(), nil, false); err != nil {
				t.Fatal(err)
			}
			if _, lives := snap.Members["LIVELIVE"]; lives {
				break // the watch has told it
			}
			if time.Now().After(end) {
				t.Fatal("the living replica is forgotten")
			}
		}
		_, kept := snap.Members["DEADDEAD"]
		return kept
	}
	if !known() {
		t.Fatal("the heartbeat is not known")
	}
	for end := time.Now().Add(4 * replicas.MemberTTL); known(); time.Sleep(replicas.Heartbeat) {
		if time.Now().After(end) {
			t.Fatalf("a member is known %v after its last heartbeat", 4*replicas.MemberTTL)
		}
	}
}

// pollFor polls as the loop of a replica does, which waits a second.
func pollFor(t *testing.T, s *natskv.Store, key string, fresh bool) (member.Snapshot, error) {
	ctx, cancel := context.WithTimeout(t.Context(), replicas.Heartbeat)
	defer cancel()
	return s.Poll(ctx, []string{key}, fresh)
}
