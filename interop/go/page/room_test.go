package page

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// groups are a member that hides and renames something, and two groups of members of both eras, of
// which one is away. Without prefixes several names are those of two.
func groups() string {
	return fmt.Sprintf(`
  notes:
    command: %s
    tools: {deny: ["led*"], rename: {touch: poke}}
    resources: {deny: ["res://item/01*"]}
groups:
  all: {servers: [notes, modern, gone]}
  bare: {servers: [notes, modern, gone], prefix: never, prefer: {text: modern}, on_missing: leave_out, patience: 3s}
`, programs.Server)
}

// A room is a group as /api/groups has it.
type room struct {
	Name, Endpoint, Prefix, Patience string
	Members                          []struct {
		Name, Prefix, State, Error, Era, Revision string
		Tools, Prompts, Resources, Templates      struct {
			Known         bool
			Shown, Hidden int
		}
		Names []struct{ Kind, Name, Own, Why string }
	}
}

// lines returns the names of a member, a line each.
func (r *room) lines(member string) (all []string) {
	for _, m := range r.Members {
		if m.Name == member {
			for _, n := range m.Names {
				all = append(all, strings.TrimRight(n.Kind+" "+n.Own+" as "+n.Name+" "+n.Why, " "))
			}
		}
	}
	return all
}

// The room of a group shows its members, what each gives, and what is hidden and why, and looking at
// it asks no server. The line of a call has the group, the member, and the name there.
func TestG18RoomOfAGroup(t *testing.T) {
	w := newWorld(t, groups())
	b := newBrowser(t)
	b.login(w)
	b.view("groups")
	b.sees("all", "bare", "notes, modern, gone")
	b.opens(`main a[href="#groups/all"]`, "#endpoint")
	b.sees("Group all", "not listed yet", "connection refused", "No client has listed the group yet")
	var r room
	w.get(t, "/api/groups/all", &r)
	if m := r.Members[2]; r.Endpoint != w.base+"/mcp/all" || m.Name != "gone" || m.State != "down" || len(m.Names)+len(r.Members[0].Names) > 0 {
		t.Errorf("before anybody has listed it the room is %+v", r)
	}

	old, now := w.connect(t, "bare", "2025-11-25", "legacy-sdk", nil), w.connect(t, "all", "2026-07-28", "modern-sdk", nil)
	for _, cs := range []*mcp.ClientSession{old, now} {
		listAll(t, cs)
	}
	b.do(chromedp.Reload(), chromedp.WaitVisible("#endpoint"))
	b.sees("notes__poke", "touch", "modern__text", "notes__greet", "tools of notes hides it", "resources of notes hides it", "2025-11-25", "2026-07-28", "down", "res://item/00")
	b.copies(w.base + "/mcp/all")
	b.picture("room")
	eval[bool](b, `location.hash = 'groups/bare'; true`)
	b.sees("Group bare", "never", "3s", "notes and modern have it; say with prefer whose it is", "prefer says that it is that of modern", "last tried", "connection refused")
	w.get(t, "/api/groups/bare", &r)
	for _, want := range []string{"tool touch as poke", "tool ledger as  tools of notes hides it", "tool ask as  notes and modern have it; say with prefer whose it is", "tool text as  prefer says that it is that of modern"} {
		if got := r.lines("notes"); !slices.Contains(got, want) {
			t.Errorf("notes has no line %q: %q", want, got)
		}
	}
	if m := r.Members[1]; m.Era != "modern" || m.Revision != "2026-07-28" || !m.Tools.Known || m.Tools.Hidden < 2 || !slices.Contains(r.lines("modern"), "tool text as text") {
		t.Errorf("modern is %+v", m)
	}
	eval[bool](b, `location.hash = 'groups/none'; true`)
	b.provokes.Store(true) // the console tells of the 404
	b.sees("there is no group of this name")
	b.view("live")
	call(t, now, "notes__poke", map[string]any{"uris": []string{"res://item/00"}})
	b.sees("notes__poke", "all at notes", "there touch")
	b.filter("touch")
	rig.Until(t, patience, "the filter", func() string {
		if n := eval[int](b, `document.querySelectorAll('.lines li[data-type="call"]').length`); n != 1 {
			return fmt.Sprintf("%d calls have the own name", n)
		}
		return ""
	})
	b.do(chromedp.Click(`.lines li[data-type="call"] a`), chromedp.WaitVisible(".sides"))
	b.sees("Group", "Name there")
}

// listAll has a client list everything, as hosts do.
func listAll(t testing.TB, cs *mcp.ClientSession) {
	t.Helper()
	for range cs.Tools(t.Context(), nil) {
	}
	for range cs.Prompts(t.Context(), nil) {
	}
	for range cs.Resources(t.Context(), nil) {
	}
	for range cs.ResourceTemplates(t.Context(), nil) {
	}
}

// copies copies the endpoint by its button. Where a page may not write the clipboard, the text is
// selected.
func (b *browser) copies(url string) {
	b.t.Helper()
	b.do(chromedp.Click(".endpoint button"))
	rig.Until(b.t, patience, "copying", func() string {
		if text := b.text(".endpoint button"); text == "Copy" {
			return "the button says nothing"
		}
		return ""
	})
	if got := eval[string](b, `(() => { const f = document.getElementById('endpoint'); return f.value.slice(f.selectionStart, f.selectionEnd); })()`); got != url {
		b.t.Errorf("the selected text is %q, want %q", got, url)
	}
}

// The list of groups and a room are for everybody, on a phone, too.
func TestAxeOfRooms(t *testing.T) {
	w := newWorld(t, groups())
	listAll(t, w.connect(t, "bare", "2026-07-28", "modern-sdk", nil))
	b := newBrowser(t)
	b.login(w)
	b.bringAxe()
	for _, s := range screens {
		b.screen(s.wide, s.high, s.dark)
		for id, ready := range map[string]string{"groups": `main a[href="#groups/bare"]`, "groups/bare": "#endpoint"} {
			t.Run(s.name+"/"+id, func(t *testing.T) {
				b := b.in(t)
				eval[bool](b, fmt.Sprintf(`location.hash = %q; true`, id))
				b.do(chromedp.WaitVisible(`#views a[href="#groups"][aria-current]`), chromedp.WaitVisible(ready))
				b.picture(strings.ReplaceAll(id, "/", "-") + "-" + s.name)
				b.judge()
			})
		}
	}
}
