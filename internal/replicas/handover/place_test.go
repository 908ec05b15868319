package handover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// record puts the place of a session, as who goes on with it does.
func (r *replica) recordPlace(t *testing.T, id, at string) {
	t.Helper()
	text, err := json.Marshal(placeRecord{at})
	if err == nil {
		err = r.engine.Put(t.Context(), keyOf(id), text, recordTTL)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The engine is asked once for a session, as long as who has it lives and goes on to.
func TestFindAsksOnce(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		b.recordPlace(t, "1ZZZZZZZZ-1", b.name)
		for range 100 {
			if at := a.found(t, "1ZZZZZZZZ-1"); at != b.name {
				t.Fatalf("it is at %q, want b", at)
			}
			time.Sleep(time.Minute)
		}
		if n := rig.broker.Reads(); n != 1 {
			t.Errorf("the engine was asked %d times, want once", n)
		}
		rig.drain(b)
		a.recordPlace(t, "1ZZZZZZZZ-1", a.name)
		if at := a.found(t, "1ZZZZZZZZ-1"); at != a.name {
			t.Errorf("once b is draining it is at %q, want a", at)
		}
	})
}

// That nobody has a session stands for a second, or until a replica comes or goes.
func TestFindNobody(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		for range 10 {
			if at := a.found(t, "1ZZZZZZZZ-1"); at != "" {
				t.Fatalf("it is at %q, want nobody", at)
			}
		}
		if n := rig.broker.Reads(); n != 1 {
			t.Errorf("the engine was asked %d times, want once", n)
		}
		b.recordPlace(t, "1ZZZZZZZZ-1", b.name)
		time.Sleep(sameFor - time.Millisecond)
		if at := a.found(t, "1ZZZZZZZZ-1"); at != "" {
			t.Errorf("before a second is over it is at %q", at)
		}
		time.Sleep(time.Millisecond)
		if at := a.found(t, "1ZZZZZZZZ-1"); at != b.name {
			t.Errorf("after a second it is at %q, want b", at)
		}
		if at := a.found(t, "1ZZZZZZZZ-2"); at != "" {
			t.Errorf("another is at %q", at)
		}
		b.recordPlace(t, "1ZZZZZZZZ-2", b.name)
		self := b.engine.View().Self
		self.Version = "another"
		b.engine.Update(self)
		time.Sleep(sameFor / 2)
		if at := a.found(t, "1ZZZZZZZZ-2"); at != b.name {
			t.Errorf("after a change of the replicas it is at %q, want b", at)
		}
	})
}

// The ids of sessions grant access: the engine does not get them.
func TestKeysAreDigests(t *testing.T) {
	bubble(t, func(t *testing.T, _ *rig, a, b *replica) {
		if replicas.Key(keyOf("x")) == "x" || keyOf("x") == keyOf("y") {
			t.Error("a key tells the id, or is another's")
		}
	})
}

// While the engine is away it is not known who has a session; without records nobody has.
func TestFindUnknown(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		a.engine.SetAway(true)
		for patient, want := range map[bool]time.Duration{false: 0, true: findPatience} {
			begun := time.Now()
			if at, err := a.Find(t.Context(), "1ZZZZZZZZ-1", patient); at != "" || !errors.Is(err, ErrUnknown) || time.Since(begun) != want {
				t.Errorf("Find = %q, %v after %v, want ErrUnknown after %v", at, err, time.Since(begun), want)
			}
		}
		b.recordPlace(t, "1ZZZZZZZZ-1", b.name)
		a.engine.SetAway(false)
		rig.settle()
		if at := a.found(t, "1ZZZZZZZZ-1"); at != b.name {
			t.Errorf("once it is there it is at %q, want b: that it was unknown must not stay", at)
		}
		g := rig.group(a, noRecords{a.engine})
		defer g.Close()
		if at, err := g.Find(t.Context(), "1ZZZZZZZZ-1", false); at != "" || err != nil {
			t.Errorf("Find without records = %q, %v, want nobody", at, err)
		}
	})
}

// Where nobody else could say who has a session, an engine that is away for a moment is waited for.
func TestFindWaitsForTheEngine(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		b.recordPlace(t, "1ZZZZZZZZ-1", b.name)
		a.engine.SetAway(true)
		back := time.AfterFunc(2*time.Second, func() { a.engine.SetAway(false) })
		defer back.Stop()
		begun := time.Now()
		at, err := a.Find(t.Context(), "1ZZZZZZZZ-1", true)
		if took := time.Since(begun); at != b.name || err != nil || took < 2*time.Second {
			t.Errorf("Find = %q, %v after %v, want b once the engine is there", at, err, took)
		}
	})
}

// Who waits for the engine to be back keeps nobody else from asking it.
func TestFindWaitsOutsideTheBound(t *testing.T) {
	bubble(t, func(t *testing.T, rig *rig, a, b *replica) {
		a.engine.SetAway(true)
		var all sync.WaitGroup
		for n := range maxAsking {
			all.Go(func() { _, _ = a.Find(context.Background(), fmt.Sprint("1ZZZZZZZZ-", n), true) })
		}
		time.Sleep(time.Second + time.Millisecond)
		begun := time.Now()
		if _, err := a.Find(t.Context(), "1ZZZZZZZZ-more", false); !errors.Is(err, ErrUnknown) || time.Since(begun) > 0 {
			t.Errorf("Find = %v after %v, want ErrUnknown at once", err, time.Since(begun))
		}
		all.Wait()
	})
}

// A record that can't be read is no reason to say that nobody has the session; what a later
// version adds is skipped.
func TestFindReadsRecords(t *testing.T) {
	bubble(t, func(t *testing.T, _ *rig, a, b *replica) {
		for id, tc := range map[string]struct {
			record, want string
			err          error
		}{
			"1ZZZZZZZZ-1": {`{"at":`, "", ErrUnknown},
			"1ZZZZZZZZ-2": {`{"at":"BBBBBBBB","later":1}`, b.name, nil},
		} {
			if err := b.engine.Put(t.Context(), keyOf(id), []byte(tc.record), recordTTL); err != nil {
				t.Fatal(err)
			}
			if at, err := a.Find(t.Context(), id, false); at != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("Find(%s) = %q, %v, want %q, %v", id, at, err, tc.want, tc.err)
			}
		}
	})
}

// At most 64 sessions are looked for at the same time; another one waits a second.
func TestFindIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, _ *rig, a, _ *replica) {
		stop := make(chan struct{})
		g := a.Group
		g.opts.Engine = stuck{a.engine, stop}
		var all sync.WaitGroup
		for n := range maxAsking {
			all.Go(func() { _, _ = g.Find(context.Background(), fmt.Sprint("1ZZZZZZZZ-", n), false) })
		}
		time.Sleep(time.Millisecond)
		begun := time.Now()
		if _, err := g.Find(t.Context(), "1ZZZZZZZZ-more", false); !errors.Is(err, ErrUnknown) || time.Since(begun) != findTimeout {
			t.Errorf("Find = %v after %v, want ErrUnknown after %v", err, time.Since(begun), findTimeout)
		}
		close(stop)
		all.Wait()
	})
}

// stuck is an engine whose records take as long as the test wants, whatever ctx says.
type stuck struct {
	replicas.Engine
	stop chan struct{}
}

func (s stuck) Get(context.Context, string) ([]byte, error) {
	<-s.stop
	return nil, replicas.ErrNotFound
}
