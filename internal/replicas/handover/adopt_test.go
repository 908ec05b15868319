package handover

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
)

// A session for which there is no room stays with its replica.
func TestServeRefusesTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, "AAAAAAAA")
		a, b := rig.by["AAAAAAAA"], rig.add("BBBBBBBB", legacyfront.Options{Limits: limits.Set{"client_sessions": 1}})
		rig.settle()
		id := a.open(t, "1AAAAAAAA-1")
		own := b.open(t, "1BBBBBBBB-1")
		inUse, _ := b.front.Hold(string(own), alice)
		rig.drain(a)
		<-a.leave(t, atEnd())
		if !a.has(id) || b.has(id) || !b.has(own) {
			t.Error("want each session where it was")
		}
		b.counted(t, "refusedfull", maxFailures)
		inUse()
	})
}

// A replica whose server keeps something of sessions, or is not known well enough, takes none.
func TestServeRefusesStateful(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		id := a.open(t, "1AAAAAAAA-1")
		b.stateful = true
		rig.drain(a)
		<-a.leave(t, atEnd())
		if !a.has(id) || b.has(id) {
			t.Error("the session has gone on where a server keeps something of it")
		}
		b.counted(t, "refusedstateful", maxFailures)
		b.counted(t, "taken", 0)
		a.counted(t, "failedrefused", maxFailures)
		if n := b.logs.Count("client sessions of another replica refused"); n != 1 {
			t.Errorf("%d log lines, want 1", n)
		}
	})
}

// One session that can't be read is no reason to refuse the others.
func TestServeTakesTheOthers(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		w := httptest.NewRecorder()
		body := `{"sessions":[{"id":"1AAAAAAAA-1","net":"everything"},{"id":"1AAAAAAAA-2","principal":"alice","revision":"2025-11-25"}]}`
		b.Serve(w, httptest.NewRequest(http.MethodPost, Path+serverName, strings.NewReader(body)), a.name, b.server())
		if got := w.Body.String(); w.Code != 200 || !strings.HasPrefix(got, `{"refused":["`) || !strings.HasSuffix(got, `",""]}`) || strings.Contains(got, `["",`) {
			t.Errorf("the receipt is %d %s", w.Code, got)
		}
		if b.has("1AAAAAAAA-1") || !b.has("1AAAAAAAA-2") || len(b.took) != 1 {
			t.Error("want the second session alone")
		}
		b.counted(t, "refusedmalformed", 1)
		b.counted(t, "taken", 1)
	})
}

// What is no parcel is refused as a whole.
func TestServeMalformed(t *testing.T) {
	one := `{"id":"1AAAAAAAA-1","principal":"alice","revision":"2025-11-25"}`
	for name, tc := range map[string]struct{ method, body string }{
		"GET":       {http.MethodGet, `{"sessions":[` + one + `]}`},
		"no JSON":   {http.MethodPost, `{"sessions":[` + one},
		"too many":  {http.MethodPost, `{"sessions":[` + strings.Repeat(one+",", maxBatch) + one + `]}`},
		"too large": {http.MethodPost, `{"sessions":[` + one + `]` + strings.Repeat(" ", maxParcel) + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, _ *rig, a, b *replica) {
				w := httptest.NewRecorder()
				b.Serve(w, httptest.NewRequest(tc.method, Path+serverName, strings.NewReader(tc.body)), a.name, b.server())
				if w.Code != http.StatusBadRequest || b.front.Sessions() != 0 {
					t.Errorf("%d, and %d sessions; want 400 and none", w.Code, b.front.Sessions())
				}
			})
		})
	}
}

// A place is known for as long as the session lasts, and not longer.
func TestRecordsAreRenewed(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		c := rig.add("CCCCCCCC", legacyfront.Options{})
		a.heir = b.name
		id := a.open(t, "1AAAAAAAA-1")
		rig.drain(a)
		<-a.leave(t, atEnd())
		stay, _ := b.front.Hold(string(id), alice)
		time.Sleep(5 * recordTTL)
		c.Forget(string(id))
		if at := c.found(t, id); at != b.name {
			t.Errorf("after %v it is at %q, want b", 5*recordTTL, at)
		}
		stay()
		time.Sleep(legacyfront.DefaultSessionIdle + 2*look)
		c.Forget(string(id))
		if at := c.found(t, id); at != "" || b.has(id) {
			t.Errorf("after its end it is at %q", at)
		}
		b.Group.mu.Lock()
		defer b.Group.mu.Unlock()
		if n := len(b.Group.adopted); n != 0 {
			t.Errorf("%d sessions are remembered", n)
		}
	})
}

// An engine that forgets, and one that loses the last record alone, are told the place again.
func TestRecordsThatAreLost(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		c := rig.add("CCCCCCCC", legacyfront.Options{})
		rig.settle()
		a.heir = b.name
		first, second := a.open(t, "1AAAAAAAA-1"), a.open(t, "1AAAAAAAA-2")
		rig.drain(a)
		<-a.leave(t, atEnd())
		if _, err := c.engine.Take(t.Context(), keyOf(string(second))); err != nil {
			t.Fatal(err)
		}
		want := func(when string) {
			t.Helper()
			time.Sleep(2*look + sameFor)
			for _, id := range []legacyfront.SessionID{first, second} {
				c.Forget(string(id))
				if at := c.found(t, id); at != b.name {
					t.Errorf("%s session %s is at %q, want b", when, id, at)
				}
			}
		}
		want("after one record was lost")
		rig.broker.Empty()
		want("after all were forgotten")
	})
}

// A place that could not be recorded is recorded once the engine is there.
func TestRecordsWhileTheEngineIsAway(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		c := rig.add("CCCCCCCC", legacyfront.Options{})
		rig.settle()
		a.heir = b.name
		id := a.open(t, "1AAAAAAAA-1")
		rig.drain(a)
		b.engine.SetAway(true)
		time.Sleep(100 * time.Millisecond)
		<-a.leave(t, atEnd())
		if !b.has(id) {
			t.Fatal("the session was not handed over")
		}
		if at := c.found(t, id); at != "" {
			t.Fatalf("it is at %q though nothing was recorded", at)
		}
		if n := b.logs.Count("other replicas can't find sessions that go on here, trying again"); n != 1 {
			t.Errorf("that was logged %d times, want once", n)
		}
		b.engine.SetAway(false)
		time.Sleep(2*look + sameFor)
		if at := c.found(t, id); at != b.name {
			t.Errorf("once the engine is there it is at %q, want b", at)
		}
	})
}

// Two rolls in a row: the one in the middle neither renews nor deletes what the last records.
func TestHandedOnTwice(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		c, d := rig.add("CCCCCCCC", legacyfront.Options{}), rig.add("DDDDDDDD", legacyfront.Options{})
		rig.settle()
		a.heir, b.heir = b.name, c.name
		id := a.open(t, "1AAAAAAAA-1")
		rig.drain(a)
		<-a.leave(t, atEnd())
		rig.drain(b)
		<-b.leave(t, atEnd())
		stay, _ := c.front.Hold(string(id), alice)
		defer stay()
		time.Sleep(2*renewEvery + 2*look) // b has not forgotten the time
		d.Forget(string(id))
		if at := d.found(t, id); at != c.name {
			t.Errorf("it is at %q, want c", at)
		}
	})
}

// A session that could not be handed on is recorded here again: the other may have put its own
// record before it failed.
func TestRegained(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		c, d := rig.add("CCCCCCCC", legacyfront.Options{}), rig.add("DDDDDDDD", legacyfront.Options{})
		rig.settle()
		a.heir, b.heir = b.name, c.name
		id := a.open(t, "1AAAAAAAA-1")
		rig.drain(a)
		<-a.leave(t, atEnd())
		c.answer = func(w http.ResponseWriter, _ *http.Request) error {
			if err := c.engine.Put(t.Context(), keyOf(string(id)), []byte(`{"at":"CCCCCCCC"}`), recordTTL); err != nil {
				t.Error(err)
			}
			return errors.New("connection reset")
		}
		rig.drain(b)
		<-b.leave(t, atEnd())
		if !b.has(id) {
			t.Fatal("the session is not back")
		}
		time.Sleep(2 * look)
		d.Forget(string(id))
		if at := d.found(t, id); at != b.name {
			t.Errorf("it is at %q, want b", at)
		}
	})
}

// A stumbling engine fails the first attempts to put something.
type stumbling struct {
	replicas.Engine
	left atomic.Int32
}

func (e *stumbling) Put(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	if e.left.Add(-1) >= 0 {
		return errors.New("the engine is slow")
	}
	return e.Engine.Put(ctx, key, value, ttl)
}

// stumblingAt has a session of a handed over to b, whose first attempts to record its place fail.
func stumblingAt(t *testing.T, rig *rig, a, b *replica, failures int32) (id legacyfront.SessionID, done <-chan struct{}) {
	slow := &stumbling{Engine: b.engine}
	b.Close()
	b.Group = rig.group(b, slow)
	id = a.open(t, "1AAAAAAAA-1")
	slow.left.Store(failures)
	rig.drain(a)
	return id, a.leave(t, atEnd())
}

// placedAt wants the engine to have the place of a session.
func (r *replica) placedAt(t *testing.T, id legacyfront.SessionID, where string) {
	t.Helper()
	if text, err := r.engine.Get(t.Context(), keyOf(string(id))); err != nil || !strings.Contains(string(text), where) {
		t.Errorf("the engine has %s, %v, want that the session is at %s", text, err, where)
	}
}

// The receipt waits until others can find a session, since its former replica is about to end.
func TestReceiptWaitsForTheRecord(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		id, done := stumblingAt(t, rig, a, b, 3)
		<-done
		a.placedAt(t, id, b.name)
	})
}

// The place of a session that was handed on meanwhile is another replica's to record.
func TestPlaceOfASessionThatWasHandedOn(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		id, done := stumblingAt(t, rig, a, b, 2)
		synctest.Wait() // it is there, and its place could not be recorded
		if b.forget([]record{{ID: string(id)}})[0] == nil {
			t.Fatal("the session is not there")
		}
		if err := a.engine.Put(t.Context(), keyOf(string(id)), []byte(`{"at":"CCCCCCCC"}`), recordTTL); err != nil {
			t.Fatal(err)
		}
		<-done
		a.placedAt(t, id, "CCCCCCCC")
	})
}
