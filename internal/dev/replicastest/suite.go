package replicastest

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// A World is a broker of any kind, and the engines of a test that use it.
type World interface {
	// Engine returns an engine that has not joined, and what stalls its connection to the
	// broker or has it go on. The test's end closes it.
	Engine(t *testing.T) (e replicas.Engine, stall func(bool))
	Stop()
	Start(empty bool) // with what it kept, unless it is to be empty
}

// Suite tests what each engine has to do. open returns a World whose broker runs, and is empty;
// in runs each test, as synctest.Test does; nil runs it as it is. Then whoever is back first after
// the broker was away may hold what a replica held that a busy machine has kept longer.
func Suite(t *testing.T, in func(*testing.T, func(*testing.T)), open func(t *testing.T) World) {
	virtual := in != nil
	if !virtual {
		in = func(t *testing.T, f func(*testing.T)) { f(t) }
	}
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, w World, r *room)
	}{
		{"the first holds", theFirstHolds},
		{"one that leaves is followed", leaving},
		{"one that stalls is followed, and yields", stalling},
		{"the engine is away", away},
		{"the engine is emptied", emptied},
		{"seizing", seizing},
		{"releasing", releasing},
		{"records", records},
		{"keeping", keeping},
		{"draining", draining},
		{"a heartbeat that is late", late},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				w := open(t)
				r := newRoom(t, w)
				if virtual {
					r.keeps, r.soon, r.dead = r.names[0], replicas.Heartbeat*9/10, replicas.MemberTTL+2*replicas.Heartbeat
				}
				tt.run(t, w, r)
			})
		})
	}
}

// recovery bounds what a broker on a busy machine needs. It is no promise.
const recovery = time.Minute

// A room has three replicas that know each other.
type room struct {
	e     [3]replicas.Engine
	stall [3]func(bool)
	names [3]string
	keeps string // who holds what the first held, after the broker was away or emptied
	// soon is how long a change may take that no heartbeat has to be waited for, and dead how long
	// it takes to notice who is silent. Only the clock of a test holds such times.
	soon, dead time.Duration
}

func newRoom(t *testing.T, w World) *room {
	t.Helper()
	r := &room{names: [3]string{"AAAAAAAA", "BBBBBBBB", "CCCCCCCC"}, soon: recovery, dead: recovery}
	for i, name := range r.names {
		r.e[i], r.stall[i] = w.Engine(t)
		if err := r.e[i].Join(t.Context(), replicas.Replica{Instance: name, Addr: "10.0.0.1:2528", Version: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range r.e {
		within(t, recovery, "three members", func() bool { return len(e.View().Members) == 3 && e.View().Fresh(time.Now()) })
	}
	return r
}

// within waits for a condition.
func within(t *testing.T, d time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(d); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, d)
		}
	}
}

// claim claims a name, again where the broker was away for a moment: a busy machine's is.
func (r *room) claim(t *testing.T, i int, name string) replicas.Claim {
	t.Helper()
	for end := time.Now().Add(recovery); ; time.Sleep(replicas.Heartbeat / 10) {
		c, err := r.e[i].Claim(t.Context(), name)
		if err == nil {
			return c
		}
		if !errors.Is(err, replicas.ErrAway) || time.Now().After(end) {
			t.Errorf("Claim of %s: %v", r.names[i], err)
			return c
		}
	}
}

func (r *room) claimAll(t *testing.T, name string) {
	t.Helper()
	for i := range r.e {
		if c := r.claim(t, i, name); c.Holder.Instance != r.names[0] || c.Epoch != 1 {
			t.Fatalf("%s: the claim is %+v, want that of %s, epoch 1", r.names[i], c, r.names[0])
		}
	}
}

// agree reports whether these replicas know the same holder, of an epoch at least.
func (r *room) agree(name, holder string, epoch uint64, of ...int) bool {
	for _, i := range of {
		c, ok := r.e[i].Holder(name)
		if !ok || c.Epoch < epoch || holder != "" && c.Holder.Instance != holder {
			return false
		}
		holder = c.Holder.Instance
	}
	return true
}

func theFirstHolds(t *testing.T, _ World, r *room) {
	r.claimAll(t, "profile")
	if !r.agree("profile", r.names[0], 1, 0, 1, 2) {
		t.Error("the replicas do not agree on the holder")
	}
	var wg sync.WaitGroup
	var held atomic.Int32
	for i := range r.e {
		wg.Go(func() {
			if c := r.claim(t, i, "contended"); c.Holder.Instance == r.names[i] {
				held.Add(1)
			}
		})
	}
	wg.Wait()
	if held.Load() != 1 {
		t.Errorf("%d replicas hold one name, want one", held.Load())
	}
}

func leaving(t *testing.T, _ World, r *room) {
	r.claimAll(t, "profile")
	changed := r.e[1].View().Changed
	if err := r.e[0].Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	within(t, r.soon, "another holder", func() bool { return r.agree("profile", "", 2, 1, 2) })
	select {
	case <-changed:
	default:
		t.Error("Changed is open")
	}
	if n := len(r.e[1].View().Members); n != 2 {
		t.Errorf("%d members, want 2", n)
	}
}

func stalling(t *testing.T, _ World, r *room) {
	r.claimAll(t, "profile")
	r.stall[0](true)
	within(t, r.dead, "another holder", func() bool { return r.agree("profile", "", 2, 1, 2) })
	c, _ := r.e[1].Holder("profile")
	time.Sleep(2 * replicas.Heartbeat)
	r.stall[0](false)
	within(t, recovery, "yielding", func() bool { return r.agree("profile", c.Holder.Instance, 2, 0, 1, 2) })
	within(t, recovery, "three members", func() bool { return len(r.e[1].View().Members) == 3 })
}

func away(t *testing.T, w World, r *room) {
	r.claimAll(t, "profile")
	w.Stop()
	within(t, recovery, "noticing", func() bool { return !r.e[1].View().Away.IsZero() })
	if v := r.e[1].View(); v.Fresh(time.Now()) || len(v.Members) != 3 || !r.agree("profile", r.names[0], 1, 0, 1, 2) {
		t.Errorf("what was known does not stand: %+v", v)
	}
	if _, err := r.e[1].Claim(t.Context(), "another"); !errors.Is(err, replicas.ErrAway) {
		t.Errorf("Claim = %v, want ErrAway", err)
	}
	time.Sleep(2 * replicas.MemberTTL)
	w.Start(false)
	within(t, recovery, "coming back", func() bool {
		v := r.e[1].View()
		return v.Away.IsZero() && v.Fresh(time.Now()) && len(v.Members) == 3
	})
	within(t, recovery, "the holder, and the name that was wanted meanwhile", func() bool {
		return r.agree("profile", r.keeps, 1, 0, 1, 2) && r.agree("another", r.names[1], 1, 1)
	})
}

func emptied(t *testing.T, w World, r *room) {
	r.claimAll(t, "profile")
	w.Stop()
	w.Start(true)
	within(t, recovery, "claiming again", func() bool { return r.agree("profile", r.keeps, 2, 0, 1, 2) })
	for _, e := range r.e {
		within(t, recovery, "three members", func() bool { return len(e.View().Members) == 3 && e.View().Fresh(time.Now()) })
	}
	late, _ := w.Engine(t)
	if err := late.Join(t.Context(), replicas.Replica{Instance: "DDDDDDDD", Addr: "10.0.0.4:2528"}); err != nil {
		t.Fatal(err)
	}
	within(t, recovery, "four members", func() bool { return len(late.View().Members) == 4 && len(r.e[0].View().Members) == 4 })
}

func seizing(t *testing.T, _ World, r *room) {
	first := r.claim(t, 0, "profile")
	r.claim(t, 1, "profile")
	if c, err := r.e[1].Seize(t.Context(), "profile", first); err != nil || c.Holder.Instance != r.names[1] || c.Epoch != 2 {
		t.Fatalf("Seize = %+v, %v", c, err)
	}
	within(t, 2*time.Second, "yielding", func() bool { return r.agree("profile", r.names[1], 2, 0, 1) })
	if c, err := r.e[2].Seize(t.Context(), "profile", first); err != nil || c.Holder.Instance != r.names[1] {
		t.Errorf("Seize from a former holder = %+v, %v", c, err)
	}
}

func releasing(t *testing.T, _ World, r *room) {
	r.claim(t, 0, "profile")
	r.claim(t, 1, "profile")
	r.e[0].Release("profile")
	within(t, recovery, "another holder", func() bool { return r.agree("profile", r.names[1], 1, 1) })
	r.e[1].Release("profile")
	within(t, recovery, "a name that nobody holds", func() bool {
		c, err := r.e[2].Claim(t.Context(), "profile")
		defer r.e[2].Release("profile")
		return err == nil && c.Holder.Instance == r.names[2]
	})
}

func records(t *testing.T, _ World, r *room) {
	ctx := t.Context()
	if err := r.e[0].Put(ctx, "session", []byte("record"), time.Minute); err != nil {
		t.Fatal(err)
	}
	if got, err := r.e[1].Get(ctx, "session"); err != nil || string(got) != "record" {
		t.Errorf("Get = %q, %v", got, err)
	}
	var wg sync.WaitGroup
	var taken atomic.Int32
	for range 4 {
		for _, e := range r.e {
			wg.Go(func() {
				switch got, err := e.Take(ctx, "session"); {
				case err == nil && string(got) == "record":
					taken.Add(1)
				case !errors.Is(err, replicas.ErrNotFound):
					t.Errorf("Take = %q, %v", got, err)
				}
			})
		}
	}
	wg.Wait()
	if taken.Load() != 1 {
		t.Errorf("a record was taken %d times, want once", taken.Load())
	}
	if err := r.e[0].Put(ctx, "brief", []byte("record"), 300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	time.Sleep(400 * time.Millisecond)
	if _, err := r.e[1].Get(ctx, "brief"); !errors.Is(err, replicas.ErrNotFound) {
		t.Errorf("Get after the record's end = %v, want ErrNotFound", err)
	}
	if err := r.e[0].Put(ctx, "large", make([]byte, replicas.MaxRecord), time.Minute); err != nil {
		t.Errorf("Put of the largest record: %v", err)
	}
	if got, err := r.e[2].Take(ctx, "large"); err != nil || len(got) != replicas.MaxRecord {
		t.Errorf("Take of the largest record: %d bytes, %v", len(got), err)
	}
}

// keeping replaces what is kept by its version, of which each counts once among all replicas.
func keeping(t *testing.T, _ World, r *room) {
	ctx := t.Context()
	at := func(i int) replicas.Keeper { return r.e[i] }
	if record, version, err := at(0).Kept(ctx, "pins"); len(record) != 0 || version != "" || err != nil {
		t.Errorf("Kept of nothing = %q, %q, %v", record, version, err)
	}
	var wg sync.WaitGroup
	var done atomic.Int32
	replace := func(version string, record []byte) {
		for i := range r.e {
			for range 3 {
				wg.Go(func() {
					switch now, err := at(i).Keep(ctx, "pins", version, record); {
					case err != nil:
						t.Errorf("Keep: %v", err)
					case now != "":
						done.Add(1)
					}
				})
			}
		}
		wg.Wait()
	}
	version := ""
	for n, record := range [][]byte{[]byte("first"), []byte("second"), make([]byte, replicas.MaxRecord)} {
		replace(version, record)
		got, now, err := at(n%3).Kept(ctx, "pins")
		if int(done.Load()) != n+1 || len(got) != len(record) || string(got) != string(record) || now == version || err != nil {
			t.Fatalf("round %d: replaced %d times in all; Kept = %d bytes, %q, %v", n, done.Load(), len(got), now, err)
		}
		version = now
	}
	if _, err := at(0).Keep(ctx, "pins", version, make([]byte, replicas.MaxRecord+1)); !errors.Is(err, replicas.ErrTooLarge) {
		t.Errorf("Keep of what is too large: %v", err)
	}
	discarding(t, r)
}

// discarding keeps much, and lists and discards it.
func discarding(t *testing.T, r *room) {
	ctx := t.Context()
	want := make(map[string]bool)
	for i := range 20 {
		record := "record " + strconv.Itoa(i)
		want[record] = true
		if now, err := r.e[i%2].Keep(ctx, "login "+strconv.Itoa(i), "", []byte(record)); err != nil || now == "" {
			t.Fatalf("Keep = %q, %v", now, err)
		}
	}
	all := func(of replicas.Engine) map[string]bool {
		got := make(map[string]bool)
		each := func(record []byte) { got[string(record)] = len(record) < replicas.MaxRecord } // which keeping has kept
		if err := of.EachKept(ctx, each); err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(got, func(_ string, short bool) bool { return !short })
		return got
	}
	within(t, recovery, "listing all that is kept", func() bool { return maps.Equal(all(r.e[2]), want) })
	for range 2 { // the second time it is not there
		if err := r.e[0].Discard(ctx, "login 1"); err != nil {
			t.Errorf("Discard: %v", err)
		}
	}
	delete(want, "record 1")
	if record, version, err := r.e[1].Kept(ctx, "login 1"); len(record) != 0 || version != "" || err != nil {
		t.Errorf("Kept after Discard = %q, %q, %v", record, version, err)
	}
	within(t, recovery, "listing without what was discarded", func() bool { return maps.Equal(all(r.e[0]), want) })
	if now, err := r.e[2].Keep(ctx, "login 1", "", []byte("again")); err != nil || now == "" {
		t.Errorf("Keep after Discard = %q, %v", now, err)
	}
}

func draining(t *testing.T, _ World, r *room) {
	self := r.e[0].View().Self
	self.Draining = true
	r.e[0].Update(self)
	within(t, r.soon, "hearing of it", func() bool {
		got, ok := r.e[1].View().Member(self.Instance)
		return ok && got.Draining
	})
	if err := r.e[0].Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// What others have written for a replica may arrive in any order: the latest stays.
func late(t *testing.T, w World, r *room) {
	const another = "DDDDDDDD"
	for i, record := range []string{
		`{"addr":"10.0.0.4:2528","version":"first","beat":10}`,
		`{"addr":"10.0.0.4:2528","version":"latest","draining":true,"beat":12}`,
		`{"addr":"10.0.0.4:2528","version":"late","beat":11}`,
	} {
		within(t, recovery, "writing it", func() bool { return r.e[i].TellFor(t.Context(), another, []byte(record)) == nil })
	}
	e, _ := w.Engine(t)
	if err := e.Join(t.Context(), replicas.Replica{Instance: "EEEEEEEE", Addr: "10.0.0.5:2528"}); err != nil {
		t.Fatal(err)
	}
	within(t, recovery, "hearing of it", func() bool { return e.View().Fresh(time.Now()) && len(e.View().Members) > 3 })
	if got, ok := e.View().Member(another); !ok || got.Version != "latest" || !got.Draining {
		t.Errorf("who joins hears %+v, %v; want the latest", got, ok)
	}
}
