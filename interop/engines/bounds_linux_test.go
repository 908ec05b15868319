package engines

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
	"github.com/mcpbridge/mcpbridge/internal/replicas/natskv"
	"github.com/mcpbridge/mcpbridge/internal/replicas/rediskv"
)

// What others write below the prefix is bounded before it is read: records of members in size
// and number, other records in size.
func TestBoundedRecords(t *testing.T) {
	for name, open := range map[string]func(*testing.T) member.Store{"Redis": boundedRedis, "NATS": boundedNATS} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			t.Cleanup(func() { _ = s.Close(context.Background()) })
			beat := func(instance string, size int) {
				t.Helper()
				// NATS takes a moment to connect.
				eventually(t, 20*time.Second, "written", func() bool { return s.Beat(t.Context(), instance, make([]byte, size), false) == nil })
			}
			beat("good", 100)
			beat("large", replicas.MaxMember+1)
			var snap member.Snapshot
			skipped := 0
			poll := func() bool {
				var err error
				if snap, err = s.Poll(t.Context(), nil, false); err != nil {
					t.Fatal(err)
				}
				skipped += snap.Skipped
				return skipped > 0 // NATS tells of it later
			}
			eventually(t, 20*time.Second, "skipped", poll)
			if len(snap.Members) != 1 || len(snap.Members["good"]) != 100 {
				t.Errorf("%d members are read, want the one that is not too large", len(snap.Members))
			}
			beating(t, s, 2*replicas.MaxMembers)
			skipped = 0
			eventually(t, 20*time.Second, "skipped", poll)
			if len(snap.Members) > replicas.MaxMembers {
				t.Errorf("%d members are read, want %d at most", len(snap.Members), replicas.MaxMembers)
			}
			if name == "NATS" { // whose buckets refuse larger values
				return
			}
			if err := s.Put(t.Context(), "large", make([]byte, replicas.MaxRecord+1), time.Minute); err != nil {
				t.Fatal(err)
			}
			for what, read := range map[string]func(context.Context, string) ([]byte, error){"Get": s.Get, "Take": s.Take} {
				if record, err := read(t.Context(), "large"); !errors.Is(err, replicas.ErrNotFound) {
					t.Errorf("%s = %d bytes, %v, want %v", what, len(record), err, replicas.ErrNotFound)
				}
			}
		})
	}
}

// beating writes n records, faster than they end.
func beating(t *testing.T, s member.Store, n int) {
	t.Helper()
	errs := make(chan error, 10)
	for w := range cap(errs) {
		go func() { // ends with its part
			var err error
			for i := w; i < n && err == nil; i += cap(errs) {
				err = s.Beat(t.Context(), fmt.Sprint("m", i), make([]byte, 10), false)
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func boundedRedis(t *testing.T) member.Store {
	p := newRedis(t, "--appendfsync", "no")
	p.start(false)
	return rediskv.Open(rediskv.Options{URL: parse(t, "redis://"+user+p.addr()), Prefix: "test", Name: "test", Logger: logger()})
}

func boundedNATS(t *testing.T) member.Store {
	w := &natsWorld{t: t, port: freePort(t), dir: t.TempDir()}
	w.Start(false)
	t.Cleanup(w.Stop)
	s, err := natskv.Open(natskv.Options{URL: parse(t, fmt.Sprintf("nats://replica:open%%20sesame@127.0.0.1:%d", w.port)), Prefix: "test", Name: t.Name(), Logger: logger()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
