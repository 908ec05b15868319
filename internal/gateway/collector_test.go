package gateway

import (
	"runtime"
	"testing"
)

func TestBallastGivesTheCollectorRoom(t *testing.T) {
	b := NewBallast(1 << 30)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.NextGC < ballastSize+m.HeapAlloc {
		t.Errorf("the next collection is at %d bytes with %d in use, want %d more", m.NextGC, m.HeapAlloc, ballastSize)
	}
	runtime.KeepAlive(b)
}
