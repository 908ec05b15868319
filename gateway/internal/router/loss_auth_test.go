package router

import (
	"net/http"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// Of two principals whose clients look the same, the one that loses state by a reload is told,
// once; the other, who had listed only, is not, though it asks first.
func TestU05ReloadTellsThePrincipal(t *testing.T) {
	t.Parallel()
	losses, p := upstream.NewLosses(), newPeer(t)
	p.answer("tools/call", say("done"))
	p.answer("tools/list", `{"tools":[]}`)
	open := func(c mcp.Changes) (mcp.Back, error) {
		return legacyback.New(legacyback.Options{Options: upstream.Options{
			Name: "peer", URL: p.URL, Changes: c, Losses: losses, Settings: settings.Server{Linger: time.Millisecond}, ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`),
		}})
	}
	g := newGuardedRig(t, nil, func(o *Options) { o.Losses, o.Servers[0].Open = losses, open })
	told := func(who, method string) string {
		t.Helper()
		rest, tool := "", ""
		if method == "tools/call" {
			rest, tool = `"name":"a"`, "a"
		}
		h := modernHeaders(method, tool)
		h.Set("Authorization", "Bearer "+g.issuer.Token(resource, map[string]any{"sub": who}))
		got := g.send(t, http.MethodPost, modernBody("1", method, rest), h)
		result := wire.Get([]byte(got.body), "result")
		if got.status != http.StatusOK || result == nil {
			t.Fatalf("%s of %s = %d %s", method, who, got.status, got.body)
		}
		why, _ := wire.GetString(wire.Get(result, "_meta"), spec.MetaStateLost)
		return why
	}
	for i, step := range []struct{ who, method, want string }{
		{"ada", "tools/call", ""}, {"bob", "tools/list", ""}, {"", "reload", ""},
		{"bob", "tools/call", ""}, {"ada", "tools/call", "replaced"}, {"ada", "tools/call", ""}, {"bob", "tools/call", ""}, {"", "reload", ""},
		{"bob", "tools/call", "replaced"}, {"bob", "tools/call", ""}, {"ada", "tools/list", "replaced"}, {"ada", "tools/call", ""},
	} {
		if step.method == "reload" {
			g.reload(t, Options{Servers: []ServerOptions{{Name: "peer", Open: open, PublicURL: resource}}, Auth: g.jwt, Losses: losses})
		} else if why := told(step.who, step.method); why != step.want {
			t.Errorf("step %d: %s of %s told %q, want %q", i, step.method, step.who, why, step.want)
		}
	}
}
