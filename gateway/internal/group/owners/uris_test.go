package owners

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// What is remembered has bounds.
func TestG05MemoryIsBounded(t *testing.T) {
	m, err := NewURIs()
	if err != nil {
		t.Fatal(err)
	}
	var p mcp.Profile
	names := make([]uint64, maxListed)
	for i := range names {
		names[i] = uint64(i)
	}
	for i := range 100 {
		m.set(knownAt(&p, fmt.Sprint(i), "list"), Mentions{names: names}, time.Now())
	}
	if m.size > maxListBytes || m.lists.Len() != maxListBytes/8/maxListed {
		t.Errorf("%d lists of %d bytes, the limit is %d", m.lists.Len(), m.size, maxListBytes)
	}
	m.set(knownAt(&p, "99", "list"), Mentions{names: append(names, maxListed)}, time.Now())
	if l := m.get(knownAt(&p, "99", "list")); l.known || l.names != nil {
		t.Error("a list that is too long is known")
	}
	for i := range 100 {
		m.Outdate(&p, fmt.Sprint(i), "list")
		m.lists.Remove(knownAt(&p, fmt.Sprint(i), "list"))
	}
	if m.size != 0 {
		t.Errorf("without lists: %d bytes", m.size)
	}
}

// What members list comes before what they have handed out, and that before templates.
func TestG05WhoHasAURI(t *testing.T) {
	m, err := NewURIs()
	if err != nil {
		t.Fatal(err)
	}
	var p mcp.Profile
	all := []string{"files", "docs", "notes"}
	list := func(member, method string, names ...string) {
		m.Listed(&p, member, method, time.Now(), m.Look(method, nil, names))
	}
	want := func(uri string, want ...int) {
		t.Helper()
		if got := m.Holders(&p, all, uri); !slices.Equal(got, want) {
			t.Errorf("Holders(%s) = %v, want %v", uri, got, want)
		}
	}
	want("doc:1")
	for _, member := range []string{"docs", "notes"} {
		list(member, spec.MethodResourcesTemplates, "doc:{n}")
	}
	want("doc:1", 1, 2)
	m.HandOut(&p, "notes", "doc:1")
	want("doc:1", 2)
	m.HandOut(&p, "gone", "doc:2")
	want("doc:2", 1, 2)
	if i, sure := m.Lister(&p, all, "doc:{n}", true); i != 1 || sure {
		t.Errorf("the lister of a template is %d, %v", i, sure)
	}
	list("docs", spec.MethodResourcesList, "doc:1", "doc:0")
	want("doc:1", 1)
	if _, sure := m.Lister(&p, all, "doc:1", false); sure {
		t.Error("it is certain that files does not list it")
	}
	list("files", spec.MethodResourcesList)
	if i, sure := m.Lister(&p, all, "doc:1", false); i != 1 || !sure {
		t.Errorf("the lister is %d, %v", i, sure)
	}
	m.Change(p.Scope, spec.MethodResourcesList)
	if i, sure := m.Lister(&p, all, "doc:1", false); i != 1 || sure {
		t.Errorf("after a change: the lister is %d, %v", i, sure)
	}
}

// Tools count for apps if these may call them, and so do the URIs of apps.
func TestG06AppsInLists(t *testing.T) {
	m, err := NewURIs()
	if err != nil {
		t.Fatal(err)
	}
	var p mcp.Profile
	page := m.Look(spec.MethodToolsList, []byte(`[
		{"name":"a","_meta":{"ui":{"resourceUri":"ui://a"}}},{"name":"b"},
		{"name":"c","_meta":{"ui":{"visibility":["model"]}}},{"name":"d","_meta":{"ui":{"visibility":["app"]}}}]`), nil)
	if !slices.Equal(page.Apps, []string{"ui://a"}) {
		t.Errorf("the apps are %q", page.Apps)
	}
	m.Listed(&p, "files", spec.MethodToolsList, time.Now(), page, m.Look(spec.MethodToolsList, []byte(`[{"name":"e","_meta":{"ui":{}}}]`), nil))
	for name, want := range map[string]int{"a": 1, "b": 0, "c": 0, "d": 1, "e": 1} {
		if got := m.ForApps(&p, []string{"docs", "files"}, name); len(got) != want || want > 0 && got[0] != 1 {
			t.Errorf("ForApps(%s) = %v", name, got)
		}
	}
}

// URIs in results are those of links, embedded resources and contents, and of no other text.
func TestG05ResultsHandOutURIs(t *testing.T) {
	m, err := NewURIs()
	if err != nil {
		t.Fatal(err)
	}
	for method, body := range map[string]string{
		spec.MethodToolsCall:     `{"content":[{"type":"resource_link","uri":"x:1"},{"type":"resource","resource":{"uri":"x:2"}},{"type":"text","text":"{\"uri\":\"x:3\"}"}]}`,
		spec.MethodResourcesRead: `{"contents":[{"uri":"x:1"},{"uri":"x:2"}],"more":[{"uri":"x:3"}]}`,
		spec.MethodPromptsGet:    `{"messages":[{"content":{"uri":"x:1"}},{"content":{"resource":{"uri":"x:2"}}},{"uri":"x:3"}]}`,
		spec.MethodTaskGet:       `{"result":{"content":[{"uri":"x:1"},{"uri":"x:2"}]},"content":[{"uri":"x:3"}]}`,
		spec.MethodComplete:      `{"completion":{"values":[{"uri":"x:3"}]}}`,
	} {
		req := &mcp.Request{Method: method, Profile: mcp.Profile{Scope: method}}
		m.NoteResult(req, "files", mcp.NewResult([]byte(body), nil))
		for uri, want := range map[string]int{"x:1": 0, "x:2": 0, "x:3": -1} {
			if method == spec.MethodComplete {
				want = -1
			}
			if got := m.HandedBy(&req.Profile, []string{"files"}, uri); got != want {
				t.Errorf("%s: %s was handed out by %d, want %d", method, uri, got, want)
			}
		}
	}
}

// A list is read once for all who want it, and not again for a while.
func TestG05ListsAreLearnedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := NewURIs()
		if err != nil {
			t.Fatal(err)
		}
		var p mcp.Profile
		var reads atomic.Int64
		learn := func(client context.Context, can bool) {
			m.Learn(client, client, &p, []string{"files"}, []string{spec.MethodResourcesList}, func(ctx context.Context, _ int, method string) bool {
				reads.Add(1)
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
					return false
				}
				if can {
					m.Listed(&p, "files", method, time.Now())
				}
				return can
			})
		}
		want := func(want int64) {
			t.Helper()
			if got := reads.Load(); got != want {
				t.Errorf("the list was read %d times, want %d", got, want)
			}
		}
		leaving, leave := context.WithTimeout(t.Context(), time.Millisecond)
		defer leave()
		learn(leaving, true)
		want(1)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { learn(t.Context(), true) })
		}
		all.Wait()
		want(2)
		time.Sleep(FreshFor)
		learn(t.Context(), false)
		learn(t.Context(), true)
		want(3)
		if !m.Knows(&p, "files", spec.MethodResourcesList) {
			t.Error("a list that could not be read again is known no more")
		}
		time.Sleep(FreshFor)
		if !m.Outdate(&p, "files", spec.MethodResourcesList) || m.Knows(&p, "files", spec.MethodResourcesList) {
			t.Error("an old list is not outdated")
		}
	})
}

// A list that changes while it is read is read again by whoever waits for it.
func TestG05ListThatChangesWhileItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := NewURIs()
		if err != nil {
			t.Fatal(err)
		}
		var p mcp.Profile
		var has atomic.Pointer[[]string]
		has.Store(&[]string{})
		learn := func() {
			m.Learn(t.Context(), t.Context(), &p, []string{"files"}, []string{spec.MethodResourcesList}, func(_ context.Context, _ int, method string) bool {
				begun, names := time.Now(), *has.Load()
				time.Sleep(time.Second)
				m.Listed(&p, "files", method, begun, m.Look(method, nil, names))
				return true
			})
		}
		var first sync.WaitGroup
		first.Go(learn)
		time.Sleep(time.Second / 2)
		has.Store(&[]string{"u:new"})
		m.Change(p.Scope, spec.MethodResourcesList)
		learn() // it waits for the first one
		first.Wait()
		if i, _ := m.Lister(&p, []string{"files"}, "u:new", false); i != 0 {
			t.Error("what is new is not known")
		}
	})
}

// A list that changes whenever it is read is read twice for all that want it.
func TestG05ListThatChangesAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := NewURIs()
		if err != nil {
			t.Fatal(err)
		}
		var p mcp.Profile
		var reads atomic.Int32
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				m.Learn(t.Context(), t.Context(), &p, []string{"files"}, []string{spec.MethodResourcesList}, func(_ context.Context, _ int, method string) bool {
					reads.Add(1)
					begun := time.Now()
					time.Sleep(time.Second)
					m.Change(p.Scope, method)
					time.Sleep(time.Second)
					m.Listed(&p, "files", method, begun, m.Look(method, nil, []string{"u:1"}))
					return true
				})
			})
		}
		all.Wait()
		if n := reads.Load(); n != 2 {
			t.Errorf("read %d times, want 2", n)
		}
	})
}
