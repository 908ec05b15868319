package router

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// The result after a reload that has changed the server says that state is lost, beside what
// the server says in _meta; a server that is kept keeps it.
func TestU05StateLostByAReload(t *testing.T) {
	t.Parallel()
	losses, peer := upstream.NewLosses(), newPeer(t)
	open := func(c mcp.Changes) (mcp.Back, error) {
		return legacyback.New(legacyback.Options{Options: upstream.Options{Name: "peer", URL: peer.URL, Changes: c, Losses: losses, Settings: settings.Server{Linger: time.Millisecond},
			ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}})
	}
	r := newRig(t, func(o *Options) { o.Losses, o.Servers[0].Open = losses, open })
	peer.handle["tools/call"] = func(*peerCall) string { return `{"content":[],"_meta":{"k":1.0}}` }
	call := func() string {
		t.Helper()
		got := r.call(t, "1", "tools/call", "x", `"name":"x"`)
		if got.status != http.StatusOK {
			t.Fatalf("tools/call = %d %s", got.status, got.body)
		}
		return got.body
	}
	before := call()
	r.reload(t, Options{Servers: []ServerOptions{{Name: "peer", Kept: true}}})
	if again := call(); again != before || strings.Contains(again, "state-lost") {
		t.Errorf("the server that is kept: %s, want what it was before: %s", again, before)
	}
	for range 2 { // the second one has no state of anybody
		r.reload(t, Options{Servers: []ServerOptions{{Name: "peer", Open: open}}})
	}
	text := call()
	meta := wire.Get(wire.Get([]byte(text), "result"), "_meta")
	if why, _ := wire.GetString(meta, spec.MetaStateLost); why != "replaced" || string(wire.Get(meta, "k")) != "1.0" || wire.Get(meta, spec.MetaServerInfo) == nil {
		t.Errorf("the next result is %s, want that state is lost, and the rest of _meta", text)
	}
	if again := call(); again != before {
		t.Errorf("the result after that is %s, want %s", again, before)
	}
}

// The state of a client whose first call waits for its session while a reload replaces the server is lost
// with the former server, which answers the call: the client is told with its next result.
func TestU05StateLostByAReloadDuringACall(t *testing.T) {
	t.Parallel()
	losses, peer := upstream.NewLosses(), newPeer(t)
	peer.answer("tools/call", say("done"))
	hold, ended := make(chan struct{}), make(chan struct{})
	peer.hold["initialize"] = hold
	open := func(c mcp.Changes) (mcp.Back, error) {
		return legacyback.New(legacyback.Options{Options: upstream.Options{Name: "peer", URL: peer.URL, Changes: c, Losses: losses, Settings: settings.Server{Linger: time.Millisecond},
			ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}})
	}
	r := newRig(t, func(o *Options) {
		o.Losses, o.Servers[0].Open, o.Servers[0].Ended = losses, open, func() { close(ended) }
	})
	told := func() string {
		got := r.call(t, "1", "tools/call", "x", `"name":"x"`)
		if got.status != http.StatusOK {
			t.Errorf("tools/call = %d %s", got.status, got.body)
		}
		why, _ := wire.GetString(wire.Get(wire.Get([]byte(got.body), "result"), "_meta"), spec.MetaStateLost)
		return why
	}
	first := make(chan string, 1)
	go func() { first <- told() }()
	r.eventually(t, "the first call waits for its session", func() bool { return len(peer.sent("initialize")) == 1 })
	r.reload(t, Options{Servers: []ServerOptions{{Name: "peer", Open: open}}})
	close(hold)
	if why := <-first; why != "" {
		t.Errorf("the call itself told %q", why)
	}
	<-ended
	for _, want := range []string{"replaced", ""} {
		if why := told(); why != want {
			t.Errorf("a result after the reload told %q, want %q", why, want)
		}
	}
}
