package system

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"time"
)

const (
	// releaseLook is how often the heap is looked at.
	releaseLook = 10 * time.Second
	// releaseCalm is how many looks in a row find a calm program without a collection.
	releaseCalm = 2
	// releaseLeast is for how many bytes it is worth to collect.
	releaseLeast = 32 << 20
)

// A heap is what the runtime knows of its memory.
type heap struct {
	cycles uint64 // collections so far
	live   int64  // bytes that the last collection found in use
	held   int64  // bytes that the system has not got back
}

// readHeap costs some microseconds, and stops nobody.
func readHeap() heap {
	s := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(s)
	h := heap{cycles: s[0].Value.Uint64(), live: int64(s[1].Value.Uint64())}
	for _, part := range s[2:] {
		h.held += int64(part.Value.Uint64())
	}
	return h
}

// freeMemory collects twice, because pools let go of what they have at the second
// collection, and returns free memory to the system.
func freeMemory() {
	runtime.GC()
	debug.FreeOSMemory()
}

// A releaser returns memory to the system once a program that has needed much of it is
// calm. A program that allocates little hardly collects, and the runtime keeps what it
// has for long.
type releaser struct {
	// Set by startReleaser, read-only after.
	read   func() heap
	free   func()
	cancel context.CancelFunc
	done   chan struct{} // closed when run has returned

	// Owned by run.
	cycles uint64 // when it looked last
	calm   int    // looks since a collection
	kept   heap   // what could not be freed the last time; held is the least since then
}

// ReleaseMemory has a releaser at work until stop is called, unless the user tunes the
// collector.
func ReleaseMemory(environ []string) (stop func()) {
	if slices.ContainsFunc(environ, tunesCollector) {
		return func() {}
	}
	return startReleaser(readHeap, freeMemory).stop
}

func tunesCollector(entry string) bool {
	return strings.HasPrefix(entry, "GOGC=") || setsMemoryLimit(entry)
}

func startReleaser(read func() heap, free func()) *releaser {
	ctx, cancel := context.WithCancel(context.Background())
	r := &releaser{read: read, free: free, cancel: cancel, done: make(chan struct{}), kept: read()}
	go r.run(ctx) // until stop
	return r
}

func (r *releaser) stop() {
	r.cancel()
	<-r.done
}

func (r *releaser) run(ctx context.Context) {
	defer close(r.done)
	tick := time.NewTicker(releaseLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.look()
		}
	}
}

// look frees memory if that is worth it, and the program is calm.
func (r *releaser) look() {
	h := r.read()
	r.kept.held = min(r.kept.held, h.held)
	if h.cycles != r.cycles {
		r.cycles, r.calm = h.cycles, 0
		return
	}
	if r.calm++; r.calm < releaseCalm || r.excess(h) < max(releaseLeast, min(r.kept.live, h.live)/2) {
		return
	}
	r.free()
	r.kept = r.read()
	r.cycles, r.calm = r.kept.cycles, 0
}

// excess returns how many bytes may be garbage or free: what the heap has grown by, and
// what is not in use any more.
func (r *releaser) excess(h heap) int64 {
	return h.held - r.kept.held + max(r.kept.live-h.live, 0)
}
