package router

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// newKeepingReplicas returns replicas that keep the resources of their server, once they
// serve them.
func newKeepingReplicas(t *testing.T, n int) []*replica {
	t.Helper()
	broker, p := replicastest.New(), newPeer(t)
	var all []*replica
	for range n {
		all = append(all, newReplica(t, broker, p, func(o *Options) {
			o.Servers[0].Settings.Cache = public("resources/read")
			o.Servers[0].Open = func(c mcp.Changes) (mcp.Back, error) {
				return legacyback.New(legacyback.Options{Options: upstream.Options{Name: "peer", URL: p.URL, Changes: c, Logger: o.Logger, Settings: settings.Server{Linger: time.Millisecond, Cache: public("resources/read")},
					ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}})
			}
			watchTogether(o)
		}))
	}
	for _, r := range all {
		eventually(t, func() bool { return len(r.peers.View().Members) == n })
	}
	all[0].peer.answer("resources/read", content("first"))
	for _, r := range all {
		r.wantKept(t)
	}
	return all
}

func content(text string) string {
	return `{"contents":[{"uri":"file:///d","text":"` + text + `"}]}`
}

// text returns the only text of a read.
func text(read string) string { return strings.Trim(read, "[{}]") }

// wantKept waits until the replica serves what it keeps.
func (r *replica) wantKept(t *testing.T) {
	t.Helper()
	eventually(t, func() bool {
		r.read(t, "file:///d")
		before := len(r.peer.sent("resources/read"))
		r.read(t, "file:///d")
		return len(r.peer.sent("resources/read")) == before
	})
}

// late reports whether a replica took more than 200 ms over a change, on a busy machine: clients hear of
// it all the same.
func late(t *testing.T, all []*replica) bool {
	t.Helper()
	is := slices.ContainsFunc(all, func(r *replica) bool {
		return strings.Contains(r.logs.String(), "has not evicted cached results in time")
	})
	if is {
		t.Log("on this busy machine a replica took more than 200 ms over a change")
	}
	return is
}

// A client that hears of a change at one replica and reads at another never gets what that
// has kept from before, as long as each change reaches all within 200 ms.
func TestReplicasEvictTogether(t *testing.T) {
	t.Parallel()
	all := newKeepingReplicas(t, 3)
	f := all[0].listen(t, "7", `{"resourceSubscriptions":["file:///d"]}`)
	f.next()
	before := len(all[0].peer.sent("resources/read"))
	for i := range 200 {
		want := fmt.Sprint("v", i)
		all[0].peer.answer("resources/read", content(want))
		all[0].peer.push(updated("file:///d"))
		f.next()
		for _, r := range []*replica{all[1], all[2], all[0], all[1]} {
			got := text(r.read(t, "file:///d"))
			if got != want && !late(t, all) {
				t.Fatalf("after change %d: %s, want %s", i, got, want)
			}
			if got != want {
				eventually(t, func() bool { return text(r.read(t, "file:///d")) == want })
			}
		}
	}
	if late(t, all) {
		return
	}
	if n := len(all[0].peer.sent("resources/read")) - before; n != 600 {
		t.Errorf("the server was asked %d times, want 3 after each change", n)
	}
}

// What a replica fetches while another one hears of a change is not kept.
func TestReplicasEvictFetches(t *testing.T) {
	t.Parallel()
	all := newKeepingReplicas(t, 2)
	a, b := all[0], all[1]
	f := a.listen(t, "7", `{"resourceSubscriptions":["file:///d"]}`)
	f.next()
	a.peer.push(updated("file:///d")) // what is kept goes
	f.next()
	if late(t, all) {
		return
	}
	before := len(a.peer.sent("resources/read"))
	release := a.peer.holdNext("resources/read")
	a.peer.answer("resources/read", content("old"))
	overtaken := make(chan string)
	go func() { overtaken <- text(b.read(t, "file:///d")) }()
	eventually(t, func() bool { return len(a.peer.sent("resources/read")) == before+1 })
	a.peer.holdNext("resources/read")() // no more
	a.peer.answer("resources/read", content("new"))
	a.peer.push(updated("file:///d"))
	f.next()
	release()
	if got := <-overtaken; got != "old" {
		t.Errorf("the fetch got %s, want what it was sent", got)
	}
	for range 2 {
		if got := text(b.read(t, "file:///d")); got != "new" && !late(t, all) {
			t.Errorf("after the change: %s, want the new one", got)
		}
	}
}

// A replica that does not answer delays a change by 200 ms, or what a busy machine makes of that. It is
// told later.
func TestReplicaThatDoesNotEvict(t *testing.T) {
	t.Parallel()
	all := newKeepingReplicas(t, 2)
	a, b := all[0], all[1]
	f := a.listen(t, "7", `{"resourceSubscriptions":["file:///d"]}`)
	f.next()
	stalled := make(chan struct{})
	b.stall.Store(&stalled)
	a.peer.answer("resources/read", content("new"))
	begin := time.Now()
	a.peer.push(updated("file:///d"))
	f.next()
	if took := time.Since(begin); took < 150*time.Millisecond || took > 8*time.Second {
		t.Errorf("the change took %v, want 200 ms", took)
	}
	eventually(t, func() bool { return strings.Contains(a.logs.String(), "has not evicted cached results in time") })
	b.stall.Store(nil)
	close(stalled)
	eventually(t, func() bool { return text(b.read(t, "file:///d")) == "new" })
}

// A replica that the others may not know serves nothing that it has kept.
func TestReplicaWithoutEngineKeepsNothing(t *testing.T) {
	t.Parallel()
	all := newKeepingReplicas(t, 2)
	b := all[1]
	b.engine.SetAway(true)
	b.peer.answer("resources/read", content("new"))
	eventually(t, func() bool { return text(b.read(t, "file:///d")) == "new" })
	b.peer.answer("resources/read", content("newer"))
	if got := text(b.read(t, "file:///d")); got != "newer" {
		t.Errorf("it read %s, want nothing kept while the engine is away", got)
	}
	b.engine.SetAway(false)
	b.wantKept(t)
}

// stallEvictions has a replica's peer listener hold what tells it to evict.
func (r *replica) stallEvictions(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if stalled := r.stall.Load(); stalled != nil && req.URL.Path == "/peer/evict" {
			<-*stalled
		}
		next.ServeHTTP(w, req)
	})
}
