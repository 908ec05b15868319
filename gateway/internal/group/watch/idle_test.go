package watch

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A profile that follows all lists of many members takes two goroutines and little memory, and
// nothing once it has gone.
func TestG20IdleWatches(t *testing.T) {
	const profiles, mostBytes = 200, 3 << 10 // for each member, with what a fake takes
	var members []*fake
	for n := range 50 {
		members = append(members, newLegacy(fmt.Sprintf("m%d", n)))
	}
	withRig(t, members, func(t *testing.T, r *rig) {
		goroutines, before := runtime.NumGoroutine(), heap()
		for n := range profiles {
			scope := fmt.Sprintf("all/%d", n)
			want := mcp.Filter{Tools: true, Prompts: true, Resources: true, Losses: true}.Topics(scope)
			r.Want(1, want...)
			if _, _, err := r.ws.Watch(t.Context(), mcp.Profile{Scope: scope}, want, nil); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := runtime.NumGoroutine() - goroutines; n > 2*profiles+10 {
			t.Errorf("%d goroutines for %d profiles, want two each", n, profiles)
		}
		each := (heap() - before) / profiles / len(members)
		t.Logf("%d bytes for each profile and member", each)
		if each > mostBytes {
			t.Errorf("%d bytes for each profile and member, want at most %d", each, mostBytes)
		}
		runtime.KeepAlive(r)
	})
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
