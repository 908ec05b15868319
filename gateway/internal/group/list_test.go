package group

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group/owners"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// listAt returns a request for the page at the cursor of an answer.
func listAt(method, answer string) *mcp.Request {
	cursor := wire.Get([]byte(answer), "nextCursor")
	return request(method, `{"cursor":`+string(cursor)+`}`)
}

// refused checks that a list is refused with a code, and an error that says something.
func refused(t *testing.T, r *rig, req *mcp.Request, code int64, says ...string) {
	t.Helper()
	res, err := r.serveList(t.Context(), req, &backtest.Caller{})
	if err == nil {
		t.Errorf("listed %s, want an error", res.Body)
		return
	}
	we := mcp.WireError(err)
	for _, text := range says {
		if we.Code != code || !strings.Contains(we.Message, text) {
			t.Errorf("error %v, want %d, %s", we, code, text)
		}
	}
}

// Of the items of a list their name changes, and nothing else: neither texts nor _meta.ui, which
// has no names of tools.
func TestG04ItemsKeepAllButTheirNames(t *testing.T) {
	item := `{ "description" : "Call read, or files__read." , "name" : "read" , "_meta":{"ui":{"resourceUri":"ui://read","visibility":["app"]}}, "inputSchema":{"type":"object","properties":{"name":{"const":"read"}}},"x":1.0e2 }`
	files := newFake("files")
	files.pages[spec.MethodToolsList] = [][]string{{item, `{"n\u0061me":"wr\u0069te","inputSchema":{"type":"object"}}`}}
	r := newRig(t, nil, files, newFake("docs"))
	want := `{"tools":[` + strings.Replace(item, `: "read"`, `: "files__read"`, 1) + `,{"n\u0061me":"files__write","inputSchema":{"type":"object"}}],`
	if got := listing(t, r, request(spec.MethodToolsList, "")); !strings.HasPrefix(got, want) {
		t.Errorf("listed %s, want %s", got, want)
	}
}

// An item whose name programs could read differently could pass for one of another member.
func TestG04NoItemPassesForOneOfAnotherMember(t *testing.T) {
	evil := newFake("evil")
	evil.pages[spec.MethodToolsList] = [][]string{{
		`{"name":"x","name":"files__read"}`, `{"name":"x","n\u0061me":"files__read"}`, `{"name":"x","NAME":"files__read"}`, `{"Name":"files__read"}`,
		`{"name":7}`, `{"name":null}`, `7`, `{"name":"` + strings.Repeat("x", owners.MaxName) + `"}`, `{"name":"fine"}`,
	}}
	r := newRig(t, nil, newFake("files", "read"), evil)
	if got := namesOf(t, r, request(spec.MethodToolsList, "")); got != "files__read evil__fine" {
		t.Errorf("listed %s", got)
	}
	r = newRig(t, bare, newFake("files", "files__read"), evil)
	if got := namesOf(t, r, request(spec.MethodToolsList, "")); got != "files__read fine" {
		t.Errorf("without prefixes, listed %s", got)
	}
}

// Names of tools and prompts are kept, and have a limit, which is told. Those of resources, their URIs
// and templates have none.
func TestG04LongNames(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	files := withResources("files", nil, "x:/"+long, "y:/1"+long)
	files.pages = map[string][][]string{
		spec.MethodToolsList:          {{`{"name":"` + long + `"}`, `{"name":"fine"}`}},
		spec.MethodPromptsList:        {{`{"name":"` + strings.Repeat("x", owners.MaxName-len(`""`)) + `"}`}},
		spec.MethodResourcesList:      {{`{"uri":"x:/` + long + `","name":"` + long + `"}`}},
		spec.MethodResourcesTemplates: {{`{"uriTemplate":"y:/{a}` + long + `","name":"` + long + `"}`}},
	}
	docs := withResources("docs", []string{"z:/1"})
	var log bytes.Buffer
	limits := &limitCount{}
	r := newRig(t, func(o *Options) {
		o.Metrics, o.Logger = limits, slog.New(slog.NewTextHandler(&log, nil))
	}, docs, files)
	for method, want := range map[string]int{spec.MethodToolsList: 1, spec.MethodPromptsList: 1, spec.MethodResourcesList: 2, spec.MethodResourcesTemplates: 1} {
		n := 0
		for range wire.Elements(wire.Get([]byte(listing(t, r, request(method, ""))), spec.Array(method))) {
			n++
		}
		if n != want {
			t.Errorf("%s: %d items, want %d", method, n, want)
		}
	}
	if got := string(limits.keys); got != "item_name " || !strings.Contains(log.String(), "its name has 65538 bytes, the limit is 1024") {
		t.Errorf("the limits %q, the log %s", got, log.String())
	}
	for _, uri := range []string{"x:/" + long, "y:/1" + long} { // which docs is asked before, unless it is known who has it
		if by, err := r.read(t, reads(uri)); by != "files" || len(docs.asks(spec.MethodResourcesRead)) > 0 {
			t.Errorf("read from %q, %v, docs was asked %d times", by, err, len(docs.asks(spec.MethodResourcesRead)))
		}
	}
}

// A limitCount notes which limits were met.
type limitCount struct {
	mcp.NoMetrics
	keys []byte // each followed by a space
}

// Limit implements [mcp.Metrics].
func (l *limitCount) Limit(_, key string) { l.keys = append(append(l.keys, key...), ' ') }

// Tools of legacy servers lose what is about tasks of 2025-11-25, which a group does not have.
func TestG04NoTasksOfSessions(t *testing.T) {
	files := newFake("files")
	files.era = spec.Legacy
	files.pages[spec.MethodToolsList] = [][]string{{`{"name":"read","execution":{"taskSupport":"required"},"inputSchema":{"type":"object"}}`, `{"name":"write","description":"execution"}`}}
	r := newRig(t, nil, files)
	if got, want := listing(t, r, request(spec.MethodToolsList, "")), `{"tools":[{"name":"files__read","inputSchema":{"type":"object"}},{"name":"files__write","description":"execution"}]}`; got != want {
		t.Errorf("listed %s, want %s", got, want)
	}
}

// Lists are in the order of the configuration, then the member's own. An answer has the next page
// of all members that have one.
func TestG07ListsAreInOrder(t *testing.T) {
	files, docs := newFake("files"), newFake("docs")
	files.pages[spec.MethodToolsList] = [][]string{toolItems("write", "read"), toolItems("list")}
	docs.pages[spec.MethodToolsList] = [][]string{toolItems("search"), toolItems("find"), toolItems("cite")}
	here, there := newRig(t, nil, files, docs, newFake("notes", "add")), newRig(t, nil, files, docs, newFake("notes", "add"))
	req := request(spec.MethodToolsList, `{"_meta":{"progressToken":1,"x":1},"y":2}`)
	req.ProgressToken = []byte("1")
	for i, want := range []string{"files__write files__read docs__search notes__add", "files__list docs__find", "docs__cite"} {
		if got := namesOf(t, here, req); got != want {
			t.Errorf("page %d has %s, want %s", i+1, got, want)
		}
		answer := listing(t, here, req)
		if cursor := wire.Get([]byte(answer), "nextCursor"); (cursor == nil) != (i == 2) || string(cursor) == `""` {
			t.Errorf("page %d ends with %s", i+1, cursor)
		}
		req = listAt(spec.MethodToolsList, answer)
		here, there = there, here // the next page is read at another replica
	}
	files.mu.Lock()
	defer files.mu.Unlock()
	if first := files.asked[0]; string(first.Params) != `{"_meta":{"x":1},"y":2}` || first.ProgressToken != nil {
		t.Errorf("a member got %s, progress token %s", first.Params, first.ProgressToken)
	}
	if next := files.asked[len(files.asked)-1]; string(next.Params) != `{"cursor":"files-1"}` {
		t.Errorf("the next page is asked for with %s", next.Params)
	}
}

// A cursor is of one list of one profile at one group.
func TestG07CursorsAreSealed(t *testing.T) {
	files := newFake("files")
	files.pages[spec.MethodToolsList] = [][]string{toolItems("a"), toolItems("b")}
	files.pages[spec.MethodPromptsList] = [][]string{toolItems("a"), toolItems("b")}
	r := newRig(t, nil, files, newFake("docs"))
	answer := listing(t, r, request(spec.MethodToolsList, ""))
	req := listAt(spec.MethodToolsList, answer)
	text, _ := wire.GetString(req.Params, "cursor")
	if got := namesOf(t, r, as(req, "all@2/1")); got != "files__b" { // after a reload
		t.Errorf("the second page has %s", got)
	}
	says := "list from the beginning, without a cursor"
	refused(t, r, as(req, "all/2"), spec.CodeInvalidParams, says)
	refused(t, r, listAt(spec.MethodPromptsList, answer), spec.CodeInvalidParams, says)
	refused(t, newRig(t, func(o *Options) { o.Name = "other" }, files), req, spec.CodeInvalidParams, says)
	refused(t, newRig(t, nil, newFake("docs"), newFake("notes")), req, spec.CodeInvalidParams, says) // files has gone
	for _, cursor := range []string{`""`, `7`, `"files-1"`, `"` + text[:len(text)-1] + `x"`, string(wire.Quote(r.sealing.seal(sealedTask, "", "x"))), string(wire.Quote(r.sealing.seal(sealedCursor, "", "x")))} {
		refused(t, r, request(spec.MethodToolsList, `{"cursor":`+cursor+`}`), spec.CodeInvalidParams, says)
	}
	if got := namesOf(t, r, request(spec.MethodToolsList, `{"cursor":null}`)); got != "files__a" {
		t.Errorf("with null as the cursor, listed %s", got)
	}
	files.change(func(f *fake) { f.pages[spec.MethodToolsList] = [][]string{toolItems("a")} })
	refused(t, r, req, spec.CodeInvalidParams, `server "files"`, says)
}

// All members are asked at the same time: 50 that take a second each are listed in a second.
func TestG07AndG20MembersAreAskedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var members []*fake
		for i := range 50 {
			f := newFake(fmt.Sprintf("m%d", i), "a", "b")
			f.serve = func(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
				time.Sleep(time.Second)
				return nil, nil
			}
			members = append(members, f)
		}
		r, begin := newRig(t, nil, members...), time.Now()
		if n := len(strings.Fields(namesOf(t, r, request(spec.MethodToolsList, "")))); n != 100 || time.Since(begin) != time.Second {
			t.Errorf("%d tools after %v", n, time.Since(begin))
		}
	})
}

// Of members that list one URI the first one has it.
func TestG07ResourcesAreListedOnce(t *testing.T) {
	files, docs := newFake("files"), newFake("docs")
	files.pages[spec.MethodResourcesList] = [][]string{resourceItems("a:1", "a:2", "a:2")}
	docs.pages[spec.MethodResourcesList] = [][]string{resourceItems("a:2", "a:3")}
	for _, change := range []func(*Options){nil, bare} {
		r := newRig(t, change, files, docs)
		if got := namesOf(t, r, request(spec.MethodResourcesList, "")); got != "a:1 a:2 a:2 a:3" {
			t.Errorf("listed %s", got)
		}
	}
	r := newRig(t, nil, docs, files)
	if got := namesOf(t, r, request(spec.MethodResourcesList, "")); got != "a:2 a:3 a:1" {
		t.Errorf("in the other order, listed %s", got)
	}
}

// silent is a member that says nothing until ctx ends.
func silent(ctx context.Context, _ *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// after is a member that answers after a time, unless ctx ends.
func after(d time.Duration) func(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
	return func(ctx context.Context, _ *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
		select {
		case <-time.After(d):
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// A list has the items of the members that answer in time, names the others, and is not to be
// cached.
func TestG08MembersThatAreMissing(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*fake)
		want   string
		takes  time.Duration
	}{
		{"answers", func(*fake) {}, "files__read docs__find", 0},
		{"slow", func(f *fake) { f.serve = after(1900 * time.Millisecond) }, "files__read docs__find", 1900 * time.Millisecond},
		{"silent from the first", func(f *fake) { f.serve = silent }, `files__read missing ["docs"]`, 20 * time.Second},
		{"slower than one that has answered may be", func(f *fake) { f.serve = later(f, 19*time.Second) }, "files__read docs__find", 19 * time.Second},
		{"errs", func(f *fake) { f.err = errors.New("connection refused") }, `files__read missing ["docs"]`, 0},
		{"errs itself", func(f *fake) { f.serve = fails(wire.Errorf(-32603, "broken")) }, `files__read missing ["docs"]`, 0},
		{"not served", func(f *fake) { f.gone = true }, `files__read missing ["docs"]`, 0},
		{"has none", func(f *fake) { f.serve = fails(wire.Errorf(-32601, "Method not found")) }, "files__read", 0},
		{"declares none", func(f *fake) { f.capabilities, f.serve = `{"prompts":{}}`, silent }, "files__read", 0},
		{"declares none, and is down", func(f *fake) { f.err, f.serve, f.describe = errors.New("connection refused"), silent, remembersNone }, "files__read", 0},
		{"starting", func(f *fake) { f.started(10 * time.Second) }, "files__read docs__find", 10 * time.Second},
		{"does not start", func(f *fake) { f.started(time.Hour) }, `files__read missing ["docs"]`, 20 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				files, docs := newFake("files", "read"), newFake("docs", "find")
				files.hints = `"ttlMs":500,"cacheScope":"public"`
				docs.hints = files.hints
				tt.change(docs)
				r, begin := newRig(t, nil, files, docs), time.Now()
				answer := listing(t, r, request(spec.MethodToolsList, ""))
				if took := time.Since(begin); took != tt.takes {
					t.Errorf("it took %v, want %v", took, tt.takes)
				}
				wantTTL := `"ttlMs":500,`
				if strings.Contains(tt.want, "missing") {
					wantTTL = `"ttlMs":0,`
				}
				if got := namesOf(t, r, request(spec.MethodToolsList, "")); got != tt.want || !strings.Contains(answer, wantTTL) {
					t.Errorf("listed %s, %s, want %s, %s", got, answer, tt.want, wantTTL)
				}
			})
		})
	}
}

// remembersNone is a member that is down, and had no tools.
func remembersNone(ctx context.Context, _ *mcp.Request) (*mcp.Description, error) {
	if ctx.Err() == nil {
		<-ctx.Done() // it tries to connect
	}
	return &mcp.Description{Capabilities: []byte(`{"prompts":{}}`)}, nil
}

// fails is a member that answers with an error.
func fails(err error) func(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
	return func(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) { return nil, err }
}

// started has f be one that starts, and answers after a time.
func (f *fake) started(d time.Duration) {
	f.err = fmt.Errorf("server: %w", mcp.ErrStarting)
	f.describe = func(context.Context, *mcp.Request) (*mcp.Description, error) { return nil, mcp.ErrStarting }
	f.serve = later(f, d)
}

// A member has the time of one that starts until it has answered once, or has had that time: a
// command that runs may not read yet.
func TestG08PatienceWithWhoHasAnswered(t *testing.T) {
	for _, answers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			files, docs := newFake("files", "read"), newFake("docs", "find")
			r := newRig(t, nil, files, docs)
			if !answers {
				docs.serve = silent
			}
			namesOf(t, r, request(spec.MethodToolsList, ""))
			docs.serve = silent
			begin := time.Now()
			if got, took := namesOf(t, r, request(spec.MethodToolsList, "")), time.Since(begin); got != `files__read missing ["docs"]` || took != DefaultPatience {
				t.Errorf("answered before: %v; listed %s after %v, want it left out after %v", answers, got, took, DefaultPatience)
			}
		})
	}
}

// A member that is there and does not answer yet is soon listed from what is remembered, and told of
// when it answers. One that answers at once is listed by its answer, and one that errs is left out.
func TestG08CommandsThatDoNotReadYet(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*fake)
		want   string
		takes  time.Duration
		told   int
	}{
		{"slow", func(f *fake) { f.serve = later(f, 5*time.Second) }, "files__read docs__search", recallGrace, 1},
		{"answers", func(*fake) {}, "files__read docs__search docs__find", 0, 0},
		{"errs", func(f *fake) { f.serve = fails(wire.Errorf(-32603, "broken")) }, `files__read missing ["docs"]`, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				files, docs := newFake("files", "read"), newFake("docs", "search")
				remembers := newMemory()
				with := func(o *Options) { o.Memory = remembers }
				namesOf(t, newRig(t, with, files, docs), request(spec.MethodToolsList, ""))
				docs.pages[spec.MethodToolsList] = [][]string{toolItems("search", "find")}
				tt.change(docs)
				r, begin := newRig(t, with, files, docs), time.Now()
				r.audience.Want(1, fanout.Topic{Scope: "all/1", Kind: fanout.ToolsListChanged})
				if got, took := namesOf(t, r, request(spec.MethodToolsList, "")), time.Since(begin); got != tt.want || took != tt.takes {
					t.Errorf("listed %s after %v, want %s after %v", got, took, tt.want, tt.takes)
				}
				time.Sleep(time.Minute)
				if told := len(r.audience.Events()); told != tt.told {
					t.Errorf("%d changes are told, want %d", told, tt.told)
				}
			})
		})
	}
}

// A member that takes longer for each list than one that is remembered is waited for is no command that
// does not read yet: once it has had the time of one that is starting, it has that of others, though
// nobody follows the list.
func TestG08SlowMembersAreNotAlwaysRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, docs := newFake("files", "read"), newFake("docs", "search")
		remembers := newMemory()
		with := func(o *Options) { o.Memory = remembers }
		namesOf(t, newRig(t, with, files, docs), request(spec.MethodToolsList, ""))
		docs.pages[spec.MethodToolsList] = [][]string{toolItems("search", "find")}
		docs.serve = after(300 * time.Millisecond)
		r := newRig(t, with, files, docs)
		for _, tt := range []struct {
			want  string
			takes time.Duration
		}{
			{"files__read docs__search", recallGrace},
			{"files__read docs__search docs__find", 300 * time.Millisecond},
		} {
			begin := time.Now()
			if got, took := namesOf(t, r, request(spec.MethodToolsList, "")), time.Since(begin); got != tt.want || took != tt.takes {
				t.Errorf("listed %s after %v, want %s after %v", got, took, tt.want, tt.takes)
			}
			time.Sleep(time.Minute)
		}
	})
}

// later is a member that answers from a time on.
func later(f *fake, d time.Duration) func(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
	starts := time.Now().Add(d)
	return func(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
		if _, err := after(time.Until(starts))(ctx, req, c); err != nil {
			return nil, err
		}
		return f.reply(req)
	}
}

// A member that is starting is listed from what is remembered. Whoever follows the list is told
// once it has started.
func TestG08StartingMembersAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, docs := newFake("files", "read"), newFake("docs", "search")
		remembers := newMemory()
		with := func(o *Options) { o.Memory = remembers }
		namesOf(t, newRig(t, with, files, docs), request(spec.MethodToolsList, ""))
		docs.pages[spec.MethodToolsList] = [][]string{toolItems("search", "find")}
		docs.change(func(f *fake) { f.started(10 * time.Second) })
		r, begin := newRig(t, with, files, docs), time.Now()
		topic := fanout.Topic{Scope: "all/1", Kind: fanout.ToolsListChanged}
		r.audience.Want(1, topic)
		if got := namesOf(t, r, request(spec.MethodToolsList, "")); got != "files__read docs__search" || time.Since(begin) != 0 {
			t.Errorf("listed %s after %v", got, time.Since(begin))
		}
		if text := listing(t, r, request(spec.MethodToolsList, "")); !strings.Contains(text, `"ttlMs":0,`) {
			t.Errorf("listed %s", text)
		}
		time.Sleep(20 * time.Second)
		if told := len(r.audience.Events()); told != 1 {
			t.Errorf("%d changes are told", told)
		}
		docs.change(func(f *fake) { f.err = nil })
		if got := namesOf(t, r, request(spec.MethodToolsList, "")); got != "files__read docs__search docs__find" {
			t.Errorf("then listed %s", got)
		}
	})
}

// Lists of several pages are remembered as a whole, though a client reads the first of them alone:
// those of tools and prompts in the background, not more often than every ten minutes. One that is
// too long is not, which is told.
func TestG08ListsOfSeveralPagesAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, docs := newFake("files", "read"), newFake("docs")
		docs.pages[spec.MethodToolsList] = [][]string{{}, toolItems("one", "two"), toolItems("three")}
		docs.pages[spec.MethodResourcesList] = [][]string{resourceItems("x:/1"), resourceItems("x:/2")}
		remembers, limits := newMemory(), &limitCount{}
		with := func(o *Options) { o.Memory, o.Metrics = remembers, limits }
		r := newRig(t, with, files, docs)
		for range 20 {
			namesOf(t, r, request(spec.MethodToolsList, ""))
			listing(t, r, request(spec.MethodResourcesList, ""))
			synctest.Wait()
		}
		if n := len(docs.asks(spec.MethodToolsList)); n != 20+3 {
			t.Errorf("20 lists have docs asked %d times for tools, want 23", n)
		}
		for method, want := range map[string]string{spec.MethodToolsList: strings.Join(toolItems("one", "two", "three"), ","), spec.MethodResourcesList: strings.Join(resourceItems("x:/1", "x:/2"), ",")} {
			if got := remembers.lists["docs anonymous "+method]; got != "["+want+"]" {
				t.Errorf("%s: remembered %s, want %s", method, got, want)
			}
		}
		docs.change(func(f *fake) { f.err = mcp.ErrStarting })
		if got := namesOf(t, newRig(t, with, files, docs), request(spec.MethodToolsList, "")); got != "files__read docs__one docs__two docs__three" {
			t.Errorf("while docs is starting, listed %s", got)
		}
		docs.change(func(f *fake) {
			f.err, f.pages[spec.MethodToolsList] = nil, [][]string{toolItems("one"), {`{"name":"` + strings.Repeat("x", 900) + `","d":"` + strings.Repeat("x", maxItems) + `"}`}, toolItems("three")}
		})
		former := remembers.lists["docs anonymous tools/list"]
		time.Sleep(restAgain)
		namesOf(t, r, request(spec.MethodToolsList, ""))
		synctest.Wait()
		if remembers.lists["docs anonymous tools/list"] != former || string(limits.keys) != "remembered_list " {
			t.Errorf("of a list that is too long %d bytes are remembered; limits %q", len(remembers.lists["docs anonymous tools/list"]), limits.keys)
		}
	})
}

// Where no member may be left out, or none is left, a list is an error that names who is missing.
func TestG08NoEmptyListInPlaceOfAnError(t *testing.T) {
	down := errors.New("connection refused")
	files, docs := newFake("files", "read"), newFake("docs", "find")
	docs.err = down
	refused(t, newRig(t, func(o *Options) { o.Require = true }, files, docs), request(spec.MethodToolsList, ""), spec.CodeInternal, `tools of group "all" can't be listed`, `server "docs": connection refused`, "try again later")
	files.err = down
	r := newRig(t, nil, files, docs)
	refused(t, r, request(spec.MethodToolsList, ""), spec.CodeInternal, `server "files": connection refused; server "docs": connection refused`)
	refused(t, newRig(t, bare, files, docs), request(spec.MethodToolsList, ""), spec.CodeInternal, `server "files": connection refused`)
	files.err, docs.err = nil, nil
	files.capabilities, docs.err = `{"prompts":{}}`, down // what has no tools does not count
	refused(t, r, request(spec.MethodToolsList, ""), spec.CodeInternal, `server "docs": connection refused`)
	docs.err, docs.capabilities = nil, `{}`
	refused(t, r, request(spec.MethodToolsList, ""), spec.CodeMethodNotFound, `no server of group "all" has tools`)
	// The error of a group's only member is the group's.
	alone := newFake("alone", "x")
	alone.serve = fails(wire.Errorf(-31999, "broken"))
	refused(t, newRig(t, nil, alone), request(spec.MethodToolsList, ""), -31999, "broken")
}

// A member that was missing joins by a change of the list, as soon as it answers, for those who
// follow the list, also from later on. Nothing is asked if nobody does.
func TestG08MissingMembersJoinByAChange(t *testing.T) {
	for _, follows := range []string{"before", "after", "not"} {
		t.Run(follows, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				files, docs := newFake("files", "read"), newFake("docs", "find")
				docs.serve = silent
				r := newRig(t, nil, files, docs)
				topic := fanout.Topic{Scope: "all/1", Kind: fanout.ToolsListChanged}
				if follows == "before" {
					r.audience.Want(1, topic)
				}
				req := request(spec.MethodToolsList, "")
				if got := namesOf(t, r, req); got != `files__read missing ["docs"]` {
					t.Fatalf("listed %s", got)
				}
				if follows == "after" {
					r.audience.Want(1, topic)
					r.short.followed("all/1", fanout.PromptsListChanged)
					r.short.followed("all/1", fanout.ToolsListChanged)
				}
				asked := len(docs.requests())
				time.Sleep(time.Minute)
				if again := len(docs.requests()) - asked; (again > 0) != (follows != "not") || again > 10 {
					t.Errorf("it was asked %d times in a minute", again)
				}
				if told := r.audience.Events(); len(told) > 0 {
					t.Errorf("told %v while it is missing", told)
				}
				docs.change(func(f *fake) { f.serve = nil })
				time.Sleep(time.Minute)
				told := r.audience.Events()
				if follows == "not" {
					if len(told) > 0 {
						t.Errorf("told %v", told)
					}
					return
				}
				if len(told) != 1 || told[0].Topic != topic {
					t.Errorf("told %v, want one change of tools", told)
				}
				if got := namesOf(t, r, req); got != "files__read docs__find" {
					t.Errorf("then listed %s", got)
				}
			})
		})
	}
}

// A member that does not answer for a later page is left out there, and who follows the list is told
// that it has changed once that page can be read, or is no page any more since the member has another
// list: so all items are listed in the end. Other lists of the profile, which lack nothing, change
// nothing about that, and a member that never gives the page has nobody read the list again and again.
func TestG08MembersThatAreMissingOnLaterPages(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before func(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) // of docs, for page 2
		after  func(*fake)                                                          // a minute later
		at     int                                                                  // which page lacks docs
		told   int
	}{
		{"slow", after(3 * time.Second), func(f *fake) { f.serve = nil }, 2, 1},
		{"fails", fails(errors.New("connection refused")), func(f *fake) { f.serve = nil }, 2, 1},
		{"fails on the last page", fails(errors.New("connection refused")), func(f *fake) { f.serve = nil }, 3, 1},
		{"has another list", fails(errors.New("connection refused")), func(f *fake) {
			f.serve, f.pages[spec.MethodToolsList] = nil, [][]string{toolItems("d1", "d2", "d3")}
		}, 2, 1},
		{"fails for ever", fails(wire.Errorf(spec.CodeInternal, "broken")), func(*fake) {}, 2, 0},
		{"may not be listed", fails(mcp.Refuse(spec.CodeInvalidRequest, "not for you")), func(f *fake) { f.serve = nil }, 2, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				files, docs := newFake("files"), newFake("docs")
				files.pages[spec.MethodToolsList] = [][]string{toolItems("f1"), toolItems("f2"), toolItems("f3")}
				docs.pages[spec.MethodToolsList] = [][]string{toolItems("d1"), toolItems("d2"), toolItems("d3")}
				r := newRig(t, nil, files, docs)
				topic := fanout.Topic{Scope: "all/1", Kind: fanout.ToolsListChanged}
				r.audience.Want(1, topic)
				want := []string{"files__f1 docs__d1", "files__f2 docs__d2", "files__f3 docs__d3"}
				for i := tt.at; i <= 3; i++ {
					want[i-1] = fmt.Sprintf("files__f%d", i)
				}
				want[tt.at-1] += ` missing ["docs"]`
				req := request(spec.MethodToolsList, "")
				for i := range want {
					if i+1 == tt.at {
						docs.change(func(f *fake) {
							f.serve = func(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
								if wire.Get(req.Params, "cursor") == nil {
									return nil, nil
								}
								return tt.before(ctx, req, c)
							}
						})
					}
					answer := listing(t, r, req)
					if got := namesIn(spec.MethodToolsList, []byte(answer)); got != want[i] {
						t.Errorf("page %d has %s, want %s", i+1, got, want[i])
					}
					if i < 2 {
						req = listAt(spec.MethodToolsList, answer)
					}
				}
				listing(t, r, request(spec.MethodToolsList, ""))
				time.Sleep(time.Minute)
				if told := r.audience.Events(); len(told) > 0 {
					t.Errorf("told %v while it is missing", told)
				}
				docs.change(tt.after)
				time.Sleep(time.Minute)
				if told := r.audience.Events(); len(told) != tt.told || len(told) > 0 && told[0].Topic != topic {
					t.Errorf("told %v, want %d changes of tools", told, tt.told)
				}
			})
		})
	}
}

// A client that may not list a member is not told of it, and the member is not asked for it again.
func TestG08NobodyJoinsWhomTheClientMayNotList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, docs := newFake("files", "read"), newFake("docs", "find")
		docs.serve = fails(mcp.Refuse(spec.CodeInvalidRequest, "not for you"))
		r := newRig(t, nil, files, docs)
		r.audience.Want(1, fanout.Topic{Scope: "all/1", Kind: fanout.ToolsListChanged})
		namesOf(t, r, request(spec.MethodToolsList, ""))
		time.Sleep(time.Minute)
		if n := len(docs.requests()); n != 1 {
			t.Errorf("it was asked %d times", n)
		}
	})
}

// Hints are the tightest of all members', of either era, and what the eras say is where it belongs.
func TestG09Hints(t *testing.T) {
	for _, tt := range []struct {
		name        string
		files, docs func(*fake)
		want        string
		era         spec.Era
		cache       mcp.CacheHint
	}{
		{"modern", hints(`"ttlMs":500,"cacheScope":"public"`), hints(`"ttlMs":300,"cacheScope":"public"`), `"resultType":"complete","ttlMs":300,"cacheScope":"public"`, spec.Modern, mcp.CacheHint{TTL: 300, Public: true}},
		{"one private", hints(`"ttlMs":500,"cacheScope":"private"`), hints(`"ttlMs":900,"cacheScope":"public"`), `"resultType":"complete","ttlMs":500,"cacheScope":"private"`, spec.Modern, mcp.CacheHint{TTL: 500}},
		{"one without", hints(`"ttlMs":500,"cacheScope":"public"`), hints(``), `"resultType":"complete","ttlMs":0,"cacheScope":"private"`, spec.Modern, mcp.CacheHint{}},
		{"mixed", hints(`"ttlMs":500,"cacheScope":"public"`), legacyHint(200), `"resultType":"complete","ttlMs":200,"cacheScope":"public"`, spec.Modern, mcp.CacheHint{TTL: 200, Public: true}},
		{"legacy", legacyHint(500), legacyHint(200), ``, spec.Legacy, mcp.CacheHint{TTL: 200, Public: true}},
	} {
		files, docs := newFake("files", "read"), newFake("docs", "find")
		tt.files(files)
		tt.docs(docs)
		r := newRig(t, nil, files, docs)
		res, err := r.serveList(t.Context(), request(spec.MethodToolsList, ""), &backtest.Caller{})
		if err != nil {
			t.Fatal(err)
		}
		_, tail, _ := strings.Cut(string(res.Body), `]`)
		if tail = strings.Trim(tail, ",}"); tail != tt.want || res.Era != tt.era || res.Cache != tt.cache || string(res.ServerInfo) != `{"name":"all","version":"1"}` {
			t.Errorf("%s: %s, %v, %v, %s", tt.name, tail, res.Era, res.Cache, res.ServerInfo)
		}
	}
}

// A list that is joined of the same pages is the same one, but for what their servers say of it
// beside them.
func TestG09HintsOfTheSamePages(t *testing.T) {
	files, docs := newFake("files", "read"), newFake("docs", "find")
	hints(`"ttlMs":500,"cacheScope":"public"`)(files)
	legacyHint(200)(docs)
	r := newRig(t, nil, files, docs)
	for _, ttl := range []int64{200, 100} { // as a result has that is kept
		docs.change(func(f *fake) { f.cache.TTL = ttl })
		if got, want := listing(t, r, request(spec.MethodToolsList, "")), fmt.Sprintf(`"ttlMs":%d,`, ttl); !strings.Contains(got, want) {
			t.Errorf("listed %s, want %s", got, want)
		}
	}
	again := func() []byte {
		res, err := r.serveList(t.Context(), request(spec.MethodToolsList, ""), mcp.Nobody{})
		if err != nil {
			t.Fatal(err)
		}
		return res.Body
	}
	if a, b := again(), again(); &a[0] != &b[0] {
		t.Error("it is joined again")
	}
}

func hints(text string) func(*fake) { return func(f *fake) { f.hints = text } }

func legacyHint(ttl int64) func(*fake) {
	return func(f *fake) {
		f.era, f.cache, f.hints = spec.Legacy, mcp.CacheHint{TTL: ttl, Public: true}, `"ttlMs":9,"cacheScope":"public","resultType":"complete"`
	}
}

// What else members say of their lists passes, but for what they say of themselves.
func TestG09OtherMembersPass(t *testing.T) {
	files, docs := newFake("files", "read"), newFake("docs", "find")
	files.hints = `"x":{"y":1},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"f"},"a":1}`
	docs.hints = `"x":2,"z":3,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"d"},"a":2,"b":3}`
	answer := listing(t, newRig(t, nil, files, docs), request(spec.MethodToolsList, ""))
	if want := `],"x":{"y":1},"z":3,"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"a":1,"b":3}}`; !strings.HasSuffix(answer, want) {
		t.Errorf("listed %s, want %s", answer, want)
	}
}

// A list is the same whatever was asked before, and once a member has changed its own.
func TestG09ListsDependOnNothingElse(t *testing.T) {
	for _, change := range []func(*Options){nil, bare} {
		files, docs := newFake("files", "read", "a b"), newFake("docs", "find")
		r := newRig(t, change, files, docs)
		first := listing(t, r, request(spec.MethodToolsList, ""))
		listing(t, r, as(request(spec.MethodToolsList, ""), "all/2"))
		docs.change(func(f *fake) { f.pages[spec.MethodToolsList] = [][]string{toolItems("find", "cite")} })
		changed := listing(t, r, request(spec.MethodToolsList, ""))
		docs.change(func(f *fake) { f.pages[spec.MethodToolsList] = [][]string{toolItems("find")} })
		if again := listing(t, r, request(spec.MethodToolsList, "")); again != first || !strings.Contains(changed, "cite") {
			t.Errorf("listed %s, then %s, then %s", first, changed, again)
		}
	}
}

// A client that leaves ends what members are asked.
func TestListsEndWithTheirClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		docs := newFake("docs", "find")
		docs.serve = silent
		r := newRig(t, nil, newFake("files", "read"), docs)
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("the client has gone")
		time.AfterFunc(time.Second, func() { cancel(gone) })
		begin := time.Now()
		if _, err := r.serveList(ctx, request(spec.MethodToolsList, ""), &backtest.Caller{}); !errors.Is(err, gone) || time.Since(begin) != time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// What members have listed is known without asking them again, as far as somebody has read it.
func TestKnown(t *testing.T) {
	for _, bare := range []bool{false, true} {
		files, docs := newFake("files", "read", "write"), newFake("docs", "search")
		files.pages[spec.MethodToolsList] = append(files.pages[spec.MethodToolsList], toolItems("find"))
		r := newRig(t, func(o *Options) { o.Bare = bare }, files, docs)
		g := newGroup(r.Back, r.audience)
		defer func() { _ = g.Close(t.Context()) }()
		if k := g.Known(); len(k.Lists) != 2 || len(k.Lists[0])+len(k.Lists[1]) > 0 || k.Patience != DefaultPatience {
			t.Errorf("before a list it is known: %+v", k.Lists)
		}
		namesOf(t, r, request(spec.MethodToolsList, ""))
		asked := len(files.asked)
		k := g.Known()
		want := KnownList{Kind: policy.Tool, Names: []string{"read", "write"}, More: true}
		if bare { // all pages had to be read
			want.Names, want.More = []string{"read", "write", "find"}, false
		}
		if got := k.Lists[0][spec.MethodToolsList]; !reflect.DeepEqual(got, want) {
			t.Errorf("bare %v: of files it is known %+v, want %+v", bare, got, want)
		}
		if got := k.Lists[1][spec.MethodToolsList]; len(got.Names) != 1 || got.More {
			t.Errorf("of docs it is known %+v", got)
		}
		if len(files.asked) != asked {
			t.Error("a member was asked")
		}
		if first := listing(t, r, request(spec.MethodToolsList, "")); !bare {
			for range 2 {
				listing(t, r, listAt(spec.MethodToolsList, first))
			}
			if got := g.Known().Lists[0][spec.MethodToolsList]; len(got.Names) != 3 || got.Names[2] != "find" || got.More {
				t.Errorf("of all pages it is known %+v", got)
			}
		}
		files.pages[spec.MethodToolsList] = [][]string{toolItems("new"), toolItems("other")}
		namesOf(t, r, request(spec.MethodToolsList, ""))
		want.Names = []string{"new"}
		if bare {
			want.Names = append(want.Names, "other")
		}
		if got := g.Known().Lists[0][spec.MethodToolsList]; !reflect.DeepEqual(got, want) {
			t.Errorf("after a change it is known %+v, want %+v", got, want)
		}
	}
}
