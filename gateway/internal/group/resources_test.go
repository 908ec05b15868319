package group

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group/owners"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// withResources returns a member that lists URIs and has others, too.
func withResources(name string, listed []string, more ...string) *fake {
	f := newFake(name)
	f.pages[spec.MethodResourcesList] = [][]string{resourceItems(listed...)}
	f.serve = func(_ context.Context, req *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
		uri, _ := wire.GetString(req.Params, memberURI)
		if req.Method == spec.MethodResourcesRead && slices.Contains(more, uri) {
			return f.result(`{"contents":[{"text":` + string(wire.Quote(name)) + `}]}`), nil
		}
		return nil, nil
	}
	return f
}

// read reads a URI and returns which member has it.
func (r *rig) read(t *testing.T, req *mcp.Request) (string, error) {
	t.Helper()
	text, err := r.call(t.Context(), req)
	if err != nil {
		return "", err
	}
	for content := range wire.Elements(wire.Get([]byte(text), "contents")) {
		if by, ok := wire.GetString(content, "text"); ok {
			return by, nil
		}
	}
	t.Fatalf("read = %s", text)
	return "", nil
}

func reads(uri string) *mcp.Request {
	return request(spec.MethodResourcesRead, `{"uri":`+string(wire.Quote(uri))+`}`)
}

// asks returns which of a method f was asked.
func (f *fake) asks(method string) (out []string) {
	for _, r := range f.requests() {
		if rest, ok := strings.CutPrefix(r, method); ok {
			out = append(out, strings.TrimSpace(rest))
		}
	}
	return out
}

// A URI is that of the first member that lists it, on whatever page, and goes there as it is.
func TestG05ListedURIs(t *testing.T) {
	a, b, c := withResources("a", []string{"x:/a"}, "x:/c"), withResources("b", []string{"x:/b", "x:/both"}, "x:/c"), withResources("c", []string{"x:/c", "x:/both"})
	c.pages[spec.MethodResourcesList] = append(c.pages[spec.MethodResourcesList], resourceItems("x:/second"), resourceItems("x:/thi%72d"))
	r := newRig(t, nil, a, b, c)
	for _, tt := range [][2]string{{"x:/c", "c"}, {"x:/a", "a"}, {"x:/b", "b"}, {"x:/both", "b"}, {"x:/second", "c"}, {"x:/thi%72d", "c"}} {
		if by, err := r.read(t, reads(tt[0])); by != tt[1] || err != nil {
			t.Errorf("%s is read from %q, %v, want %s", tt[0], by, err, tt[1])
		}
	}
	for _, f := range []*fake{a, b, c} {
		if n := len(f.asks(spec.MethodResourcesList)); n > 3 || f != c && n != 1 {
			t.Errorf("the list of %s was asked for %d times", f.name, n)
		}
	}
	// Another spelling is another URI.
	for _, uri := range []string{"x:/third", "X:/a", "x:/%61", "x:/a/", "x:/ａ", "x:/a\u0000"} {
		_, err := r.read(t, reads(uri))
		wantError(t, uri, err, spec.CodeInvalidParams, "Resource not found")
	}
	req := reads("x:/nobody")
	req.Era = spec.Legacy
	_, err := r.call(t.Context(), req)
	wantError(t, "a legacy client", err, spec.CodeResourceNotFound, "Resource not found")
	const odd = `{ "u\u0072i":"x:\/a" ,"x":1.0}`
	if _, err := r.read(t, request(spec.MethodResourcesRead, odd)); err != nil || string(a.last(t).Params) != odd {
		t.Errorf("the member got %s, %v", a.last(t).Params, err)
	}
}

// What the member that lists a URI says of it is the answer.
func TestG05ListersAnswer(t *testing.T) {
	a, b := withResources("a", []string{"x:/a"}), withResources("b", nil, "x:/a")
	a.serve = func(_ context.Context, req *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
		if req.Method == spec.MethodResourcesRead {
			return nil, wire.Errorf(-32000, "the disk is broken")
		}
		return nil, nil
	}
	r := newRig(t, nil, a, b)
	_, err := r.read(t, reads("x:/a"))
	wantError(t, "a URI that is listed", err, -32000, "the disk is broken")
	// Also if it is away.
	a.change(func(f *fake) { f.gone = true })
	_, err = r.read(t, reads("x:/a"))
	wantError(t, "a member that is away", err, spec.CodeInternal, `"a"`)
	if got := b.asks(spec.MethodResourcesRead); len(got) > 0 {
		t.Errorf("b was asked %q", got)
	}
}

// A list that was read long ago is read again, once it is found wrong.
func TestG05ListsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := withResources("a", []string{"x:/1"}), withResources("b", nil)
		r := newRig(t, nil, a, b)
		if by, err := r.read(t, reads("x:/1")); by != "a" {
			t.Fatalf("read from %q, %v", by, err)
		}
		a.change(func(f *fake) { f.pages[spec.MethodResourcesList] = [][]string{resourceItems("x:/2")} })
		b.change(func(f *fake) { f.pages[spec.MethodResourcesList] = [][]string{resourceItems("x:/1")} })
		time.Sleep(owners.FreshFor)
		for uri, want := range map[string]string{"x:/1": "b", "x:/2": "a"} {
			if by, err := r.read(t, reads(uri)); by != want {
				t.Errorf("%s is read from %q, %v, want %s", uri, by, err, want)
			}
		}
	})
}

// A list that was read long ago is found wrong by errors that may mean that the member lacks the URI. It is
// not asked twice after others, which are its answer.
func TestG05ErrorsThatFindAListWrong(t *testing.T) {
	for _, tt := range []struct {
		name  string
		err   error
		asked int
	}{
		{"invalid params", wire.Errorf(spec.CodeInvalidParams, "Resource not found"), 2},
		{"not found", wire.Errorf(spec.CodeResourceNotFound, "Resource not found"), 2},
		{"internal", wire.Errorf(spec.CodeInternal, "the disk is broken"), 1},
		{"can't be reached", errors.New("connection refused"), 1},
		{"refused", mcp.Refuse(spec.CodeInvalidParams, "not for you"), 1},
		{"refused for now", mcp.RefuseForNow("it is starting"), 1},
		{"login", &mcp.LoginError{Err: wire.Errorf(spec.CodeInvalidRequest, "log in")}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := withResources("a", []string{"x:/1"}), withResources("b", nil)
				r := newRig(t, nil, a, b)
				if by, err := r.read(t, reads("x:/1")); by != "a" {
					t.Fatalf("read from %q, %v", by, err)
				}
				time.Sleep(owners.FreshFor)
				before := len(a.asks(spec.MethodResourcesRead))
				a.change(func(f *fake) {
					f.serve = func(_ context.Context, req *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
						if req.Method == spec.MethodResourcesRead {
							return nil, tt.err
						}
						return nil, nil
					}
				})
				if _, err := r.read(t, reads("x:/1")); !errors.Is(err, tt.err) {
					t.Errorf("read = %v, want %v", err, tt.err)
				}
				if asked := len(a.asks(spec.MethodResourcesRead)) - before; asked != tt.asked {
					t.Errorf("it was asked %d times, want %d", asked, tt.asked)
				}
			})
		})
	}
}

// The patience bounds all that is asked to find a URI: lists that are read, twice if one was wrong, and
// members that are asked one after another.
func TestG05PatienceBoundsTheWholeSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs, a := withResources("hangs", nil), withResources("a", []string{"x:/1"})
		r := newRig(t, nil, hangs, a)
		if by, err := r.read(t, reads("x:/1")); by != "a" {
			t.Fatalf("read from %q, %v", by, err)
		}
		hangs.change(func(f *fake) {
			f.serve = func(ctx context.Context, _ *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
		})
		a.change(func(f *fake) { f.pages[spec.MethodResourcesList] = nil })
		time.Sleep(owners.FreshFor)
		r.uris.Change("all/1", spec.MethodResourcesTemplates)
		r.uris.Outdate(&reads("").Profile, "hangs", spec.MethodResourcesList)
		begun := time.Now()
		_, err := r.read(t, reads("x:/1"))
		wantError(t, "what nobody has any more", err, spec.CodeInvalidParams, "hangs")
		if took := time.Since(begun); took != DefaultPatience {
			t.Errorf("it took %v, want %v", took, DefaultPatience)
		}
	})
}

// A list whose change was told is read again at once. What is known of a member that is away
// stays.
func TestG05ListsWhoseChangeWasTold(t *testing.T) {
	a, b := withResources("a", []string{"x:/1", "x:/2"}), withResources("b", nil, "x:/1", "x:/2")
	r := newRig(t, nil, a, b)
	if by, err := r.read(t, reads("x:/1")); by != "a" {
		t.Fatalf("read from %q, %v", by, err)
	}
	a.change(func(f *fake) { f.pages[spec.MethodResourcesList] = [][]string{resourceItems("x:/2")} })
	r.listChanged("all/2", fanout.ResourcesListChanged)
	r.listChanged("all/1", fanout.ToolsListChanged)
	if _, err := r.read(t, reads("x:/1")); err == nil {
		t.Error("the list of another profile, or of something else, was read again")
	}
	r.listChanged("all/1", fanout.ResourcesListChanged)
	if by, err := r.read(t, reads("x:/1")); by != "b" {
		t.Errorf("after the change read from %q, %v", by, err)
	}
	r.listChanged("all/1", fanout.ResourcesListChanged)
	a.change(func(f *fake) { f.gone = true })
	_, err := r.read(t, reads("x:/2"))
	wantError(t, "of a member that is away", err, spec.CodeInternal, `"a"`)
	if n := r.uris.Holders(&reads("").Profile, r.roster.names, "x:/2"); !slices.Equal(n, []int{0}) {
		t.Errorf("it is held at %v", n)
	}
}

// Who follows a URI asks those that have it. The lists are read as the client, also when its
// params are gone.
func TestG05Holders(t *testing.T) {
	a, b, c := withResources("a", nil), withResources("b", []string{"x:/b"}), withResources("c", nil)
	c.pages[spec.MethodResourcesTemplates] = [][]string{{`{"uriTemplate":"doc:///{n}","name":"d"}`}}
	a.pages[spec.MethodResourcesTemplates] = c.pages[spec.MethodResourcesTemplates]
	r := newRig(t, nil, a, b, c)
	req := request(spec.MethodListen, "")
	req.ClientInfo, req.Capabilities = []byte(`{"name":"c"}`), []byte(`{"roots":{}}`)
	r.uris.HandOut(&req.Profile, r.roster.names[1], "doc:///1")
	r.listings.learn(t.Context(), DefaultPatience, req, spec.MethodResourcesList, spec.MethodResourcesTemplates)
	for uri, want := range map[string][]int{"x:/b": {1}, "doc:///1": {1}, "doc:///2": {0, 2}, "x:/nobody": nil} {
		if got := r.uris.Holders(&req.Profile, r.roster.names, uri); !slices.Equal(got, want) {
			t.Errorf("%s is held at %v, want %v", uri, got, want)
		}
	}
	const meta = `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/clientInfo":{"name":"c"}}}`
	if sent := b.last(t); string(sent.Params) != meta {
		t.Errorf("b was asked %s with %s", sent.Method, sent.Params)
	}
	one := newRig(t, nil, withResources("a", nil))
	if _, err := one.read(t, reads("x:/any")); err == nil || len(one.members["a"].requests()) != 1 {
		t.Errorf("a group of one asked %q", one.members["a"].requests())
	}
}

// What is known outlives a reload, also if members have other places.
func TestG05AReloadForgetsNothing(t *testing.T) {
	a, b := withResources("a", nil, "x:/new"), withResources("b", nil, "x:/new")
	r := newRig(t, nil, a, b)
	r.uris.HandOut(&reads("").Profile, "b", "x:/new")
	next := newRigAfter(t, r.Back, nil, withResources("c", nil, "x:/new"), b, a)
	if by, err := next.read(t, reads("x:/new")); by != "b" {
		t.Errorf("read from %q, %v", by, err)
	}
}

// Of members that list one URI the first one has it, which is told.
func TestG05OneURIOfTwoMembers(t *testing.T) {
	var log bytes.Buffer
	a, b := withResources("a", []string{"x:/a", "x:/both"}), withResources("b", []string{"x:/both", "x:/b"})
	r := newRig(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) }, a, b)
	got, err := r.call(t.Context(), request(spec.MethodResourcesList, `{}`))
	if uris := strings.Count(got, "x:/"); err != nil || uris != 3 || strings.Count(got, "x:/both") != 1 {
		t.Errorf("the list is %s, %v", got, err)
	}
	if by, err := r.read(t, reads("x:/both")); by != "a" {
		t.Errorf("read from %q, %v", by, err)
	}
	if !strings.Contains(log.String(), "server=b") || !strings.Contains(log.String(), "item=x:/both") {
		t.Errorf("the log has %q", log.String())
	}
}

// Of a list that is too long it is not known who has what is in it, which counts as a limit and is told once.
func TestG05ListsThatAreTooLong(t *testing.T) {
	var log bytes.Buffer
	limits := &limitCount{}
	a, b := withResources("a", nil), withResources("b", nil)
	var items []string
	for i := range 257 {
		items = append(items, fmt.Sprintf(`{"uriTemplate":"x:/%d/{n}","name":"t"}`, i))
	}
	b.pages[spec.MethodResourcesTemplates] = [][]string{items[:256]}
	r := newRig(t, func(o *Options) {
		o.Metrics, o.Logger = limits, slog.New(slog.NewTextHandler(&log, nil))
	}, a, b)
	list := func(wantHits, wantLines int) {
		t.Helper()
		if _, err := r.call(t.Context(), request(spec.MethodResourcesTemplates, `{}`)); err != nil {
			t.Fatal(err)
		}
		hits, lines := strings.Count(string(limits.keys), "listed_uris "), strings.Count(log.String(), "server=b method=resources/templates/list limit=256")
		if hits != wantHits || lines != wantLines {
			t.Errorf("of %d templates: the limits %q, want %d; the log %s", len(b.pages[spec.MethodResourcesTemplates][0]), limits.keys, wantHits, log.String())
		}
	}
	list(0, 0)
	b.change(func(f *fake) { f.pages[spec.MethodResourcesTemplates] = [][]string{items} })
	list(1, 1)
	list(2, 1)
}

// A client that reads all pages sees each URI once, from the first member that lists it, on whichever
// page that does.
func TestG05OneURIOnSeveralPages(t *testing.T) {
	for _, tt := range []struct {
		method string
		item   func(uri string) string
	}{
		{spec.MethodResourcesList, func(uri string) string { return resourceItems(uri)[0] }},
		{spec.MethodResourcesTemplates, func(uri string) string { return `{"uriTemplate":"` + uri + `","name":"t"}` }},
	} {
		a, b, c := withResources("a", nil), withResources("b", nil), withResources("c", nil)
		pages := func(f *fake, all ...[]string) {
			f.pages[tt.method] = nil
			for _, uris := range all {
				var page []string
				for _, uri := range uris {
					page = append(page, tt.item(uri))
				}
				f.pages[tt.method] = append(f.pages[tt.method], page)
			}
		}
		pages(a, []string{"x:/a1", "x:/a2"}, []string{"x:/ab", "x:/ac"}, []string{"x:/abc"})
		pages(b, []string{"x:/ab", "x:/abc", "x:/bc", "x:/b1"})
		pages(c, []string{"x:/c1", "x:/abc"}, []string{"x:/bc", "x:/a1"}, []string{"x:/ac", "x:/c2"})
		r := newRig(t, nil, a, b, c)
		read := func() (all []string) {
			req := request(tt.method, `{}`)
			for {
				got, err := r.call(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range wire.NamedElements(wire.Get([]byte(got), spec.Array(tt.method)), listOf(tt.method).name) {
					all = append(all, wire.Unquote(v))
				}
				if wire.Get([]byte(got), "nextCursor") == nil {
					return all
				}
				req = listAt(tt.method, got)
			}
		}
		want := []string{"x:/a1", "x:/a2", "x:/bc", "x:/b1", "x:/c1", "x:/ab", "x:/ac", "x:/abc", "x:/c2"}
		if got := read(); !slices.Equal(got, want) {
			t.Errorf("%s: the pages have %q, want %q", tt.method, got, want)
		}
		// What a member lists no longer is another one's.
		a.change(func(*fake) { pages(a, []string{"x:/a2"}, []string{"x:/ab"}) })
		r.listChanged("all/1", fanout.ResourcesListChanged)
		want = []string{"x:/a2", "x:/abc", "x:/bc", "x:/b1", "x:/c1", "x:/ab", "x:/a1", "x:/ac", "x:/c2"}
		if got := read(); !slices.Equal(got, want) {
			t.Errorf("%s: after a change the pages have %q, want %q", tt.method, got, want)
		}
	}
}

// A member that has handed out a URI is asked for it first, for the same profile.
func TestG05HandedOutURIs(t *testing.T) {
	for what, answer := range map[string]struct{ method, params, body string }{
		"a link":                {spec.MethodToolsCall, `{"name":"b__make"}`, `{"content":[{"type":"text","text":"x"},{"type":"resource_link","uri":"x:/new","name":"n"}]}`},
		"an embedded resource":  {spec.MethodToolsCall, `{"name":"b__make"}`, `{"content":[{"type":"resource","resource":{"uri":"x:/new","text":""}}]}`},
		"a prompt's":            {spec.MethodPromptsGet, `{"name":"b__make"}`, `{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"x:/new","text":""}}}]}`},
		"a resource in another": {spec.MethodResourcesRead, `{"uri":"x:/dir"}`, `{"contents":[{"uri":"x:/dir/1","text":"b"},{"uri":"x:/new","text":""}]}`},
		"a task's":              {spec.MethodTaskGet, `{"taskId":"%t"}`, `{"taskId":"t","status":"completed","result":{"content":[{"type":"resource_link","uri":"x:/new","name":"n"}]}}`},
	} {
		a, b := withResources("a", []string{"x:/a"}, "x:/new"), withResources("b", []string{"x:/dir"}, "x:/new")
		r := newRig(t, nil, a, b)
		own := b.serve
		b.serve = func(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
			if res, err := own(ctx, req, c); res != nil || req.Method != answer.method {
				return res, err
			}
			return b.result(answer.body), nil
		}
		if by, _ := r.read(t, reads("x:/new")); by != "a" {
			t.Errorf("before %s: read from %q", what, by)
		}
		if _, err := r.call(t.Context(), request(answer.method, strings.Replace(answer.params, "%t", r.sealing.seal(sealedTask, "b", "t"), 1))); err != nil {
			t.Fatal(err)
		}
		if by, err := r.read(t, reads("x:/new")); by != "b" {
			t.Errorf("after %s: read from %q, %v", what, by, err)
		}
		if by, _ := r.read(t, as(reads("x:/new"), "all/2")); by != "a" {
			t.Errorf("after %s: by another profile read from %q", what, by)
		}
		// It only orders the asking.
		b.change(func(f *fake) { f.gone = true })
		if by, err := r.read(t, reads("x:/new")); by != "a" {
			t.Errorf("after %s was away: read from %q, %v", what, by, err)
		}
	}
}

// A member whose template matches comes before others, and takes its time if it is the only one.
func TestG05TemplatesComeBeforeOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := withResources("a", nil, "doc:///1"), withResources("b", nil, "doc:///1")
		b.pages[spec.MethodResourcesTemplates] = [][]string{{`{"uriTemplate":"x:/{y}","name":"x"}`}, {`{"uriTemplate":"doc:///{n}","name":"d"}`}}
		r := newRig(t, nil, a, b)
		own := b.serve
		b.serve = func(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
			if req.Method == spec.MethodResourcesRead {
				select {
				case <-time.After(time.Minute):
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
			}
			return own(ctx, req, c)
		}
		if by, err := r.read(t, reads("doc:///1")); by != "b" {
			t.Errorf("read from %q, %v", by, err)
		}
		b.change(func(f *fake) {
			f.serve = func(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
				if req.Method == spec.MethodResourcesRead {
					time.Sleep(time.Minute) // and then it does not have it
				}
				return nil, nil
			}
		})
		if by, err := r.read(t, reads("doc:///1")); by != "a" {
			t.Errorf("where b does not have it: read from %q, %v", by, err)
		}
	})
}

// Others are asked one after another, at most eight of those that have resources, within the
// group's patience.
func TestG05OthersAreAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []*fake
		for i := range 12 {
			f := withResources(fmt.Sprintf("m%d", i), nil, fmt.Sprintf("x:/%d", i))
			if i == 3 {
				f = newFake("m3", "tool")
			}
			all = append(all, f)
		}
		r := newRig(t, nil, all...)
		if by, err := r.read(t, reads("x:/8")); by != "m8" {
			t.Errorf("the eighth is not asked: %q, %v", by, err)
		}
		_, err := r.read(t, reads("x:/9"))
		wantError(t, "the ninth", err, spec.CodeInvalidParams, "Resource not found")
		if got := all[3].asks(spec.MethodResourcesRead); len(got) > 0 {
			t.Errorf("a member without resources was asked %q", got)
		}
		// One that hangs.
		own := all[1].serve
		all[1].change(func(f *fake) {
			f.serve = func(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
				if req.Method == spec.MethodResourcesRead {
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}
				return own(ctx, req, c)
			}
		})
		begun := time.Now()
		_, err = r.read(t, reads("x:/8"))
		wantError(t, "behind one that hangs", err, spec.CodeInvalidParams, "not all servers of group all have answered: m1")
		if took := time.Since(begun); took != DefaultPatience {
			t.Errorf("it took %v, want %v", took, DefaultPatience)
		}
		if by, err := r.read(t, reads("x:/0")); by != "m0" {
			t.Errorf("before one that hangs: %q, %v", by, err)
		}
		// One that can't be asked.
		all[1].change(func(f *fake) { f.serve, f.err = nil, wire.Errorf(spec.CodeInternal, "m1 is down") })
		if by, err := r.read(t, reads("x:/8")); by != "m8" {
			t.Errorf("behind one that is down: %q, %v", by, err)
		}
		_, err = r.read(t, reads("x:/x"))
		wantError(t, "while one is down", err, spec.CodeInvalidParams, "not all servers of group all have answered: m1")
	})
}

// What a member denies is not asked of another one, and neither is what a login would give.
func TestG05DenialsEndTheSearch(t *testing.T) {
	a, b := withResources("a", nil), withResources("b", nil, "x:/secret", "x:/other")
	r := newRig(t, nil, a, b)
	for _, why := range []error{
		&mcp.Refusal{Status: 200, Barred: true, Err: wire.Errorf(spec.CodeInvalidParams, "denied")},
		&mcp.Refusal{Status: 403, Barred: true, Scopes: []string{"x"}, Err: wire.Errorf(spec.CodeInvalidRequest, "denied")},
		&mcp.LoginError{Err: wire.Errorf(spec.CodeInternal, "denied")},
	} {
		a.change(func(f *fake) {
			f.serve = func(_ context.Context, req *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
				if uri, _ := wire.GetString(req.Params, memberURI); uri == "x:/secret" {
					return nil, why
				}
				return nil, nil
			}
		})
		_, err := r.read(t, reads("x:/secret"))
		if err != why {
			t.Errorf("read = %v, want %v", err, why)
		}
	}
	if got := b.asks(spec.MethodResourcesRead); len(got) > 0 {
		t.Errorf("b was asked %q", got)
	}
	if by, err := r.read(t, reads("x:/other")); by != "b" {
		t.Errorf("what a does not have is read from %q, %v", by, err)
	}
}

// A client that leaves ends the search, and does not keep others from reading lists.
func TestG05ClientsThatLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := withResources("a", []string{"x:/a"})
		r := newRig(t, nil, withResources("b", nil, "x:/a"), a)
		hangs := true
		own := a.serve
		a.serve = func(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
			if hangs && req.Method == spec.MethodResourcesList {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			return own(ctx, req, c)
		}
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { // ends with ctx
			_, err := r.Serve(ctx, reads("x:/a"), mcp.Nobody{})
			left <- err
		}()
		synctest.Wait()
		other := make(chan string)
		go func() { // ends with the read
			by, _ := r.read(t, reads("x:/a"))
			other <- by
		}()
		synctest.Wait()
		hangs = false
		leave()
		if err := <-left; err != context.Canceled {
			t.Errorf("who left got %v", err)
		}
		if by := <-other; by != "a" {
			t.Errorf("the other one read from %q", by)
		}
	})
}
