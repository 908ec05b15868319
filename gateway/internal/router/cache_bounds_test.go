package router

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/gateway/internal/cache"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// An evictionHook is called when a result leaves the cache.
type evictionHook struct {
	mcp.NoMetrics
	f func(why string)
}

func (h evictionHook) CacheEvicted(_, why string) { h.f(why) }

func TestM2L08CacheIsBounded(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	why := make(map[string]int)
	r := newKeepingRig(t, func(o *Options) {
		o.bound("cache_entries", 20)
		o.bound("cache", 16<<10)
		o.Metrics = evictionHook{f: func(w string) { mu.Lock(); defer mu.Unlock(); why[w]++ }}
	})
	read := func(i, size int) {
		t.Helper()
		r.peer.answer("resources/read", `{"contents":[{"uri":"u","text":"`+strings.Repeat("x", size)+`"}]}`)
		r.read(t, fmt.Sprint("u:", i))
		if got := r.g.Snapshot().Cache; got.Entries > 20 || got.Bytes > 16<<10 || got.Bytes < size {
			t.Fatalf("after %d results of %d bytes: %+v", i+1, size, got)
		}
	}
	for i := range 50 {
		read(i, 10)
	}
	if got := r.g.Snapshot().Cache.Entries; got != 20 || why["full"] != 30 {
		t.Errorf("%d entries after 50 results, %d evicted, want 20 and 30", got, why["full"])
	}
	asked := len(r.peer.sent("resources/read"))
	r.read(t, "u:30") // the least recently used but for this
	read(50, 10)
	r.read(t, "u:30")
	if got := len(r.peer.sent("resources/read")); got != asked+1 {
		t.Errorf("the server was asked %d times, want %d: u:30 was in use", got, asked+1)
	}
	for i := range 50 {
		read(100+i, 1000)
	}
	if got := r.g.Snapshot().Cache.Entries; got > 16 {
		t.Errorf("%d entries of 1000 bytes, want at most 16", got)
	}
	before := r.g.Snapshot().Cache
	r.peer.answer("resources/read", `{"contents":[{"uri":"u","text":"`+strings.Repeat("x", 3000)+`"}]}`)
	r.read(t, "u:huge")
	if got := r.g.Snapshot().Cache; got != before {
		t.Errorf("after a result over an eighth of the cache: %+v, want it left out", got)
	}
	r.g.EndStreams()
	if got := r.g.Snapshot().Cache; got != (cache.Snapshot{}) {
		t.Errorf("after the end: %+v, want nothing", got)
	}
	r.read(t, "u:30")
	if got := r.g.Snapshot().Cache; got != (cache.Snapshot{}) {
		t.Errorf("while draining: %+v, want nothing kept", got)
	}
}
