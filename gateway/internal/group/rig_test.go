package group

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func TestMain(m *testing.M) { os.Exit(bridgetest.Main(m)) }

// A rig is a Back with members of Go calls.
type rig struct {
	*Back
	log      watchtest.Journal
	audience *watchtest.Audience
	members  map[string]*fake
}

// groupKey is the key of all Sealers here, so that one Back opens what another has sealed.
const groupKey = "the key of all tests of groups"

// newRig returns a Back called "all" whose members are the fakes, in that order. change, if not
// nil, changes its Options.
func newRig(t testing.TB, change func(*Options), members ...*fake) *rig {
	t.Helper()
	return newRigAfter(t, nil, change, members...)
}

// newRigAfter is newRig for a Back that replaces another one; nil for none.
func newRigAfter(t testing.TB, former *Back, change func(*Options), members ...*fake) *rig {
	t.Helper()
	r := &rig{members: make(map[string]*fake)}
	r.audience = watchtest.NewAudience(&r.log)
	sealer, err := requeststate.NewSealer(groupKey)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Name: "all", Sealer: sealer, Find: r.find, ServerInfo: []byte(`{"name":"all","version":"1"}`)}
	for _, f := range members {
		r.members[f.name] = f
		o.Members = append(o.Members, MemberOptions{Name: f.name, Prefix: names.Prefix(f.name)})
	}
	if change != nil {
		change(&o)
	}
	if r.Back, err = newBack(o, r.audience, former); err != nil {
		t.Fatal(err)
	}
	if former != nil {
		former.next.Store(r.Back)
	}
	t.Cleanup(r.Back.close)
	return r
}

// find implements Find.
func (r *rig) find(name string) Member {
	f := r.members[name]
	if f == nil || f.isGone() {
		return nil // and no typed nil in the interface
	}
	return f
}

// request returns a request of a modern client with a profile of the group's.
func request(method, params string) *mcp.Request {
	req := &mcp.Request{
		Method: method, Era: spec.Modern, Revision: spec.LatestModern, Principal: mcp.Anonymous,
		Capabilities: json.RawMessage(`{}`), Profile: mcp.Profile{Scope: "all/1", Capabilities: json.RawMessage(`{}`)},
	}
	if params != "" {
		req.Params = json.RawMessage(params)
	}
	return req
}

// as returns a request as a client of another profile sends it.
func as(req *mcp.Request, scope string) *mcp.Request {
	out := *req
	out.Profile.Scope = scope
	return &out
}

// A fake is a member of a group. Its fields are set before it is used, or by change.
type fake struct {
	name string
	era  spec.Era

	mu           sync.Mutex
	gone         bool   // it is not served
	err          error  // of Err, and of all that it is asked
	capabilities string // an object; empty for what it has lists of
	info         string // its serverInfo; empty for its name
	instructions string // empty for none
	describe     func(context.Context, *mcp.Request) (*mcp.Description, error)
	// pages are the items of its lists, by method, as JSON.
	pages map[string][][]string
	// hints are the members of its lists beside items and cursor, such as `"ttlMs":1`, for
	// modern members, and cache those for legacy ones.
	hints string
	cache mcp.CacheHint
	// serve answers; nil, or a result and an error of nil, is what reply does.
	serve func(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error)
	bench func() *mcp.Result // answers everything, and nothing is noted
	asked []*mcp.Request
	subs  []*fakeSub
	// follow answers what is to be followed; nil follows all.
	follow func(context.Context, fanout.Topic) (bool, error)
	denies []string // resources that clients may not follow
	// refused are those of which it was told that a client may not follow them.
	refused []string
}

var _ Member = (*fake)(nil)

// newFake returns a modern member with tools of the names.
func newFake(name string, tools ...string) *fake {
	f := &fake{name: name, era: spec.Modern, pages: make(map[string][][]string)}
	if len(tools) > 0 {
		f.pages[spec.MethodToolsList] = [][]string{toolItems(tools...)}
	}
	return f
}

// toolItems returns items of tools/list or prompts/list.
func toolItems(names ...string) (items []string) {
	for _, name := range names {
		items = append(items, `{"name":`+string(wire.Quote(name))+`,"inputSchema":{"type":"object"}}`)
	}
	return items
}

// resourceItems returns items of resources/list.
func resourceItems(uris ...string) (items []string) {
	for _, uri := range uris {
		items = append(items, `{"uri":`+string(wire.Quote(uri))+`,"name":"n"}`)
	}
	return items
}

// change changes f while it is used.
func (f *fake) change(change func(*fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fake) isGone() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.gone
}

// Era implements [Member].
func (f *fake) Era() spec.Era { return f.era }

// Err implements [Member].
func (f *fake) Err(*mcp.Request) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Profile implements [Member]: the scope has the member's name, and what follows the group's.
func (f *fake) Profile(at mcp.Profile) mcp.Profile {
	_, rest, _ := strings.Cut(at.Scope, "/")
	at.Scope = f.name + "/" + rest
	return at
}

// Describe implements [Member].
func (f *fake) Describe(ctx context.Context, req *mcp.Request) (*mcp.Description, error) {
	if f.bench != nil {
		return &mcp.Description{Capabilities: json.RawMessage(`{"tools":{}}`)}, nil
	}
	f.mu.Lock()
	describe, err, d := f.describe, f.err, &mcp.Description{
		Capabilities: json.RawMessage(f.capabilities), ServerInfo: json.RawMessage(cmp.Or(f.info, `{"name":"`+f.name+`","version":"1"}`)), Cache: f.cache,
	}
	if f.capabilities == "" {
		d.Capabilities = f.capabilitiesLocked()
	}
	if f.instructions != "" {
		d.Instructions = wire.Quote(f.instructions)
	}
	f.mu.Unlock()
	if describe != nil {
		return describe(ctx, req)
	}
	return d, err
}

func (f *fake) capabilitiesLocked() []byte {
	var edits []wire.Edit
	for _, method := range []string{spec.MethodToolsList, spec.MethodPromptsList, spec.MethodResourcesList} {
		if f.pages[method] != nil {
			edits = append(edits, wire.Edit{Name: spec.Capability(method), Value: []byte(`{"listChanged":true}`)})
		}
	}
	return wire.AppendEdited(nil, nil, edits...)
}

// Serve implements [Member].
func (f *fake) Serve(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
	if f.bench != nil {
		return f.bench(), nil
	}
	f.mu.Lock()
	sent := *req
	f.asked = append(f.asked, &sent)
	serve, err := f.serve, f.err
	f.mu.Unlock()
	if serve != nil {
		if res, err := serve(ctx, req, c); res != nil || err != nil {
			return res, err
		}
	}
	if err != nil {
		return nil, err
	}
	return f.reply(req)
}

// reply answers lists, and calls of what the lists have with the own name.
func (f *fake) reply(req *mcp.Request) (*mcp.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var body string
	switch req.Method {
	case spec.MethodToolsList, spec.MethodPromptsList, spec.MethodResourcesList, spec.MethodResourcesTemplates:
		return f.listLocked(req)
	case spec.MethodToolsCall, spec.MethodPromptsGet:
		name, _ := wire.GetString(req.Params, "name")
		if !f.hasLocked(spec.MethodToolsList, name) && !f.hasLocked(spec.MethodPromptsList, name) {
			return nil, wire.Errorf(spec.CodeInvalidParams, "Unknown: %s", name)
		}
		body = fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, wire.Quote(f.name+" "+name))
	case spec.MethodResourcesRead:
		uri, _ := wire.GetString(req.Params, "uri")
		if !f.hasLocked(spec.MethodResourcesList, uri) {
			return nil, wire.Errorf(spec.CodeInvalidParams, "Resource not found")
		}
		body = fmt.Sprintf(`{"contents":[{"uri":%s,"text":%s}]}`, wire.Quote(uri), wire.Quote(f.name))
	case spec.MethodComplete:
		body = fmt.Sprintf(`{"completion":{"values":[%s]}}`, wire.Quote(f.name))
	default:
		return nil, wire.Errorf(spec.CodeMethodNotFound, "Method not found")
	}
	return f.result(body), nil
}

// result returns a result with what its era demands.
func (f *fake) result(body string) *mcp.Result {
	if f.era == spec.Modern {
		body = string(wire.AppendEdited(nil, []byte(body), wire.Edit{Name: "resultType", Value: []byte(`"complete"`)}))
	}
	res := mcp.NewResult(json.RawMessage(body), nil)
	res.Era, res.Cache = f.era, f.cache
	return res
}

func (f *fake) listLocked(req *mcp.Request) (*mcp.Result, error) {
	pages, at := f.pages[req.Method], 0
	if cursor, ok := wire.GetString(req.Params, "cursor"); ok {
		if n, err := fmt.Sscanf(cursor, f.name+"-%d", &at); n != 1 || err != nil || at >= len(pages) {
			return nil, wire.Errorf(spec.CodeInvalidParams, "Invalid cursor")
		}
	}
	var items []string
	if at < len(pages) {
		items = pages[at]
	}
	body := fmt.Sprintf(`{%q:[%s]`, spec.Array(req.Method), strings.Join(items, ","))
	if at+1 < len(pages) {
		body += fmt.Sprintf(`,"nextCursor":"%s-%d"`, f.name, at+1)
	}
	if f.hints != "" {
		body += "," + f.hints
	}
	return f.result(body + "}"), nil
}

// hasLocked reports whether a list has an item of that name or URI.
func (f *fake) hasLocked(method, name string) bool {
	for _, page := range f.pages[method] {
		if slices.ContainsFunc(page, func(item string) bool {
			return wire.Says(wire.Get([]byte(item), "name"), name) || wire.Says(wire.Get([]byte(item), "uri"), name)
		}) {
			return true
		}
	}
	return false
}

// requests returns what f was asked: methods with what they are about.
func (f *fake) requests() (out []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, req := range f.asked {
		out = append(out, strings.TrimSpace(req.Method+" "+req.Subject()))
	}
	return out
}

// Subscribe implements [Member].
func (f *fake) Subscribe(mcp.Profile, *fanout.Mailbox, func(fanout.Topic, error)) (Following, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &fakeSub{of: f, topics: make(map[fanout.Topic]bool)}
	f.subs = append(f.subs, s)
	return s, nil
}

// Follows implements [Member].
func (f *fake) Follows(_ *mcp.Request, uri string) bool { return !slices.Contains(f.denies, uri) }

// Refused implements [Member].
func (f *fake) Refused(_ context.Context, _ *mcp.Request, uris []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused = append(f.refused, uris...)
}

// RootsChanged implements [Member].
func (f *fake) RootsChanged(req *mcp.Request) { f.note(req) }

// LevelChanged implements [Member].
func (f *fake) LevelChanged(req *mcp.Request) { f.note(req) }

// ClientLeft implements [Member].
func (f *fake) ClientLeft(req *mcp.Request) { f.note(req) }

func (f *fake) note(req *mcp.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sent := *req
	f.asked = append(f.asked, &sent)
}

// topics returns what is subscribed to, in order.
func (f *fake) topics() (out []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.subs {
		for t := range s.topics {
			out = append(out, strings.TrimSpace(t.Kind.String()+" "+t.URI))
		}
	}
	slices.Sort(out)
	return out
}

// A fakeSub is a subscription to a fake. The member's mutex guards topics.
type fakeSub struct {
	of     *fake
	topics map[fanout.Topic]bool
}

// Follow implements [Following].
func (s *fakeSub) Follow(ctx context.Context, _ mcp.Share, t fanout.Topic) (bool, error) {
	s.of.mu.Lock()
	follow := s.of.follow
	s.of.mu.Unlock()
	if follow != nil {
		if held, err := follow(ctx, t); !held || err != nil {
			return false, err
		}
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	switch {
	case s.of.err != nil:
		return false, s.of.err
	case t.Kind == fanout.StateLost && s.of.era != spec.Legacy:
		return false, nil
	}
	s.topics[t] = true
	return true, nil
}

// Unfollow implements [Following].
func (s *fakeSub) Unfollow(t fanout.Topic) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	delete(s.topics, t)
}

// Close implements [Following].
func (s *fakeSub) Close() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.subs = slices.DeleteFunc(s.of.subs, func(other *fakeSub) bool { return other == s })
}

// body returns what Serve returned.
func body(t testing.TB, res *mcp.Result, err error) string {
	t.Helper()
	text, err := backtest.Body(res, err)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// listing returns the answer to a list.
func listing(t testing.TB, r *rig, req *mcp.Request) string {
	t.Helper()
	res, err := r.serveList(t.Context(), req, &backtest.Caller{})
	return body(t, res, err)
}

// shown returns the name by which clients see what the member at i calls own.
func (r *rig) shown(i int, k policy.Kind, own string) string {
	return r.finder.shown(&r.opts.Members[i], k, own)
}
