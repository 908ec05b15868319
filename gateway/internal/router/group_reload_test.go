package router

import (
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// reloaded returns the options of the rig with some of its servers kept, and the group with these
// members; nil for the ones that it has.
func (r *lossRig) reloaded(kept []string, members ...string) Options {
	o := r.options
	o.Servers = slices.Clone(r.options.Servers)
	for i := range o.Servers {
		switch s := &o.Servers[i]; {
		case s.Name == "all":
			s.Kept, s.Group = true, nil
			if members != nil {
				s.Group = groupOf(members...)
			}
		case slices.Contains(kept, s.Name):
			o.Servers[i] = ServerOptions{Name: s.Name, Kept: true}
		}
	}
	return o
}

// A reload that replaces a member, takes one out or adds one ends neither the sessions of a
// group's clients nor calls that others serve; clients are told that the lists have changed, and
// what was replaced is used at once.
func TestG18SessionsOutliveReloads(t *testing.T) {
	t.Parallel()
	r := newLossRig(t, nil)
	v := r.visit(t, spec.Legacy, "all")
	get := newLines(t, r.openAt(t, http.MethodGet, v.path, "", v.headers("", "")))
	if got := v.ask("resources/subscribe", "", `"uri":"docs:a"`); got.code() != 0 {
		t.Fatalf("subscribing = %s", got.body)
	}
	hold := make(chan struct{})
	r.docs.hold(func(*legacytest.ServerCall) string { <-hold; return say("late") })
	late := make(chan answer, 1)
	go func() { late <- v.call("docs__x", "") }()
	r.eventually(t, "the call is there", func() bool { return r.docs.called() == 1 })

	opened := r.files.sessionsOpened()
	r.reload(t, r.reloaded([]string{"docs", "new"})) // files is replaced
	get.want(toolsOfAll)
	if got := v.call("files__x", ""); !strings.Contains(got.body, "of files") || r.files.sessionsOpened() == opened {
		t.Errorf("a call of the server in its place = %s", got.body)
	}
	r.reload(t, r.reloaded([]string{"files", "docs", "new"}, "docs", "new"))
	get.want(toolsOfAll)
	if got := v.call("files__x", ""); !strings.Contains(got.body, "Unknown tool") {
		t.Errorf("a call of a member that is gone = %s", got.body)
	}
	r.reload(t, r.reloaded([]string{"files", "docs", "new"}, "files", "docs", "new"))
	get.want(toolsOfAll)
	if got := v.call("files__x", ""); !strings.Contains(got.body, "of files") {
		t.Errorf("a call of a member that has come = %s", got.body)
	}
	close(hold)
	if got := <-late; !strings.Contains(got.body, "late") {
		t.Errorf("the call that was on its way = %d %s", got.status, got.body)
	}
	r.docs.change("docs:a")
	get.want(updateOf("docs:a"))
	if n := r.docs.sessionsOpened(); n != 1 {
		t.Errorf("%d sessions with a member that nothing has happened to, want 1", n)
	}
}

// What a group knows of its members' servers is that of the servers which are served now: it finds
// one that a reload has added, and keeps nothing of those before.
func TestG18MembersAreThoseOfNow(t *testing.T) {
	t.Parallel()
	var added ServerOptions
	r := newGroupRig(t, func(o *Options) {
		added = o.Servers[1]
		o.Servers = []ServerOptions{o.Servers[0], {Name: "all", Group: groupOf("old")}}
	})
	v := r.visit(t, spec.Modern, "all")
	if got := v.call("old__a", ""); !strings.Contains(got.body, "of old") {
		t.Fatalf("a call = %d %s", got.status, got.body)
	}
	before := weak.Make(r.g.now())
	o := r.opts
	o.Servers = []ServerOptions{{Name: "old", Kept: true}, added, {Name: "all", Kept: true, Group: groupOf("old", "new")}}
	r.reload(t, o)
	r.eventually(t, "the servers of before are given up", func() bool { runtime.GC(); return before.Value() == nil })
	if got := v.call("new__a", ""); got.code() != 0 || strings.Contains(got.body, "can't be asked") {
		t.Errorf("a call of a member that was added = %d %s", got.status, got.body)
	}
}

// A group that can't be made of other members stays as it is.
func TestG18ReloadOfAGroupIsRefused(t *testing.T) {
	t.Parallel()
	r := newGroupRig(t, nil)
	o := r.opts
	o.Servers = []ServerOptions{{Name: "old", Kept: true}, {Name: "new", Kept: true}, {Name: "all", Kept: true, Group: groupOf("old", "old")}}
	if err := r.g.Reload(o); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("Reload = %v, want that a member is there twice", err)
	}
	o.Servers[1].Group = groupOf("old")
	o.Servers[2].Group = nil
	if err := r.g.Reload(o); err == nil || !strings.Contains(err.Error(), "is to be kept as a group, and is none") {
		t.Errorf("Reload = %v, want that a server is no group", err)
	}
	o.Servers[1].Group, o.Default = nil, "none"
	if err := r.g.Reload(o); err == nil || !strings.Contains(err.Error(), `there is no server "none"`) {
		t.Errorf("Reload = %v, want that the default is missing", err)
	}
	for _, era := range bothEras {
		if got := r.visit(t, era, "all").call("old__a", ""); !strings.Contains(got.body, "of old") {
			t.Errorf("%v: a call = %d %s", era, got.status, got.body)
		}
	}
}

// A group has a state of its own, and is told of as a server, with its members as its followers
// know them.
func TestG18SnapshotHasGroups(t *testing.T) {
	t.Parallel()
	r := newGroupRig(t, nil)
	r.visit(t, spec.Modern, "all").call("old__a", "")
	states := make(map[string]string)
	for _, s := range r.g.Snapshot().Servers {
		states[s.Name] = s.State
	}
	if len(states) != 3 || states["all"] == "" {
		t.Errorf("the states are %v", states)
	}
	r.eventually(t, "the group is ready", func() bool { return r.g.Snapshot().Servers[2].State == "ready" })
}
