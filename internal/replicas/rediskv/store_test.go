package rediskv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
)

// A claim is replaced by whoever knows its value, and nobody else.
func TestSwap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, _ := w.store(t)
		for i, tt := range []struct {
			old, value string
			done       bool
			after      string
		}{
			{"A 1", "B 2", false, ""}, // of a claim that nobody has made
			{"", "A 1", true, "A 1"},
			{"", "B 1", false, "A 1"},
			{"A 2", "B 3", false, "A 1"},
			{"A 1", "B 2", true, "B 2"},
			{"A 1", "", false, "B 2"},
			{"B 2", "", true, ""},
		} {
			if done, err := s.Swap(t.Context(), "0123", member.Entry{Value: tt.old}, tt.value); done != tt.done || err != nil {
				t.Errorf("%d: Swap(%q, %q) = %v, %v, want %v", i, tt.old, tt.value, done, err, tt.done)
			}
			if e, err := s.Load(t.Context(), "0123"); e.Value != tt.after || err != nil {
				t.Errorf("%d: Load = %q, %v, want %q", i, e.Value, err, tt.after)
			}
		}
		if left := w.m.DB(2).Keys(); len(left) > 0 {
			t.Errorf("the keys %v are left", left)
		}
	})
}

// However many claims there are, all are found, and those of another prefix are not.
func TestClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, _ := w.store(t)
		want, keys := make(map[string]string), make([]string, 0)
		for i := range 2*atOnce + 1 {
			key := fmt.Sprintf("%032x", i)
			keys = append(keys, key, "f"+key[1:])
			want[key] = fmt.Sprint("A ", i)
			w.set(s.claimKey(key), want[key])
		}
		w.set(strings.Replace(s.claimKey(strings.Repeat("0", 32)), "test", "toast", 1), "another's")
		w.set(s.recordKey(strings.Repeat("0", 32)), "a record")

		got := make(map[string]string)
		if err := s.Claims(t.Context(), func(key string, e member.Entry) { got[key] = e.Value }); err != nil || !maps.Equal(got, want) {
			t.Errorf("Claims: %d claims, %v, want the %d of this prefix", len(got), err, len(want))
		}
		snap, err := s.Poll(t.Context(), keys, true)
		clear(got)
		for key, e := range snap.Claims {
			got[key] = e.Value
		}
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("Poll: %d claims, %v, want the %d that exist", len(got), err, len(want))
		}
	})
}

// set writes a key as another replica would have.
func (w *world) set(key, value string) {
	w.t.Helper()
	if err := w.m.DB(2).Set(key, value); err != nil {
		w.t.Fatal(err)
	}
}

// A member whose heartbeats have ended is gone with the next one of another, and after the
// last of them nothing is left.
func TestMembersEnd(t *testing.T) {
	patience := replicas.Pace(0).Patience()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, _ := w.store(t)
		beat := func(instance string) {
			t.Helper()
			if err := s.Beat(t.Context(), member.Beat{Instance: instance, Record: []byte("record of " + instance), Lasts: patience}); err != nil {
				t.Fatal(err)
			}
		}
		want := func(instances ...string) {
			t.Helper()
			snap, err := s.Poll(t.Context(), nil, true)
			if got := slices.Sorted(maps.Keys(snap.Members)); err != nil || !slices.Equal(got, instances) {
				t.Errorf("Poll has members %v, %v, want %v", got, err, instances)
			}
			for _, instance := range instances {
				if got := string(snap.Members[instance]); got != "record of "+instance {
					t.Errorf("the record of %s is %q", instance, got)
				}
			}
		}
		beat("DEADDEAD")
		time.Sleep(patience - time.Millisecond)
		beat("LIVELIVE")
		want("DEADDEAD", "LIVELIVE")
		time.Sleep(time.Millisecond)
		beat("LIVELIVE")
		want("LIVELIVE")
		time.Sleep(2 * patience)
		want()
		if left := w.m.DB(2).Keys(); len(left) > 0 {
			t.Errorf("the keys %v are left", left)
		}
	})
}

// A record ends by itself, also one that was to end before it was put.
func TestRecordsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newWorld(t).store(t)
		for _, ttl := range []time.Duration{time.Hour, time.Millisecond, 0, -time.Hour} {
			if err := s.Put(t.Context(), "4567", []byte("alice's"), ttl); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Get(t.Context(), "4567"); string(got) != "alice's" || err != nil {
				t.Errorf("Get of a record for %v = %q, %v", ttl, got, err)
			}
			time.Sleep(max(ttl, time.Millisecond))
			if got, err := s.Get(t.Context(), "4567"); !errors.Is(err, replicas.ErrNotFound) {
				t.Errorf("Get after %v = %q, %v, want ErrNotFound", ttl, got, err)
			}
			if got, err := s.Take(t.Context(), "4567"); !errors.Is(err, replicas.ErrNotFound) {
				t.Errorf("Take after %v = %q, %v, want ErrNotFound", ttl, got, err)
			}
		}
	})
}

// Changes are hinted at, and heartbeats are not. Where hints may have been missed there is one.
func TestHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, stall := w.store(t)
		by, _ := w.store(t)
		hinted := func() bool {
			synctest.Wait()
			select {
			case <-s.Changed():
				return true
			default:
				return false
			}
		}
		time.Sleep(replicas.Heartbeat)
		if !hinted() {
			t.Error("no hint when hints can be heard")
		}
		beat := func(news bool) {
			t.Helper()
			if err := by.Beat(t.Context(), member.Beat{Instance: "AAAAAAAA", Record: []byte("record"), Lasts: time.Minute, News: news}); err != nil {
				t.Fatal(err)
			}
		}
		if beat(false); hinted() {
			t.Error("a hint of a heartbeat")
		}
		if beat(true); !hinted() {
			t.Error("no hint of a member's news")
		}
		if _, err := by.Swap(t.Context(), "0123", member.Entry{}, "A 1"); err != nil || !hinted() {
			t.Errorf("no hint of a claim, %v", err)
		}
		if _, err := by.Swap(t.Context(), "0123", member.Entry{}, "B 1"); err != nil || hinted() {
			t.Errorf("a hint of a claim that stays, %v", err)
		}
		made := w.m.TotalConnectionCount()
		time.Sleep(5 * quiet)
		hinted() // the connection was tried, and each answer is a hint
		if n := w.m.TotalConnectionCount(); n != made {
			t.Errorf("%d connections were made in a quiet time", n-made)
		}
		if beat(true); !hinted() {
			t.Error("no hint after a quiet time")
		}

		made = w.m.TotalConnectionCount()
		stall(true)
		time.Sleep(2*quiet + patience)
		if beat(true); hinted() {
			t.Error("a hint on a connection that stalls")
		}
		stall(false)
		time.Sleep(reconnect.Max + 2*patience)
		if !hinted() {
			t.Error("no hint of what was missed")
		}
		if w.m.TotalConnectionCount() == made {
			t.Error("the connection that stalled was kept")
		}
	})
}

// What fails says so: nothing is taken for absent that could not be asked for.
func TestAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, stall := w.store(t)
		all := map[string]func(context.Context) error{
			"Beat": func(ctx context.Context) error {
				return s.Beat(ctx, member.Beat{Instance: "AAAAAAAA", Lasts: time.Second})
			},
			"Poll":   func(ctx context.Context) error { _, err := s.Poll(ctx, nil, true); return err },
			"Claims": func(ctx context.Context) error { return s.Claims(ctx, func(string, member.Entry) {}) },
			"Load":   func(ctx context.Context) error { _, err := s.Load(ctx, "0123"); return err },
			"Swap":   func(ctx context.Context) error { _, err := s.Swap(ctx, "0123", member.Entry{}, "A 1"); return err },
			"Put":    func(ctx context.Context) error { return s.Put(ctx, "4567", nil, time.Hour) },
			"Get":    func(ctx context.Context) error { _, err := s.Get(ctx, "4567"); return err },
			"Take":   func(ctx context.Context) error { _, err := s.Take(ctx, "4567"); return err },
		}
		fails := func(why string, within time.Duration) {
			t.Helper()
			for name, do := range all {
				began := time.Now()
				err := do(t.Context())
				if err == nil || errors.Is(err, replicas.ErrNotFound) || !strings.HasPrefix(err.Error(), "asking Redis: ") {
					t.Errorf("%s: %s = %v", why, name, err)
				}
				if took := time.Since(began); took > within {
					t.Errorf("%s: %s took %v, want at most %v", why, name, took, within)
				}
			}
		}
		stall(true)
		fails("stalled", 2*patience)
		stall(false)
		w.Stop()
		fails("away", patience)
		w.Start(false)
		if err := all["Put"](t.Context()); err != nil {
			t.Errorf("Put when it is back: %v", err)
		}
		w.m.RequireAuth("another")
		w.Stop()
		w.Start(false)
		fails("another password", patience)
	})
}
