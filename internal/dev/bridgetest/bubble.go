package bridgetest

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

// RunBubble runs f as a subtest in a synctest bubble.
func RunBubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// HeapInUse returns the bytes that are in use once all goroutines of the bubble wait, and nothing is
// left to be collected.
func HeapInUse() int64 {
	synctest.Wait()
	runtime.GC()
	runtime.GC() // what pools have kept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Breathe has n goroutines of the bubble begin and end, since the runtime keeps them.
func Breathe(n int) {
	var all sync.WaitGroup
	end := make(chan struct{})
	for range n {
		all.Go(func() { <-end })
	}
	synctest.Wait()
	close(end)
	all.Wait()
}
