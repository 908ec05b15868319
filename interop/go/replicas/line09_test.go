package replicas

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// TestLine09Kept: whoever hears of a change at one replica and reads at another, where
// results are kept, never has the old value.
func TestLine09Kept(t *testing.T) {
	tries := size(300, 10_000)
	beside(t)
	over(t, both, func(t *testing.T, engine string) {
		beside(t)
		w := newWorld(t, setup{engine: engine, warn: true, server: `, cache: {resources/read: {ttl: 10m, scope: public, keep: true}}`})
		f := w.legacy // a modern server says itself what may be kept
		uri := f.item(1)
		var streams []*stream
		for _, r := range w.replicas { // one after the other, so that there is an owner
			streams = append(streams, w.mustListen(r, f.name, uri))
		}
		w.wantKept(t, f, uri)
		begun, hits := time.Now(), w.hits()
		for i := range tries {
			w.hearAndRead(t, f, uri, streams, i%3, w.replicas[(i+1+i/3%2)%3])
		}
		// Each value is read twice at a replica, so that it was kept there, unless a second
		// word of the change came in between.
		n := w.hits() - hits
		if n < float64(tries)/2 {
			t.Errorf("%v results came from a cache, want %d at least", n, tries/2)
		}
		t.Logf("%d changes heard at one replica and read at another, %v each; %v results came from a cache", tries, (time.Since(begun) / time.Duration(tries)).Round(10*time.Microsecond), n)
	})
}

// hits counts what came from the caches of all replicas.
func (w *world) hits() (n float64) {
	for _, r := range w.replicas {
		for name, v := range r.gauges() {
			if strings.HasPrefix(name, "mcpbridge_cache_requests_total{") && strings.Contains(name, `outcome="hit"`) {
				n += v
			}
		}
	}
	return n
}

// wantKept waits until each replica answers from its cache: one that has just joined does
// not, until all have surely heard of it.
func (w *world) wantKept(t *testing.T, f *fixture, uri string) {
	t.Helper()
	rig.Until(t, recovery, "results are kept", func() string {
		before := w.hits()
		for _, r := range w.replicas {
			if a := w.read(t, f, uri, r); a.problem() != "" {
				t.Fatal(a.problem())
			}
		}
		if n := w.hits() - before; n < float64(len(w.replicas)) {
			return fmt.Sprintf("%v of %d replicas answer from the cache", n, len(w.replicas))
		}
		return ""
	})
}

func (w *world) read(t *testing.T, f *fixture, uri string, at *replica) answer {
	return w.ask(t.Context(), at.url(f.name), "resources/read", uri, fmt.Sprintf(`"uri":%q`, uri), nil)
}

// hearAndRead changes a resource, and reads it at a replica as soon as the stream is told.
func (w *world) hearAndRead(t *testing.T, f *fixture, uri string, all []*stream, of int, at *replica) {
	t.Helper()
	s, touched := all[of], f.touch(uri)
	// A late word of this change must not be taken for one of the next.
	defer func() {
		for _, s := range all {
			for begun := time.Now(); s.First(uri, touched[0].At) == 0 && time.Since(begun) < recovery; time.Sleep(50 * time.Microsecond) {
			}
		}
	}()
	for begun := time.Now(); s.First(uri, touched[0].At) == 0; time.Sleep(50 * time.Microsecond) {
		if time.Since(begun) > recovery {
			t.Fatalf("a stream at %s was not told of version %d", s.at.name, touched[0].Version)
		}
	}
	for range 2 {
		a := w.read(t, f, uri, at)
		var version int
		if _, err := fmt.Sscanf(a.said, "version %d", &version); a.problem() != "" || err != nil || version < touched[0].Version {
			t.Fatalf("%s: heard of version %d at %s, and read at %s: %v %d %s", f.name, touched[0].Version, s.at.name, at.name, a.err, a.status, a.text)
		}
	}
}
