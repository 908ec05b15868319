package profile

import (
	"reflect"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/budget"
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
		{}, {Experimental: true}, {ClientInfo: "client"}, {Extensions: settings.Extensions{Hide: []string{"x"}}}, {Tasks: settings.Tasks{Mode: "off"}},
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
				if got := adapted(member, assigned(t, group, req)); got.Scope != want.Scope || got.Principal != want.Principal || got.Share != want.Share || got.Single != want.Single ||
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
		shared := adapted(member, assigned(t, group, req))
		if own := assigned(t, member, req); shared.Scope != own.Scope || shared.Revision != "" {
			t.Errorf("at a modern member the profile is %+v, want %+v", shared, own)
		}
		for _, era = range []spec.Era{spec.Unknown, spec.Legacy} {
			p := adapted(member, assigned(t, group, req))
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
	if p := adapted(single, mcp.Profile{Scope: "all/1", Revision: "2025-11-25"}); p.Scope != "files/shared" {
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

// Profiles of clients who use a member again and again are at hand, and no other one is taken for
// them: not that of another client of their place, nor their own at a server of another era.
func TestRecents(t *testing.T) {
	era := spec.Legacy
	member := newProfiles(t, "files", era, false, settings.Server{})
	member.era = func() spec.Era { return era }
	clients := []mcp.Profile{
		{Scope: "all/1a", Principal: "ada", Capabilities: []byte(`{"extensions":{"` + spec.ExtensionTasks + `":{}}}`)}, {Scope: "all/2a", Principal: "bob", Capabilities: []byte(`{}`)},
		{Scope: "all/3a", Principal: "eve", Revision: "2025-11-25", ClientInfo: []byte(`{"name":"c"}`)}, {Scope: "all/4b", Principal: "eve", Revision: "2025-06-18"}, {},
	}
	for range 100 {
		for _, era = range []spec.Era{spec.Legacy, spec.Modern} {
			for i, at := range clients {
				fresh := newProfiles(t, "files", era, false, settings.Server{})
				at.Share = mcp.Share{Principal: mcp.Principal(strings.Repeat("x", i))}
				if got, want := adapted(member, at), adapted(fresh, at); !reflect.DeepEqual(got, want) {
					t.Fatalf("%v: the profile for %+v is %+v, want %+v", era, at, got, want)
				}
			}
		}
	}
	member.account = budget.New(1).Account("x") // has no room: nothing is at hand that is not cached
	at := mcp.Profile{Scope: "all/5f"}
	if adapted(member, at); adapted(member, at).Scope == "" || member.recent.place(at.Scope).Load() != nil {
		t.Error("a profile is at hand that is not cached")
	}
}

// BenchmarkAdapt derives the profile of a member.
func BenchmarkAdapt(b *testing.B) {
	p, err := New(Options{Scope: "files", Era: func() spec.Era { return spec.Legacy }})
	if err != nil {
		b.Fatal(err)
	}
	at := mcp.Profile{Scope: "all/0123456789abcdef01234567", Principal: "ada", Capabilities: []byte(`{"elicitation":{}}`)}
	b.ReportAllocs()
	for b.Loop() {
		if adapted(p, at).Scope == "" {
			b.Fatal("no scope")
		}
	}
}

// adapted returns a profile of a group as one of p.
func adapted(p *Profiles, at mcp.Profile) mcp.Profile {
	p.Adapt(&at)
	return at
}
