package trunk

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/listen"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

const (
	soakURIs = 50
	// openers is how many clients open or leave at a time.
	openers = 32
)

// TestM2L36ManyStreams opens STREAMS streams, and others that leave while they
// still come, and leaves them in random order. Then nothing is left of them: in
// the index, upstream, or in the process.
func TestM2L36ManyStreams(t *testing.T) {
	if os.Getenv("STREAMS") == "" {
		t.Parallel() // for most of the time it waits
	}
	count := int(rig.Int(t, "STREAMS", 2000))
	rng := rand.New(rand.NewPCG(rig.Seed(t), 3))
	w := newWorld(t, setup{config: fmt.Sprintf("limits: {streams: %d}", count+openers)})
	w.warmUp()
	before := w.gauges()

	begun := time.Now()
	streams := w.comeAndGo(rng, count)
	w.want(recovery, "the streams are counted", map[string]float64{"mcpbridge_listen_streams": float64(len(streams))})
	during := w.gauges()
	uris := union(streams)
	w.wantSubscribed(recovery, uris)
	if len(streams) != count {
		t.Errorf("%d streams are open, want %d", len(streams), count)
	}
	t.Logf("%d streams open after %v: goroutines %v, files %v, index pairs %v, resident %.1f MiB, %.1f KiB a stream", len(streams),
		time.Since(begun).Round(time.Millisecond), during["go_goroutines"], during["process_open_fds"], during["mcpbridge_index_pairs"],
		during[resident]/(1<<20), (during[resident]-before[resident])/1024/float64(len(streams)))

	touched := time.Now()
	w.server.change("tools")
	for uri := range uris {
		w.server.touch(1, uri)
	}
	w.wantTold(streams, touched)
	w.wantOpen(streams)

	rng.Shuffle(len(streams), func(i, j int) { streams[i], streams[j] = streams[j], streams[i] })
	inParallel(streams, (*stream).Close)
	w.want(recovery, "nothing is left in the index", map[string]float64{
		"mcpbridge_listen_streams": 0, "mcpbridge_index_topics": 0, "mcpbridge_index_pairs": 0,
	})
	w.wantSubscribed(recovery, nil)
	w.wantNoMore(before, "go_goroutines", "process_open_fds")
}

const resident = "process_resident_memory_bytes"

// warmUp opens and leaves as many streams as take the server all the calls at a
// time that there may be: connections to it stay for a while.
func (w *world) warmUp() {
	w.t.Helper()
	streams := make([]*stream, 0, 2*soakURIs)
	for i := range 2 * soakURIs {
		streams = append(streams, w.open(id(i), filter{URIs: []string{item(i % soakURIs)}}))
	}
	for _, s := range streams {
		w.wantAck(s)
	}
	inParallel(streams, (*stream).Close)
	w.wantSubscribed(recovery, nil)
	w.want(recovery, "the first streams are gone", map[string]float64{"mcpbridge_listen_streams": 0})
}

// comeAndGo opens so many streams, and one in four more that leave on the way.
func (w *world) comeAndGo(rng *rand.Rand, count int) (stay []*stream) {
	w.t.Helper()
	type plan struct {
		id    string
		want  filter
		leave bool
	}
	plans := make([]plan, count+count/4)
	for i := range plans {
		f := filter{Tools: i%10 == 0}
		for _, at := range rng.Perm(soakURIs)[:1+rng.IntN(3)] {
			f.URIs = append(f.URIs, item(at))
		}
		plans[i] = plan{id(i), f, i >= count}
	}
	rng.Shuffle(len(plans), func(i, j int) { plans[i], plans[j] = plans[j], plans[i] })
	var mu sync.Mutex
	inParallel(plans, func(p plan) {
		s, err := listen.Dial(w.listening(p.id, p.want))
		if err != nil {
			w.t.Error(err)
			return
		}
		select {
		case <-s.Acked:
		case <-s.Done:
		case <-time.After(recovery):
		}
		if p.leave {
			s.Close()
			return
		}
		w.t.Cleanup(s.Close)
		mu.Lock()
		defer mu.Unlock()
		stay = append(stay, s)
	})
	for _, s := range stay {
		w.wantAck(s)
	}
	return stay
}

// wantNoMore waits until gauges are not above what they were: connections to the
// server that lie idle end after 90 s.
func (w *world) wantNoMore(before map[string]float64, names ...string) {
	w.t.Helper()
	for _, name := range names {
		rig.Until(w.t, 100*time.Second, name+" is back where it was", func() string {
			if now := w.gauges()[name]; now > before[name] {
				return fmt.Sprintf("%v, and was %v", now, before[name])
			}
			return ""
		})
		w.t.Logf("%s: %v before, %v after", name, before[name], w.gauges()[name])
	}
}

// inParallel does something with each of items, some at a time.
func inParallel[T any](items []T, do func(T)) {
	var wg sync.WaitGroup
	next := make(chan T)
	for range openers {
		wg.Go(func() {
			for item := range next {
				do(item)
			}
		})
	}
	for _, item := range items {
		next <- item
	}
	close(next)
	wg.Wait()
}
