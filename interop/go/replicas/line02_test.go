package replicas

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// TestLine02Resumption: a GET stream at one replica, calls at another, a cut, and resumption
// by Last-Event-ID at the third: the same events, none twice.
func TestLine02Resumption(t *testing.T) {
	beside(t)
	over(t, []string{nats, redis, peers}, func(t *testing.T, engine string) {
		beside(t)
		w := newWorld(t, setup{engine: engine})
		for _, f := range []*fixture{w.legacy, w.modern} {
			for holder := range w.replicas {
				a, b, c := w.replicas[holder], w.replicas[(holder+1)%3], w.replicas[(holder+2)%3]
				t.Run(fmt.Sprintf("%s held by %s", f.name, a.name), func(t *testing.T) {
					w.resumes(t, f, a, a, b, c)
					w.resumes(t, f, a, b, c, a)
					w.resumes(t, f, a, b, a, c)
					w.resumesCall(t, f, a, b, c)
				})
			}
		}
	})
}

// resumes has a session at holder, with its stream at one replica, calls at another, and
// the stream's continuation at a third.
func (w *world) resumes(t *testing.T, f *fixture, holder, at, calls, then *replica) {
	t.Helper()
	rounds := size(3, 20)
	s := w.mustOpen(holder, f.name, nil)
	defer s.end(t.Context(), calls)
	events, err := s.follow(at, "")
	if err != nil {
		t.Fatalf("the stream at %s: %v", at.name, err)
	}
	for i := range 30 {
		if a := s.subscribe(t.Context(), []*replica{calls, then}[i%2], f.item(i)); a.problem() != "" {
			t.Fatalf("subscribe at %s: %s", calls.name, a.problem())
		}
	}
	seen := make(map[string]bool) // ids of events
	told := make(map[string]int)  // per URI
	for round := range rounds {
		f.touch(f.list(10)...) // heard before the cut
		for i := range 10 {
			if _, err := events.find(recovery, f.item(i)); err != nil {
				t.Fatal(err)
			}
		}
		events.close()
		count(t, events, seen, told, f)
		f.touch(f.list(30)[10:20]...) // nobody reads
		last := events.all()[len(events.all())-1].id
		if at, then = then, at; round%2 == 1 {
			time.Sleep(20 * time.Millisecond) // sometimes the holder knows of the cut, sometimes it doesn't
		}
		if events, err = s.follow(at, last); err != nil {
			t.Fatalf("resumption at %s: %v", at.name, err)
		}
		f.touch(f.list(30)[20:]...)
		for i := 10; i < 30; i++ { // in any order
			if _, err := events.find(recovery, f.item(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	events.close()
	count(t, events, seen, told, f)
	for i := range 30 {
		// A modern server may tell twice, on streams that overlap for a while.
		if n := told[f.item(i)]; n < rounds || n > rounds && f == w.legacy {
			t.Errorf("%s: %d updates of %s, want %d", t.Name(), n, f.item(i), rounds)
		}
	}
}

// count takes in what came on a stream. No event comes twice.
func count(t *testing.T, events *feed, seen map[string]bool, told map[string]int, f *fixture) {
	t.Helper()
	for _, e := range events.all() {
		if e.id == "" || seen[e.id] {
			t.Errorf("event %q came twice, or has no id: %s", e.id, e.data)
		}
		seen[e.id] = true
	}
	for i := range 30 {
		told[f.item(i)] += len(events.with(`"` + f.item(i) + `"`))
	}
}

// resumesCall cuts the stream of a call, whose result comes at another replica.
func (w *world) resumesCall(t *testing.T, f *fixture, holder, at, then *replica) {
	t.Helper()
	s := w.mustOpen(holder, f.name, nil)
	defer s.end(t.Context(), at)
	events, id, err := s.begin(at, "tools/call", `{"name":"wait","arguments":{"nonce":"resumed","ms":400},"_meta":{"progressToken":7}}`)
	if err != nil {
		t.Fatal(err)
	}
	first, err := events.find(recovery, "notifications/progress")
	if err != nil || first.id == "" {
		t.Fatalf("progress %+v: %v", first, err)
	}
	events.close()
	if len(events.with("waited")) > 0 { // this process had no processor for as long as the call takes
		w.resumesCall(t, f, holder, at, then)
		return
	}
	all := events.all()
	rest, err := s.follow(then, all[len(all)-1].id)
	if err != nil {
		t.Fatalf("resumption at %s: %v", then.name, err)
	}
	defer rest.close()
	if _, err := rest.find(recovery, fmt.Sprintf(`"id":%d`, id), "waited"); err != nil {
		t.Errorf("the result of a call: %v", err)
	}
	seen := make(map[string]bool)
	for _, e := range append(all, rest.all()...) {
		if seen[e.data] {
			t.Errorf("came twice: %s", e.data)
		}
		seen[e.data] = true
	}
	if status := s.end(t.Context(), then); status != http.StatusOK && status != http.StatusNoContent && status != http.StatusAccepted {
		t.Errorf("DELETE at %s = %d", then.name, status)
	}
	if a := s.mark(t.Context(), at, "ended"); a.status != http.StatusNotFound || a.code != -32001 {
		t.Errorf("a call of the ended session at %s = %d %s, want 404 and -32001", at.name, a.status, a.text)
	}
}
