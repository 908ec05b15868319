package sessions

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// TestL2M21SharedStreams subscribes many sessions of one profile to 200 URIs, in
// random orders, while the server changes one after the other without a pause.
// Once it is over they cost the server four streams at most; no session missed a
// change that came after its subscription was granted, and none was told of one
// more than twice.
func TestL2M21SharedStreams(t *testing.T) {
	for _, tt := range []struct {
		sessions, each int
		pause          time.Duration // between changes; a round of all URIs is 200 of them
	}{
		{20, items, 10 * time.Millisecond},
		{int(rig.Int(t, "SESSIONS", 1000)), int(rig.Int(t, "URIS_EACH", items)), 200 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%d sessions", tt.sessions), func(t *testing.T) {
			w := newWorld(t)
			seed := rig.Seed(t)
			all := w.openAll(tt.sessions)
			fire := w.startFire(seed, tt.pause)
			start := time.Now()
			w.subscribeAll(all, tt.each, seed)
			t.Logf("%d subscriptions in %v", tt.sessions*tt.each, time.Since(start))
			w.wantStreams(3*time.Minute, 4, itemURIs(items))
			t.Logf("settled after %v", time.Since(start))
			touches, err := fire.stop()
			if err != nil {
				t.Fatal(err)
			}
			w.wantTold(all, touches)
		})
	}
}

// A fire changes one resource after the other.
type fire struct {
	quit, done chan struct{}
	touches    map[string][]int64 // when, by URI; read only after done is closed
	err        error              // likewise
}

func (w *world) startFire(seed uint64, pause time.Duration) *fire {
	f := &fire{quit: make(chan struct{}), done: make(chan struct{}), touches: make(map[string][]int64)}
	go f.run(w, rand.New(rand.NewPCG(seed, math.MaxUint64)).Perm(items), pause) // ends with stop
	w.t.Cleanup(func() { _, _ = f.stop() })
	return f
}

func (f *fire) run(w *world, order []int, pause time.Duration) {
	defer close(f.done)
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-f.quit:
			return
		case <-tick.C:
		}
		done, err := w.touch(itemURI(order[i%items]))
		if err != nil {
			f.err = err
			return
		}
		for _, t := range done {
			f.touches[t.URI] = append(f.touches[t.URI], t.At)
		}
	}
}

// stop may be called again.
func (f *fire) stop() (map[string][]int64, error) {
	select {
	case <-f.quit:
	default:
		close(f.quit)
	}
	<-f.done
	return f.touches, f.err
}

// wantTold holds what the sessions heard against what was changed when: from one
// change of a URI to the next, each session with a subscription hears of it once,
// or twice while streams are merged.
func (w *world) wantTold(all []*session, touches map[string][]int64) {
	w.t.Helper()
	rig.Until(w.t, 2*time.Minute, "the last changes arrive", func() string {
		_, missed, why := tally(all, touches)
		if missed > 0 {
			return why
		}
		return ""
	})
	told, _, why := tally(all, touches)
	if why != "" {
		w.t.Error(why)
	}
	w.t.Logf("changes that sessions were told of: once %d, twice %d", told[1], told[2])
	if told[1] == 0 {
		w.t.Error("no session was told of anything")
	}
}

// tally counts how often each session was told of each change that concerned it.
func tally(all []*session, touches map[string][]int64) (told map[int]int, missed int, why string) {
	told = make(map[int]int)
	for i, s := range all {
		for uri, times := range touches {
			s.mu.Lock()
			since, ok := s.subscribed[uri]
			s.mu.Unlock()
			for k, at := range times {
				if !ok || at <= since {
					continue
				}
				next := int64(math.MaxInt64)
				if k+1 < len(times) {
					next = times[k+1]
				}
				n := s.heardSince(uri, at, next)
				told[n]++
				switch {
				case n == 0:
					missed++
					why = fmt.Sprintf("session %d was not told of change %d of %s (%d missed so far)", i, k+1, uri, missed)
				case n > 2 && missed == 0:
					why = fmt.Sprintf("session %d was told %d times of change %d of %s", i, n, k+1, uri)
				}
			}
		}
	}
	return told, missed, why
}
