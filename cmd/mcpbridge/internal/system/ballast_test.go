package system

import (
	"runtime"
	"testing"
)

func TestWhoTunesTheCollectorGetsNoBallast(t *testing.T) {
	for _, tt := range []struct {
		environ []string
		want    bool
	}{
		{nil, true},
		{[]string{"HOME=/root", "XGOGC=1"}, true},
		{[]string{"HOME=/root", "GOGC=50"}, false},
		{[]string{"GOMEMLIMIT=64MiB"}, false},
	} {
		if got := Ballast(1<<30, tt.environ) != nil; got != tt.want {
			t.Errorf("Ballast(%q) gives a ballast: %v, want %v", tt.environ, got, tt.want)
		}
	}
}

func TestBallastGivesTheCollectorRoom(t *testing.T) {
	b := Ballast(1<<30, nil)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.NextGC < ballastSize+m.HeapAlloc {
		t.Errorf("the next collection is at %d bytes with %d in use, want %d more", m.NextGC, m.HeapAlloc, ballastSize)
	}
	runtime.KeepAlive(b)
}
