package index

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

const (
	million  = 1_000_000
	perKey   = 3   // subscribers of each key
	maxBytes = 200 // per pair
	maxRatio = 2.0 // against a plain map
)

// topic has the shape of the keys the gateway uses: the server, the kind of
// change, and the URI. Bottom packages don't import each other.
type topic struct {
	scope string
	kind  uint8
	uri   string
}

type subscriber struct{ _ [64]byte }

// A hundred thousand subscribers and the gateway's wide keys cost most. The
// other end, three subscribers of a million URIs, is measured by
// TestLookupRatio on its way, since building an index is what takes time.
func TestBytesPerPair(t *testing.T) {
	skipUnlessMeasurable(t)
	checkBytes(t, makeURIs(), makeSubscribers(100_000), func(uri string) topic { return topic{"notebook#4f1c", 4, uri} })
}

// checkBytes measures all that the index allocates for a million keys. The
// strings and the subscribers themselves exist before, and are not counted: in
// the gateway, too, they belong to the streams.
func checkBytes[K comparable](t *testing.T, uris []string, subs []*subscriber, key func(string) K) *Index[K, *subscriber] {
	t.Helper()
	before := heapAlloc()
	x := fill(uris, subs, key)
	got := float64(heapAlloc()-before) / (million * perKey)
	if _, pairs := x.Len(); pairs != million*perKey {
		t.Fatalf("index holds %d pairs, want %d", pairs, million*perKey)
	}
	t.Logf("%.1f bytes per pair", got)
	if got > maxBytes {
		t.Errorf("%.1f bytes per pair, want at most %d", got, maxBytes)
	}
	runtime.KeepAlive(uris)
	return x
}

// TestLookupRatio compares the look-up of an event's subscribers with what a
// program would do that had one plain map and no reverse direction. Both are
// asked for the same URIs, in turns, and the best turn of each counts: noise
// on the machine only ever adds time.
func TestLookupRatio(t *testing.T) {
	skipUnlessMeasurable(t)
	const lookups, rounds = 100_000, 9
	x := checkBytes(t, makeURIs(), makeSubscribers(perKey), func(uri string) string { return uri })
	plain, asked := x.Snapshot(), randomURIs(lookups, million)
	dst, total := make([]*subscriber, 0, perKey), 0
	indexed := func() {
		for _, uri := range asked {
			dst = x.AppendSubscribers(dst[:0], uri)
			total += len(dst)
		}
	}
	mapped := func() {
		for _, uri := range asked {
			dst = append(dst[:0], plain[uri]...)
			total += len(dst)
		}
	}
	best := [2]time.Duration{time.Hour, time.Hour}
	for range rounds {
		best[0] = min(best[0], timed(indexed))
		best[1] = min(best[1], timed(mapped))
	}
	if want := 2 * rounds * lookups * perKey; total != want {
		t.Fatalf("found %d subscribers, want %d", total, want)
	}
	ratio := float64(best[0]) / float64(best[1])
	t.Logf("index %v, plain map %v per look-up: %.2f times", best[0]/lookups, best[1]/lookups, ratio)
	if ratio > maxRatio {
		t.Errorf("a look-up takes %.2f times that of a plain map, want at most %.1f", ratio, maxRatio)
	}
	checkNoAllocs(t, x, asked, dst)
}

func checkNoAllocs(t *testing.T, x *Index[string, *subscriber], asked []string, dst []*subscriber) {
	t.Helper()
	i := 0
	if n := testing.AllocsPerRun(len(asked)/10, func() {
		dst = x.AppendSubscribers(dst[:0], asked[i])
		i++
	}); n != 0 {
		t.Errorf("a look-up allocates %v times, want never", n)
	}
}

// The race detector multiplies both time and memory by factors of its own, and
// the budgets take seconds: neither says anything there.
func skipUnlessMeasurable(t *testing.T) {
	t.Helper()
	if raceEnabled {
		t.Skip("the race detector changes what is measured; runs in a build without it")
	}
	if testing.Short() {
		t.Skip("takes seconds")
	}
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func heapAlloc() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func makeURI(i int) string { return fmt.Sprintf("file:///srv/notes/%07d.md", i) }

func makeURIs() []string {
	uris := make([]string, million)
	for i := range uris {
		uris[i] = makeURI(i)
	}
	return uris
}

// randomURIs returns count of the first n URIs. They are built anew, as those
// that come off the wire are, so that a comparison has to read both strings.
func randomURIs(count, n int) []string {
	r := rand.New(rand.NewPCG(1, 2))
	uris := make([]string, count)
	for i := range uris {
		uris[i] = makeURI(r.IntN(n))
	}
	return uris
}

func makeSubscribers(n int) []*subscriber {
	subs := make([]*subscriber, n)
	for i := range subs {
		subs[i] = new(subscriber)
	}
	return subs
}

// fill returns an index in which each URI has three of subs, in turn.
func fill[K comparable](uris []string, subs []*subscriber, key func(string) K) *Index[K, *subscriber] {
	x := New[K, *subscriber](Options{})
	for i, uri := range uris {
		for j := range perKey {
			x.Subscribe(key(uri), subs[(i*perKey+j)%len(subs)])
		}
	}
	return x
}
