package router

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/gateway/internal/access"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/status"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// newRoomRig returns a groupRig whose member old hides and renames something, and has a tool of the
// name that the member new has too. A third one, gone, can't be reached.
func newRoomRig(t *testing.T, change func(*Options)) *groupRig {
	m, err := names.New(names.Options{Tools: names.Part{Deny: []string{"secret*"}, Rename: map[string]string{"a": "alpha"}}, Resources: names.Part{Deny: []string{"x://vault*"}}})
	if err != nil {
		t.Fatal(err)
	}
	r := newGroupRig(t, func(o *Options) {
		o.Servers[0].Access = access.Options{Names: m}
		gone := ServerOptions{Name: "gone", Open: func(c mcp.Changes) (mcp.Back, error) {
			return legacyback.New(legacyback.Options{Options: memberOptions("gone", "http://127.0.0.1:1/the-secret", o, c)})
		}}
		o.Servers = slices.Insert(o.Servers, 2, gone)
		o.Servers[3].Group = groupOf("old", "new", "gone")
		o.Secrets = redact.New("the-secret")
		if change != nil {
			change(o)
		}
	})
	r.old.answer("tools/list", `{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"secret_x","inputSchema":{"type":"object"}},{"name":"n1","inputSchema":{"type":"object"}},{"name":"odd name","inputSchema":{"type":"object"}}]}`)
	r.old.answer("resources/list", `{"resources":[{"uri":"x://one","name":"n"},{"uri":"x://vault/1","name":"v"}]}`)
	return r
}

// linesOf returns the names of a member, a line each.
func linesOf(m *status.RoomMember) (all []string) {
	for _, n := range m.Names {
		line := n.Kind + " " + n.Own + " as " + n.Name
		if n.Cut {
			line += ", cut"
		}
		if n.Why != "" {
			line = n.Kind + " " + n.Own + ": " + n.Why
		}
		all = append(all, line)
	}
	return all
}

// A room has what is known, and nobody is asked for it.
func TestG18RoomOfAGroup(t *testing.T) {
	t.Parallel()
	r := newRoomRig(t, nil)
	room := r.g.Room("all")
	if got := fmt.Sprint(room.Name, " ", room.Prefix, " ", room.NameMax, " ", room.OnMissing, " ", room.Patience, " ", room.StartPatience, " ", len(room.Members)); got != "all always 64 leave_out 1m0s 1m0s 3" {
		t.Errorf("the room is %s", got)
	}
	for _, m := range room.Members {
		if m.Tools.Known || len(m.Names) > 0 || m.Names == nil {
			t.Errorf("before anybody has listed it is known of %s: %+v", m.Name, m)
		}
	}
	if n := len(r.old.sent("tools/list")); n > 0 {
		t.Errorf("looking has asked the server %d times", n)
	}
	v := r.visit(t, spec.Modern, "all")
	listed := v.ask(spec.MethodToolsList, "", "").body
	v.ask(spec.MethodResourcesList, "", "")
	before := len(r.old.sent("tools/list")) + len(r.old.sent("initialize"))
	room = r.g.Room("all")
	old, gone := &room.Members[0], &room.Members[2]
	cut, _ := names.InGroup("old", "old", "odd name", 64)
	want := []string{"tool a as old__alpha", "tool n1 as old__n1", "tool odd name as " + cut + ", cut", "tool secret_x: tools of old hides it", "resource x://one as x://one", "resource x://vault/1: resources of old hides it"}
	if got := linesOf(old); !slices.Equal(got, want) {
		t.Errorf("old has\n%q, want\n%q", got, want)
	}
	if old.State != "ready" || old.Era != "legacy" || old.Revision != "2025-11-25" || old.Prefix != "old" || old.Tools != (status.Given{Known: true, Shown: 3, Hidden: 1}) || old.Prompts.Known {
		t.Errorf("old is %+v", old)
	}
	if n := &room.Members[1]; n.Era != "modern" || n.Revision != string(spec.LatestModern) || n.Tools.Shown == 0 {
		t.Errorf("new is %+v", n)
	}
	if gone.State != "down" || gone.Failed.IsZero() || gone.Error == "" || strings.Contains(gone.Error, "the-secret") || gone.Tools.Known {
		t.Errorf("gone is %+v", gone)
	}
	wantShown(t, room, listed)
	if again := len(r.old.sent("tools/list")) + len(r.old.sent("initialize")); again != before {
		t.Errorf("looking has asked the server %d times", again-before)
	}
}

// wantShown wants the tools of a room to be those of a list.
func wantShown(t *testing.T, room *status.Room, listed string) {
	t.Helper()
	n := 0
	for _, m := range room.Members {
		for _, name := range m.Names {
			if name.Kind == "tool" && name.Name != "" {
				n++
				if !strings.Contains(listed, `"name":"`+name.Name+`"`) {
					t.Errorf("%s is in the room and not in the list %s", name.Name, listed)
				}
			}
		}
	}
	if all := strings.Count(listed, `"inputSchema"`); all != n {
		t.Errorf("the room has %d tools, the list has %d: %s", n, all, listed)
	}
}

// Without prefixes, too, it has the names that clients see, whoever is preferred.
func TestG02RoomOfAGroupWithoutPrefixes(t *testing.T) {
	t.Parallel()
	for _, prefer := range []string{"", "new", "old"} {
		r := newRoomRig(t, func(o *Options) {
			g := o.Servers[3].Group
			g.Bare, g.Require = true, false
			if prefer != "" {
				g.Prefer = map[string]string{"n1": prefer}
			}
		})
		listed := r.visit(t, spec.Legacy, "all").ask(spec.MethodToolsList, "", "").body
		wantShown(t, r.g.Room("all"), listed)
	}
}

// A server has no room, and the status says which are groups.
func TestRoomOfNoGroup(t *testing.T) {
	t.Parallel()
	r := newGroupRig(t, nil)
	if r.g.Room("old") != nil || r.g.Room("none") != nil {
		t.Error("what is no group has a room")
	}
	for _, s := range r.g.Status(false).Servers {
		if want := map[bool][]string{true: {"old", "new"}}[s.Name == "all"]; !slices.Equal(s.Members, want) {
			t.Errorf("the members of %s are %v, want %v", s.Name, s.Members, want)
		}
	}
}
