package profile

import (
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// newProfiles returns the Profiles of a server, or of a group.
func newProfiles(t *testing.T, name string, era spec.Era, group bool, s settings.Server) *Profiles {
	t.Helper()
	p, err := New(Options{Scope: name, Era: func() spec.Era { return era }, Group: group, Settings: s})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func assigned(t *testing.T, p *Profiles, req mcp.Request) mcp.Profile {
	t.Helper()
	if err := p.Assign(&req); err != nil {
		t.Fatal(err)
	}
	return req.Profile
}

// A modern client has the profile at a member that it has at the member's own endpoint, whatever
// the member makes of capabilities, names and principals.
func TestG13ModernClientsShareWithTheMembersEndpoint(t *testing.T) {
	const all = `{"sampling":{"tools":{}},"experimental":{"e":{}},"extensions":{"x":{},"` + spec.ExtensionTasks + `":{}}}`
	group := newProfiles(t, "all", spec.Unknown, true, settings.Server{ClientInfo: "client"})
	for _, set := range []settings.Server{
		{}, {Experimental: true}, {ClientInfo: "client"}, {Extensions: settings.Extensions{Hide: []string{"x"}}}, {Tasks: "off"},
		{Isolation: settings.IsolateNothing}, {Isolation: settings.IsolateRequest},
	} {
		for _, era := range []spec.Era{spec.Unknown, spec.Legacy, spec.Modern} {
			member := newProfiles(t, "files", era, false, set)
			req := mcp.Request{
				Era: spec.Modern, Revision: spec.LatestModern, Principal: "ada", Capabilities: []byte(all), ClientInfo: []byte(`{"version":"1","name":"c"}`),
				Share: mcp.Share{Principal: "ada", Charged: true},
			}
			want := assigned(t, member, req)
			for range 2 { // the second one is remembered
				if got := member.Of(assigned(t, group, req)); got.Scope != want.Scope || got.Principal != want.Principal || got.Share != want.Share || got.Single != want.Single ||
					string(got.Capabilities) != string(want.Capabilities) || string(got.ClientInfo) != string(want.ClientInfo) || got.Revision != want.Revision {
					t.Errorf("%+v, %v: the profile is %+v, want %+v", set, era, got, want)
				}
			}
		}
	}
}

// A legacy client has a profile of its own at each legacy member, with its revision, and shares
// that of others at a modern one.
func TestG14LegacyClientsHaveSessionsOfTheirOwn(t *testing.T) {
	group := newProfiles(t, "all", spec.Unknown, true, settings.Server{})
	era := spec.Unknown
	member := newProfiles(t, "files", era, false, settings.Server{})
	member.era = func() spec.Era { return era }
	scopes := make(map[string]string)
	for session, revision := range map[string]spec.Revision{"one": "2025-11-25", "two": "2025-06-18"} {
		req := mcp.Request{Era: spec.Legacy, Session: session, Revision: revision, Principal: "ada", ClientInfo: []byte(`{"name":"c"}`)}
		era = spec.Modern
		shared := member.Of(assigned(t, group, req))
		if own := assigned(t, member, req); shared.Scope != own.Scope || shared.Revision != "" {
			t.Errorf("at a modern member the profile is %+v, want %+v", shared, own)
		}
		for _, era = range []spec.Era{spec.Unknown, spec.Legacy} {
			p := member.Of(assigned(t, group, req))
			if p.Revision != revision || string(p.ClientInfo) != `{"name":"c"}` || p.Scope == shared.Scope || scopes[p.Scope] != "" && scopes[p.Scope] != session {
				t.Errorf("at a member of era %v the profile is %+v", era, p)
			}
			scopes[p.Scope] = session
		}
	}
	if len(scopes) != 2 {
		t.Errorf("two sessions have the profiles %v", scopes)
	}
	single := newProfiles(t, "files", spec.Legacy, false, settings.Server{Isolation: settings.IsolateNothing})
	single.single = true
	if p := single.Of(mcp.Profile{Scope: "all/1", Revision: "2025-11-25"}); p.Scope != "files/shared" {
		t.Errorf("at a command that all share the scope is %s", p.Scope)
	}
}

// Profiles of groups are told apart, whether their scopes are short or long.
func TestMemberKeys(t *testing.T) {
	long := strings.Repeat("x", 64)
	seen := make(map[key]string)
	for _, scope := range []string{"a", "ab", long, long + "a", long + "b"} {
		for _, tasks := range []bool{false, true} {
			for _, session := range []bool{false, true} {
				k := memberKey(scope, tasks, session)
				if other, ok := seen[k]; ok {
					t.Errorf("%s, %v, %v and %s have one key", scope, tasks, session, other)
				}
				seen[k] = scope
			}
		}
	}
	p := parts{principal: "a"}
	if k := p.key(); k.len < -1 {
		t.Errorf("the key of parts is %d", k.len)
	}
}
