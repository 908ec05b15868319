package index

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
)

const (
	manyURIs = 100_000
	perKey   = 3   // subscribers of each key
	maxBytes = 200 // per pair
)

// topic has the shape of the keys the gateway uses: the server, the kind of
// change, and the URI. Bottom packages don't import each other.
type topic struct {
	scope string
	kind  uint8
	uri   string
}

type subscriber struct{ _ [64]byte }

// The worst case: no two subscribers have the same set of keys, and the keys are as wide
// as the gateway's.
func TestBytesPerPair(t *testing.T) {
	t.Run("many subscribers, wide keys", func(t *testing.T) {
		checkBytes(t, makeSubscribers(manyURIs/10), func(uri string) topic { return topic{"notebook#4f1c", 4, uri} })
	})
	t.Run("few subscribers, plain keys", func(t *testing.T) {
		checkBytes(t, makeSubscribers(perKey), func(uri string) string { return uri })
	})
}

// checkBytes measures what the index allocates for its keys. It does not count the
// strings and the subscribers: as in the gateway, the streams own them.
func checkBytes[K comparable](t *testing.T, subs []*subscriber, key func(string) K) {
	t.Helper()
	uris := makeURIs(manyURIs)
	before := heapAlloc()
	x := fill(uris, subs, key)
	got := float64(heapAlloc()-before) / (manyURIs * perKey)
	if _, pairs := x.Len(); pairs != manyURIs*perKey {
		t.Fatalf("index holds %d pairs, want %d", pairs, manyURIs*perKey)
	}
	t.Logf("%.1f bytes per pair", got)
	if got > maxBytes {
		t.Errorf("%.1f bytes per pair, want at most %d", got, maxBytes)
	}
	runtime.KeepAlive(uris)
}

func TestLookupAllocatesNothing(t *testing.T) {
	x := fill(makeURIs(manyURIs), makeSubscribers(perKey), func(uri string) string { return uri })
	asked, dst, i := randomURIs(1000, manyURIs), make([]*subscriber, 0, perKey), 0
	if n := testing.AllocsPerRun(len(asked)-1, func() {
		dst = x.AppendSubscribers(dst[:0], asked[i])
		i++
	}); n != 0 || len(dst) != perKey {
		t.Errorf("a look-up allocates %v times and finds %d subscribers, want never and %d", n, len(dst), perKey)
	}
}

func heapAlloc() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func makeURI(i int) string { return fmt.Sprintf("file:///srv/notes/%07d.md", i) }

func makeURIs(n int) []string {
	uris := make([]string, n)
	for i := range uris {
		uris[i] = makeURI(i)
	}
	return uris
}

// randomURIs returns count of the first n URIs. They are new strings, like those of
// incoming messages, so that a comparison has to read both strings.
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
