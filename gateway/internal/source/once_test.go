package source_test

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

// Streams open at two replicas, one after the other, while what they follow changes all the time.
// The owner has one subscription to each resource, so that each change is sent once, and each
// replica delivers it once: though the others merge what they have open at the owner, and two of
// their streams there have a resource meanwhile.
func TestEachChangeIsToldOnceWhileStreamsAreMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a", "b", "c")
		var uris []string
		for i := range 8 {
			uris = append(uris, fmt.Sprint("u:", i))
		}
		r.by["a"].follow("ada", uris...)
		quiet()
		told := map[string]func() map[string]int{"b": r.by["b"].deliveries(), "c": r.by["c"].deliveries()}
		want := make(map[string]int)
		for i := range 1000 { // 20 s
			if at := i / 25; i%25 == 0 && at < len(uris) {
				r.by["b"].follow("ada", uris[at])
				r.by["c"].follow("ada", uris[at])
				want[uris[at]] = 1
			}
			for _, uri := range uris {
				r.server.push(uri)
			}
			synctest.Wait()
			for name, told := range told {
				if got := told(); !maps.Equal(got, want) {
					t.Fatalf("change %d: %s delivers %v, want %v", i, name, got, want)
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
		r.wantSubscriptions("at the end", 1, uris...)
	})
}

// deliveries returns what returns how often each resource was reported to clients since the last time:
// their mailboxes don't count what comes twice while they are not read.
func (rep *replica) deliveries() func() map[string]int {
	var mu sync.Mutex
	got := make(map[string]int)
	rep.hub.Watch(func(ev fanout.Event, followers int) {
		mu.Lock()
		defer mu.Unlock()
		if followers > 0 {
			got[ev.URI]++
		}
	})
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		out := got
		got = make(map[string]int)
		return out
	}
}

// The same with a network that takes its time, another one for each message: no stream is told
// more often than there were changes, and none misses the last of them.
func TestNoChangeIsLostWhileStreamsAreMerged(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { mergeOverASlowNetwork(t, seed) })
		})
	}
}

func mergeOverASlowNetwork(t *testing.T, seed uint64) {
	random, network := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	r := newRig(t, "a", "b")
	r.slow(func() time.Duration { return time.Duration(network.IntN(40)) * time.Millisecond })
	uris := []string{"u:0", "u:1", "u:2", "u:3"}
	r.by["a"].follow("ada", uris...)
	quiet()
	version, owed, told, seen := make(map[string]int), make(map[string]int), make(map[string]int), make(map[string]int)
	var all []*follower
	read := func() {
		synctest.Wait()
		for _, f := range all {
			for uri, n := range f.take() {
				told[uri] += n
				seen[uri] = version[uri] // its client reads it now
			}
		}
	}
	for i := range 200 { // bursts of changes
		if i%8 == 0 && len(all) < len(uris) {
			uri := uris[len(all)]
			all = append(all, r.by["b"].follow("ada", uri))
			seen[uri], owed[uri], told[uri] = version[uri], 0, 0
		}
		for range random.IntN(10) {
			uri := uris[random.IntN(len(uris))]
			version[uri]++
			owed[uri]++
			r.server.push(uri)
			time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
			read()
		}
		for range 60 {
			time.Sleep(5 * time.Millisecond)
			read()
		}
		for _, f := range all {
			uri := f.has[0]
			if seen[uri] != version[uri] {
				t.Fatalf("burst %d: a stream has read version %d of %s, and it is at %d: a change was lost", i, seen[uri], uri, version[uri])
			}
			if told[uri] > owed[uri] {
				t.Fatalf("burst %d: a stream was told %d times of %s, which has changed %d times", i, told[uri], uri, owed[uri])
			}
		}
	}
}

// slow has each read of what a replica answers take a time.
func (r *rig) slow(takes func() time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takes = takes
}

// delay waits as long as the network takes for a message.
func (r *rig) delay() {
	r.mu.Lock()
	var d time.Duration
	if r.takes != nil {
		d = r.takes()
	}
	r.mu.Unlock()
	time.Sleep(d)
}

// A slowBody is read at the pace of its network.
type slowBody struct {
	io.ReadCloser
	r *rig
}

func (b *slowBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.r.delay()
	return n, err
}
