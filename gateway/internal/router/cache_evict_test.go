package router

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

func TestM2L08ChangesEvict(t *testing.T) {
	t.Parallel()
	r := newKeepingRig(t, nil)
	f := r.listen(t, "7", `{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["file:///d"]}`)
	f.next()
	t.Run("M2L-08 before the change is told", func(t *testing.T) {
		for i := range 20 {
			name := fmt.Sprint("t", i)
			r.peer.answer("tools/list", toolNamed(name))
			if i > 0 {
				r.peer.push(toolsChanged)
				f.next()
			}
			if got := r.list(t, ""); got != "[{"+name+"}]" {
				t.Fatalf("after the change: %s, want %s", got, name)
			}
		}
	})
	for _, tt := range []struct {
		name, push string
		gone       []string // URIs whose reads go
	}{
		{"tools", toolsChanged, nil},
		{"an update", updated("file:///d"), []string{"file:///d", "file:///d/x", "file:///d/x?v=1", "file:///"}},
		{"an update told under an ancestor", updated("file:///d/x/y"), []string{"file:///d", "file:///d/x", "file:///d/x?v=1", "file:///"}},
		{"resources", `{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`,
			[]string{"file:///d", "file:///d/x", "file:///d/x?v=1", "file:///", "file:///dx", "file:///e"}},
	} {
		t.Run("M2L-08 "+tt.name, func(t *testing.T) {
			all := []string{"file:///d", "file:///d/x", "file:///d/x?v=1", "file:///", "file:///dx", "file:///e"}
			for _, uri := range all {
				r.read(t, uri)
			}
			r.peer.push(tt.push)
			f.next()
			before := len(r.peer.sent("resources/read"))
			var gone []string
			for _, uri := range all {
				if r.read(t, uri); len(r.peer.sent("resources/read")) > before {
					before++
					gone = append(gone, uri)
				}
			}
			if fmt.Sprint(gone) != fmt.Sprint(tt.gone) {
				t.Errorf("read anew: %q, want %q", gone, tt.gone)
			}
		})
	}
}

// A result that was on its way when the change came may be older than it.
func TestM2L08OvertakenResultIsNotKept(t *testing.T) {
	t.Parallel()
	r := newKeepingRig(t, nil)
	f := r.listen(t, "7", `{"toolsListChanged":true}`)
	f.next()
	release := r.peer.holdNext("tools/list")
	r.peer.answer("tools/list", toolNamed("old"))
	overtaken := make(chan string)
	go func() { overtaken <- r.list(t, "") }()
	r.eventually(t, "the first is on its way", func() bool { return len(r.peer.sent("tools/list")) == 1 })

	r.peer.holdNext("tools/list")() // no more
	r.peer.answer("tools/list", toolNamed("new"))
	r.peer.push(toolsChanged)
	f.next()
	begin := time.Now()
	if got := r.list(t, ""); got != "[{new}]" || time.Since(begin) >= 5*time.Second {
		t.Errorf("after the change, before the first: %s after %v, want the new list at once", got, time.Since(begin))
	}
	release()
	if got := <-overtaken; got != "[{old}]" {
		t.Errorf("the first got %s, want what it was sent", got)
	}
	if got := r.list(t, ""); got != "[{new}]" {
		t.Errorf("after both: %s, want the new list", got)
	}
	if n := len(r.peer.sent("tools/list")); n != 2 {
		t.Errorf("the server was asked %d times, want the second result kept", n)
	}
}

// holdNext has requests of a method wait for release from now on.
func (p *scriptedPeer) holdNext(method string) (release func()) {
	hold := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold[method] = hold
	return sync.OnceFunc(func() { close(hold) })
}

// A change that nobody listens for makes a kept list old all the same.
func TestM2L08UnwatchedChangesEvict(t *testing.T) {
	t.Parallel()
	r := newKeepingRig(t, nil)
	r.peer.answer("tools/list", toolNamed("old"))
	r.list(t, "")
	r.peer.answer("tools/list", toolNamed("new"))
	if got := r.list(t, ""); got != "[{old}]" {
		t.Fatalf("before the change: %s, want the kept list", got)
	}
	r.peer.push(toolsChanged)
	r.eventually(t, "the kept list is gone", func() bool { return r.list(t, "") == "[{new}]" })
}

// What is kept of a server goes when it is found to be of the other era: its program was
// replaced.
func TestSwapEvicts(t *testing.T) {
	t.Parallel()
	var u upgradable
	r := newKeepingRig(t, func(o *Options) {
		open := o.Servers[0].Open
		o.Servers[0].Open = func(c mcp.Changes) (mcp.Back, error) { return u.open(open(c)) }
	})
	r.peer.answer("tools/list", toolNamed("old"))
	for range 2 {
		if got := r.list(t, ""); got != "[{old}]" || len(r.peer.sent("tools/list")) != 1 {
			t.Fatalf("list = %s after %d requests, want it kept", got, len(r.peer.sent("tools/list")))
		}
	}
	u.upgrade(t)
	if got := r.list(t, ""); got != "[]" {
		t.Errorf("after the upgrade: %s, want what the new program says", got)
	}
	if s := r.g.Snapshot().Cache; s.Bytes != 0 || s.Entries != 0 {
		t.Errorf("cache = %+v, want it empty", s)
	}
}
