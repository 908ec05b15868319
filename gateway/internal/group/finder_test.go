package group

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group/owners"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func bare(o *Options) { o.Bare = true }

// namesOf returns the names of a list, and its missing members.
func namesOf(t testing.TB, r *rig, req *mcp.Request) string {
	t.Helper()
	return namesIn(req.Method, []byte(listing(t, r, req)))
}

// namesIn returns the names or URIs in an answer to a list, and who is missing.
func namesIn(method string, text []byte) string {
	var names []string
	for e := range wire.Elements(wire.Get(text, spec.Array(method))) {
		name, ok := wire.GetString(e, "uri")
		if !ok {
			name, _ = wire.GetString(e, "name")
		}
		names = append(names, name)
	}
	if missing := wire.Get(wire.Get(text, "_meta"), spec.MetaMissing); missing != nil {
		names = append(names, "missing", string(missing))
	}
	return strings.Join(names, " ")
}

// wantOwner checks who has a tool: "docs", or what the error says.
func wantOwner(t *testing.T, r *rig, name, want string) {
	t.Helper()
	m, own, err := r.finder.ownerOf(t.Context(), request(spec.MethodToolsCall, `{"name":"x","_meta":{"progressToken":7}}`), policy.Tool, name)
	switch {
	case err == nil && (m.Name != want || own != name):
		t.Errorf("%s is %q of %q, want that of %q", name, own, m.Name, want)
	case err != nil && !strings.Contains(err.Error(), want):
		t.Errorf("%s: %v, want %s", name, err, want)
	}
}

// A name of two members is shown by none, and refused with both of them, unless one is preferred.
func TestG02ContestedNames(t *testing.T) {
	files, docs, notes := newFake("files", "read", "search", "write"), newFake("docs", "search", "find"), newFake("notes", "find", "search")
	r := newRig(t, bare, files, docs, notes)
	wantOwner(t, r, "read", "files")
	wantOwner(t, r, "search", `the tool "search" of group "all" is that of several servers: "files", "docs", "notes"; who runs mcpbridge`)
	wantOwner(t, r, "find", `"docs", "notes"`)
	wantOwner(t, r, "Read", "Unknown tool: Read")
	if got := namesOf(t, r, request(spec.MethodToolsList, "")); got != "read write" {
		t.Errorf("listed: %s", got)
	}
	r = newRig(t, func(o *Options) {
		o.Bare, o.Prefer = true, map[string]string{"search": "docs", "find": "files", "write": "notes"}
	}, files, docs, notes)
	wantOwner(t, r, "search", "docs")
	wantOwner(t, r, "find", `"docs", "notes"`) // files has none
	wantOwner(t, r, "write", "files")
	if got := namesOf(t, r, request(spec.MethodToolsList, "")); got != "read write search" {
		t.Errorf("listed: %s", got)
	}
}

// A name is found as it is, however it is written: one with a backslash is not what another one is
// written as.
func TestG02NamesAsTheyAreWritten(t *testing.T) {
	r := newRig(t, bare, newFake("files", `re\u0061d`), newFake("docs", "read"))
	for range 2 { // the second time, what was read is at hand
		for name, want := range map[string]string{`"read"`: "docs read", `"re\u0061d"`: "docs read", `"re\\u0061d"`: `files re\\u0061d`} {
			if got, err := r.call(t.Context(), request(spec.MethodToolsCall, `{"name":`+name+`}`)); err != nil || !strings.Contains(got, want) {
				t.Errorf("%s = %s, %v, want %s", name, got, err, want)
			}
		}
	}
}

// All pages of all members are read before one name is shown, and a page that was read is not
// read again for a call.
func TestG02AllPagesAreReadFirst(t *testing.T) {
	files, docs := newFake("files"), newFake("docs")
	files.pages[spec.MethodToolsList] = [][]string{toolItems("a", "b"), toolItems("c")}
	docs.pages[spec.MethodToolsList] = [][]string{toolItems("d"), toolItems("e"), toolItems("a")}
	r := newRig(t, bare, files, docs)
	text := listing(t, r, request(spec.MethodToolsList, ""))
	if got := namesOf(t, r, request(spec.MethodToolsList, "")); got != "b c d e" || wire.Get([]byte(text), "nextCursor") != nil {
		t.Errorf("listed: %s, %s", got, text)
	}
	asked := len(docs.requests())
	for name, want := range map[string]string{"c": "files", "e": "docs", "a": `"files", "docs"`} {
		wantOwner(t, r, name, want)
	}
	if again := len(docs.requests()); again != asked {
		t.Errorf("docs was asked %d times more", again-asked)
	}
}

// The names of a member that is away stay its own, at a reload and for new sessions, too. One that
// was never reached owns nothing.
func TestG02NamesOfMembersThatAreAway(t *testing.T) {
	files, docs := newFake("files", "read", "search"), newFake("docs", "search", "find")
	r := newRig(t, bare, files, docs)
	docs.change(func(f *fake) { f.err = errors.New("connection refused") })
	wantOwner(t, r, "search", "files") // for all that is known
	wantOwner(t, r, "find", `Unknown tool: find; what these servers have is not known: "docs"`)
	docs.change(func(f *fake) { f.err = nil })
	wantOwner(t, r, "find", "docs")
	wantOwner(t, r, "search", `"files", "docs"`)

	for name, away := range map[string]func(*fake){
		"down": func(f *fake) { f.gone, f.err = false, errors.New("connection refused") },
		"gone": func(f *fake) { f.gone, f.err = true, nil },
	} {
		docs.change(away)
		for scope, b := range map[string]*rig{"all/1": r, "all/session 2": r} {
			req := as(request(spec.MethodToolsCall, ""), scope)
			if m, _, err := b.finder.ownerOf(t.Context(), req, policy.Tool, "search"); err == nil || !strings.Contains(err.Error(), `"files", "docs"`) {
				t.Errorf("%s, %s: search is that of %q, %v", name, scope, m.Name, err)
			}
			m, _, err := b.finder.ownerOf(t.Context(), req, policy.Tool, "find")
			if err == nil && m.Name != "docs" || err != nil && !strings.Contains(err.Error(), `server "docs" of group "all"`) || err == nil && docs.gone {
				t.Errorf("%s, %s: find is that of %q, %v", name, scope, m.Name, err)
			}
			if got := namesOf(t, b, as(request(spec.MethodToolsList, ""), scope)); got != `read missing ["docs"]` {
				t.Errorf("%s, %s: listed %s", name, scope, got)
			}
		}
	}
	// Another principal's names are its own: nothing is remembered for this one.
	req := as(request(spec.MethodToolsCall, ""), "all/3")
	req.Principal = "ada"
	if m, _, err := r.finder.ownerOf(t.Context(), req, policy.Tool, "search"); err != nil || m.Name != "files" {
		t.Errorf("another principal: search is that of %q, %v", m.Name, err)
	}
	g := newGroup(r.Back, r.audience)
	if err := g.Update(r.opts); err != nil {
		t.Fatal(err)
	}
	r.Back = g.back.Load()
	t.Cleanup(r.Back.close)
	wantOwner(t, r, "search", `"files", "docs"`)
}

// A memory is a Memory that lasts longer than a Back.
type memory struct {
	mu    sync.Mutex
	lists map[string]string
}

func newMemory() *memory { return &memory{lists: make(map[string]string)} }

func (m *memory) Recall(member string, req *mcp.Request, method string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if items, ok := m.lists[member+" "+string(req.Principal)+" "+method]; ok {
		return []byte(items)
	}
	return nil
}

func (m *memory) Remember(member string, req *mcp.Request, method string, items []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lists[member+" "+string(req.Principal)+" "+method] += string(items)
}

// What is remembered is stored when it has changed, and before it is too old.
func TestG02WhatIsRememberedStaysYoung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		remembers := newMemory()
		files := newFake("files", "read")
		r := newRig(t, func(o *Options) { o.Memory = remembers }, files)
		for range 20 {
			namesOf(t, r, request(spec.MethodToolsList, ""))
			time.Sleep(time.Hour)
		}
		if n := strings.Count(remembers.lists["files anonymous tools/list"], "read"); n != 4 {
			t.Errorf("stored %d times in 20 hours, want 4", n)
		}
		files.change(func(f *fake) { f.pages[spec.MethodToolsList] = [][]string{toolItems("write")} })
		namesOf(t, r, request(spec.MethodToolsList, ""))
		if got := remembers.lists["files anonymous tools/list"]; !strings.HasSuffix(got, "["+toolItems("write")[0]+"]") {
			t.Errorf("remembered last: %s, want the list that has changed", got)
		}
	})
}

// After a restart, the names of a member that is away are still its own.
func TestG02NamesAreRememberedAfterARestart(t *testing.T) {
	files, docs := newFake("files", "read", "search"), newFake("docs", "search", "find")
	remembers := newMemory()
	with := func(o *Options) { o.Bare, o.Memory = true, remembers }
	r := newRig(t, with, files, docs)
	for range 3 { // it is stored once
		namesOf(t, r, request(spec.MethodToolsList, ""))
	}
	want := map[string]string{"files anonymous tools/list": "[" + strings.Join(toolItems("read", "search"), ",") + "]", "docs anonymous tools/list": "[" + strings.Join(toolItems("search", "find"), ",") + "]"}
	if !maps.Equal(remembers.lists, want) {
		t.Errorf("remembered: %v", remembers.lists)
	}
	docs.change(func(f *fake) { f.err = errors.New("connection refused") })
	r = newRig(t, with, files, docs)
	wantOwner(t, r, "search", `"files", "docs"`)
	wantOwner(t, r, "find", "docs")
}

// Each profile has names of its own, and what it has is read again after a change, at a name that
// is not known, and after a time.
func TestG02NamesAreOfOneProfile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, docs := newFake("files", "read"), newFake("docs", "find")
		docs.serve = func(_ context.Context, req *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
			if strings.HasSuffix(req.Profile.Scope, "/2") && req.Method == spec.MethodToolsList {
				return docs.result(`{"tools":[` + toolItems("read")[0] + `]}`), nil
			}
			return nil, nil
		}
		r := newRig(t, bare, files, docs)
		first, second := request(spec.MethodToolsCall, ""), as(request(spec.MethodToolsCall, ""), "all/2")
		for range 2 {
			if m, _, err := r.finder.ownerOf(t.Context(), first, policy.Tool, "read"); err != nil || m.Name != "files" {
				t.Errorf("the first has read of %q, %v", m.Name, err)
			}
			if m, _, err := r.finder.ownerOf(t.Context(), second, policy.Tool, "read"); err == nil || !strings.Contains(err.Error(), `"files", "docs"`) {
				t.Errorf("the second has read of %q, %v", m.Name, err)
			}
		}
		asked := func() int { return len(files.requests()) }
		before := asked()
		if before != 2 {
			t.Errorf("files was asked %d times, want once for each", before)
		}
		wantOwner(t, r, "read", "files")
		r.listChanged("all/1", fanout.PromptsListChanged)
		r.listChanged("all/2", fanout.ToolsListChanged)
		if wantOwner(t, r, "read", "files"); asked() != before {
			t.Error("a change of something else has the list read again")
		}
		files.change(func(f *fake) { f.pages[spec.MethodToolsList] = [][]string{toolItems("write")} })
		wantOwner(t, r, "write", "files") // not known before
		files.change(func(f *fake) { f.pages[spec.MethodToolsList] = [][]string{toolItems("find")} })
		wantOwner(t, r, "find", "docs")
		r.listChanged("all/1", fanout.ToolsListChanged)
		wantOwner(t, r, "find", `"files", "docs"`)
		files.change(func(f *fake) { f.pages[spec.MethodToolsList] = [][]string{toolItems("read")} })
		time.Sleep(owners.MaxAge)
		wantOwner(t, r, "find", "docs")
		files.change(func(f *fake) { f.pages[spec.MethodToolsList] = [][]string{toolItems("find")} })
		newGroup(r.Back, r.audience).Look()
		wantOwner(t, r, "find", `"files", "docs"`)
	})
}

// A member that hangs delays no call of another one: what is known is used while the lists are
// read again.
func TestG02CallsDoNotWaitForMembersThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, docs := newFake("files", "read"), newFake("docs", "find")
		docs.serve = silent
		r := newRig(t, bare, files, docs)
		namesOf(t, r, request(spec.MethodToolsList, ""))
		begin := time.Now()
		for range 60 {
			wantOwner(t, r, "read", "files")
			time.Sleep(time.Second)
		}
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("60 calls took %v", took-time.Minute)
		}
		if n := len(docs.requests()); n < 7 || n > 13 {
			t.Errorf("what hangs was asked %d times in a minute", n)
		}
		docs.change(func(f *fake) { f.serve, f.pages[spec.MethodToolsList] = nil, [][]string{toolItems("read")} })
		time.Sleep(owners.UnsureAge)
		wantOwner(t, r, "read", "files")
		synctest.Wait() // it was read in the meantime
		wantOwner(t, r, "read", `"files", "docs"`)
	})
}

// What was read while a list changed is soon read again.
func TestG02AChangeWhileListsAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, docs := newFake("files", "read"), newFake("docs", "find")
		files.serve = after(time.Second)
		r := newRig(t, bare, files, docs)
		time.AfterFunc(time.Second/2, func() {
			docs.change(func(f *fake) { f.pages[spec.MethodToolsList] = [][]string{toolItems("read")} })
			r.listChanged("all/1", fanout.ToolsListChanged)
		})
		wantOwner(t, r, "read", "files")
		time.Sleep(owners.UnsureAge)
		wantOwner(t, r, "read", "files")
		time.Sleep(time.Second)
		synctest.Wait()
		wantOwner(t, r, "read", `"files", "docs"`)
	})
}

// Principals may share a profile, and yet have other names: a member's policy decides.
func TestG02NamesAreOfOnePrincipal(t *testing.T) {
	files, docs := newFake("files", "read"), newFake("docs", "find")
	docs.serve = func(_ context.Context, req *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
		if req.Principal == "ada" && req.Method == spec.MethodToolsList {
			return docs.result(`{"tools":[` + toolItems("read")[0] + `]}`), nil
		}
		return nil, nil
	}
	r := newRig(t, bare, files, docs)
	req := request(spec.MethodToolsCall, "")
	req.Principal = "ada"
	for range 2 {
		wantOwner(t, r, "read", "files")
		if m, _, err := r.finder.ownerOf(t.Context(), req, policy.Tool, "read"); err == nil || !strings.Contains(err.Error(), `"files", "docs"`) {
			t.Errorf("ada has read of %q, %v", m.Name, err)
		}
	}
	if n := len(files.requests()); n != 2 {
		t.Errorf("files was asked %d times, want once for each", n)
	}
}

// A group of one server has its names as they are, whatever it lists.
func TestG02OneServerHasAllNames(t *testing.T) {
	files := newFake("files", "read")
	r := newRig(t, bare, files)
	wantOwner(t, r, "hidden from lists", "files")
	if asked := files.requests(); len(asked) > 0 {
		t.Errorf("it was asked %v", asked)
	}
	if got := namesOf(t, r, request(spec.MethodToolsList, "")); got != "read" {
		t.Errorf("listed: %s", got)
	}
}

// Whoever comes while the lists are read waits for them.
func TestG02ListsAreReadOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, docs := newFake("files", "read"), newFake("docs", "find")
		files.serve = func(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
			time.Sleep(time.Second)
			return nil, nil
		}
		r := newRig(t, bare, files, docs)
		for range 100 {
			go func() { wantOwner(t, r, "read", "files") }() // ends with the test
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if n := len(files.requests()); n != 1 {
			t.Errorf("100 calls have the list read %d times", n)
		}
	})
}
