package router

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
)

// The endpoint of a group is a resource of its own: it has metadata, takes tokens that are for it,
// and challenges with its own URL, also for what a member's server wants. A member gets the
// caller with its request.
func TestG17GroupIsAResourceOfItsOwn(t *testing.T) {
	t.Parallel()
	const ofGroup = "https://mcp.example.com/mcp/all"
	back := &scopedBack{}
	var saw []*mcp.Identity
	g := newGuardedRig(t, nil, func(o *Options) {
		o.Servers[0].Open = func(mcp.Changes) (mcp.Back, error) { return back, nil }
		o.Servers[0].Saw = func(id *mcp.Identity) { saw = append(saw, id) }
		o.Servers = append(o.Servers, ServerOptions{Name: "all", Group: groupOf("peer"), PublicURL: ofGroup})
	})
	const where = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp/all"
	call := func(path, token string) answer {
		h := modernHeaders("tools/call", "peer__a")
		if token != "" {
			h.Set("Authorization", "Bearer "+token)
		}
		return g.sendTo(t, http.MethodPost, path, modernBody("1", "tools/call", `"name":"peer__a"`), "", h)
	}
	if got := call("/mcp/all", ""); got.status != http.StatusUnauthorized || !strings.Contains(got.header.Get("WWW-Authenticate"), where) {
		t.Errorf("without a token = %d %q, want its own metadata", got.status, got.header.Get("WWW-Authenticate"))
	}
	if got := g.sendTo(t, http.MethodGet, strings.TrimPrefix(where, "https://mcp.example.com"), "", "", http.Header{}); !strings.Contains(got.body, `"resource":"`+ofGroup+`"`) {
		t.Errorf("the metadata is %d %s", got.status, got.body)
	}
	member, group := g.issuer.Token(resource, nil), g.issuer.Token(ofGroup, nil)
	if got := call("/mcp/all", member); got.status != http.StatusUnauthorized {
		t.Errorf("a token for the member opens the group: %d %s", got.status, got.body)
	}
	if got := call("/mcp/peer", group); got.status != http.StatusUnauthorized {
		t.Errorf("a token for the group opens the member: %d %s", got.status, got.body)
	}
	got := call("/mcp/all", group)
	if want := `Bearer error="insufficient_scope", scope="mcp:use files:write", resource_metadata="` + where + `"`; got.status != http.StatusForbidden || got.header.Get("WWW-Authenticate") != want {
		t.Errorf("what the member's server wants = %d %q, want 403 %q", got.status, got.header.Get("WWW-Authenticate"), want)
	}
	if len(back.got) != 1 || back.got[0].Identity == nil || back.got[0].Identity.Token() != group || len(saw) == 0 || saw[len(saw)-1].Token() != group {
		t.Errorf("the member got %d requests, and saw %d callers, want that of the group's client", len(back.got), len(saw))
	}
}

// A server with the login of one principal is for that one in a group, too: others see nothing of
// it, and can't use it.
func TestG17LoginOfOnePrincipal(t *testing.T) {
	t.Parallel()
	r := newGroupRig(t, func(o *Options) {
		o.Auth = auth.Func(func(r *http.Request) (mcp.Principal, error) { return mcp.Principal(r.Header.Get(whoHeader)), nil })
		o.Servers[0].OnlyFor = alice
	})
	for _, era := range bothEras {
		for who, sees := range map[string]bool{alice: true, bob: false} {
			v := r.visitAs(t, era, "all", who)
			if got := v.ask(spec.MethodToolsList, "", ""); strings.Contains(got.body, `"old__a"`) != sees || !strings.Contains(got.body, `"new__n`) {
				t.Errorf("%v: tools/list of %s = %d %s", era, who, got.status, got.body)
			}
			if got := v.call("old__a", ""); strings.Contains(got.body, "of old") != sees || !sees && !strings.Contains(got.body, "on behalf of another principal") {
				t.Errorf("%v: a call of %s = %d %s", era, who, got.status, got.body)
			}
		}
	}
}
