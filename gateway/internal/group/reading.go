package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group/owners"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxPages bounds the pages of one list of a member that are read at once.
const maxPages = 1000

var errEndless = errors.New("its list has no end")

// A list says what a request lists.
type list struct {
	method string
	kind   policy.Kind
	array  string // the member of the result that has the items
	name   string // the member of an item that has its name
}

// lists are the methods that list something.
var lists = []string{spec.MethodToolsList, spec.MethodPromptsList, spec.MethodResourcesList, spec.MethodResourcesTemplates}

// nameLists are the methods that list what has names.
var nameLists = map[policy.Kind]string{policy.Tool: spec.MethodToolsList, policy.Prompt: spec.MethodPromptsList}

// listOf returns what requests of a method list.
func listOf(method string) list {
	op, _ := policy.Read(method, nil, nil) // without params nothing can be ambiguous
	array, name, _ := op.Listed()
	return list{method, op.Lists(), array, name}
}

// A place is a member, by its place in the group, and where its list goes on.
type place struct {
	member int
	cursor string // empty for the first page
}

// A reading is what a member has answered to a list.
type reading struct {
	place
	list
	begun    time.Time // when the member was asked
	pages    []*page
	recalled bool          // pages are of an earlier run: the member is starting, or does not answer yet
	modern   bool          // a page is of a modern server, or may be
	hint     mcp.CacheHint // the tightest of all pages
	items    []byte        // of all pages, each followed by a comma, to be remembered; nil if there is one page, or too many
	none     bool          // the member has no such list
	err      error         // why it can't be listed
}

// add adds an answer.
func (r *reading) add(p *page, res *mcp.Result) {
	hint := p.hint(res)
	r.modern = r.modern || res.Era == spec.Modern
	if len(r.pages) > 0 {
		hint = hint.Tightest(r.hint)
	}
	r.pages, r.hint = append(r.pages, p), hint
}

// fail records why a member has not answered. One that has no such list is no failure.
func (r *reading) fail(err error) {
	r.pages = nil
	if r.none = mcp.HasCode(err, spec.CodeMethodNotFound); !r.none {
		r.err = err
	}
}

// next returns the cursor of the page after those that were read; empty if there is none.
func (r *reading) next() string {
	if len(r.pages) == 0 {
		return ""
	}
	return r.pages[len(r.pages)-1].next
}

// names returns the own names of all items.
func (r *reading) names() (out []string) {
	for _, p := range r.pages {
		out = append(out, p.names()...)
	}
	return out
}

// set returns the names of a list.
func (r *reading) set() *owners.Names {
	if len(r.pages) == 1 && r.pages[0].set != nil {
		return r.pages[0].set
	}
	return owners.NewNames(r.names())
}

// A reader asks members for a list on behalf of a request.
type reader struct {
	of     *listings
	req    *mcp.Request // of the list
	list   list
	caller mcp.Caller
	whole  bool // all pages are read
	fresh  bool // nothing of an earlier run will do
}

// readerOf returns a reader of a whole list, for a request about something else.
func (l *listings) readerOf(req *mcp.Request, method string) *reader {
	sent := *req
	sent.Method, sent.Extra, sent.ParamHeaders, sent.LogLevel = method, nil, nil, ""
	sent.Params = wire.AppendEdited(nil, nil, wire.Edit{Name: "_meta", Value: envelopeOf(req)})
	return &reader{of: l, req: withoutProgress(&sent), list: listOf(method), caller: mcp.Nobody{}, whole: true}
}

// envelopeOf returns the _meta of a request; that of a modern client whose params are gone has
// what the revision requires.
//
// Spec: 2026-07-28, basic/index, Per-request protocol fields.
func envelopeOf(req *mcp.Request) []byte {
	if meta := wire.Get(req.Params, "_meta"); meta != nil || req.Era != spec.Modern {
		return meta
	}
	return wire.AppendEdited(nil, nil,
		wire.Edit{Name: spec.MetaProtocolVersion, Value: wire.Quote(string(req.Revision))},
		wire.Edit{Name: spec.MetaClientCapabilities, Value: req.Capabilities},
		wire.Edit{Name: spec.MetaClientInfo, Value: req.ClientInfo})
}

// withoutProgress returns a request without a progress token: no two members can have the same.
func withoutProgress(req *mcp.Request) *mcp.Request {
	if req.ProgressToken == nil {
		return req
	}
	sent := *req
	sent.ProgressToken = nil
	sent.Params = wire.EditedIn(req.Params, "_meta", wire.Edit{Name: spec.MetaProgressToken})
	return &sent
}

// each reads from all places at the same time, and returns what was read in their order. It
// returns when all have answered, or their time is over. A goroutine goes on with the next place
// while no other has begun to, so that members that answer at once need few of them.
func (r *reader) each(ctx context.Context, places []place) []*reading {
	out := make([]*reading, len(places))
	usual, cancel := wait(ctx, r.of.opts.Patience)
	defer cancel()
	var (
		asked sync.WaitGroup
		next  atomic.Int64
		spare atomic.Bool // a goroutine was started that has not begun
		read  func()
	)
	read = func() {
		for i := int(next.Add(1)) - 1; i < len(places); i = int(next.Add(1)) - 1 {
			if i+1 < len(places) && spare.CompareAndSwap(false, true) {
				asked.Go(func() { // ends with its time
					spare.Store(false)
					read()
				})
			}
			out[i] = r.readIn(ctx, usual, places[i])
		}
	}
	read()
	asked.Wait()
	return out
}

// read reads from one place.
func (r *reader) read(ctx context.Context, from place) *reading {
	usual, cancel := wait(ctx, r.of.opts.Patience)
	defer cancel()
	return r.readIn(ctx, usual, from)
}

// recallGrace is how long a member that has not answered yet, though it is there, may take before its
// list of an earlier run is used: a command runs before it reads.
const recallGrace = 250 * time.Millisecond

// readIn reads from one place. usual is the time of a member that has answered before.
func (r *reader) readIn(ctx context.Context, usual waiting, from place) *reading {
	out := &reading{place: from, list: r.list, begun: time.Now()}
	m, err := r.of.roster.at(from.member)
	if err != nil {
		out.err = err
		return out
	}
	starting := errors.Is(m.Err(r.req), mcp.ErrStarting)
	if !starting && r.of.former.heard(m.Name) {
		r.ask(ctx, usual, m, out)
		return out
	}
	patience, former := r.of.opts.StartPatience, &reading{place: from, list: r.list, begun: out.begun}
	switch recalls := !r.fresh && from.cursor == "" && r.recall(former); {
	case recalls && starting:
		r.of.note(r.req, former)
		return former
	case recalls:
		r.of.former.hear(m.Name, time.Now().Add(patience)) // one that is slow has had that time, too
		patience = min(recallGrace, patience)
	}
	w, cancel := wait(ctx, patience)
	defer cancel()
	if r.ask(ctx, w, m, out); former.recalled && errors.As(out.err, new(*silentError)) {
		r.of.note(r.req, former)
		return former
	}
	return out
}

// ask reads from a member.
func (r *reader) ask(ctx context.Context, w waiting, m memberAt, out *reading) {
	defer r.of.note(r.req, out)
	if out.none = r.lacks(w, m); out.none {
		return
	}
	if err := r.pages(ctx, w, m, out); err != nil {
		out.fail(err)
	}
	if out.err == nil || errors.As(out.err, new(*silentError)) && w.silent.patience >= r.of.opts.StartPatience {
		r.of.former.hear(m.Name, time.Time{}) // or it has had its time
	}
}

// A waiting is the time for an answer.
type waiting struct {
	ctx    context.Context // ends with it
	silent *silentError
}

func wait(ctx context.Context, patience time.Duration) (w waiting, cancel func()) {
	w.silent = &silentError{patience}
	w.ctx, cancel = context.WithTimeoutCause(ctx, patience, w.silent)
	return w, cancel
}

// why returns why somebody who was asked has failed with err: a *silentError if the time was
// over.
func (w waiting) why(err error) error {
	if err != nil && context.Cause(w.ctx) == w.silent {
		return w.silent
	}
	return err
}

// A silentError says that a member has not answered within a time.
type silentError struct{ patience time.Duration }

func (e *silentError) Error() string { return fmt.Sprintf("it did not answer within %v", e.patience) }

// lacks reports whether a member declares nothing of what is listed, for all that is known. A
// description that says so may be of a time before the server was replaced, so a server that is
// there is asked again.
func (r *reader) lacks(w waiting, m memberAt) bool {
	if r.of.kept.has(m.index, r.list.method) {
		return false // it has had a list
	}
	d, err := m.Describe(mcp.Known, r.req)
	if err != nil || mcp.Declares(d.Capabilities, spec.Capability(r.list.method)) {
		return false
	}
	if m.Err(r.req) != nil {
		return true
	}
	d, err = m.Describe(w.ctx, r.req)
	return err != nil || !mcp.Declares(d.Capabilities, spec.Capability(r.list.method))
}

// pages reads one page, or all of them, each in a time of its own.
func (r *reader) pages(ctx context.Context, w waiting, m memberAt, out *reading) error {
	at, err := r.page(w, m, out, out.place)
	for seen := []string{out.cursor}; err == nil && at.cursor != "" && r.whole; {
		if slices.Contains(seen, at.cursor) || len(seen) == maxPages {
			return errEndless
		}
		seen = append(seen, at.cursor)
		again, cancel := wait(ctx, w.silent.patience)
		at, err = r.page(again, m, out, at)
		cancel()
	}
	if err == nil && out.cursor == "" && out.next() == "" && out.items != nil {
		r.of.former.remember(m.Name, r.req, r.list.method, append([]byte{'['}, out.items...), wire.CloseArray)
	}
	out.items = nil
	return err
}

// page reads one page, and returns where the list goes on.
func (r *reader) page(w waiting, m memberAt, out *reading, at place) (place, error) {
	c := r.caller
	if _, none := c.(mcp.Nobody); !none {
		c = &attributed{Caller: c, server: m.Name}
	}
	res, err := m.Serve(w.ctx, r.at(at.cursor), c)
	if err != nil {
		return at, w.why(err)
	}
	defer res.Release()
	out.add(r.of.page(at, r.list, res, r.marks(&m)), res)
	r.remember(out, res)
	return place{at.member, out.next()}, nil
}

// at returns the request for the page at a cursor of the member.
func (r *reader) at(cursor string) *mcp.Request {
	edit := wire.Edit{Name: "cursor"}
	if cursor != "" {
		edit.Value = wire.Quote(cursor)
	} else if wire.Get(r.req.Params, "cursor") == nil {
		return &copied(r.req).Request
	}
	return &withParams(r.req, wire.AppendEdited(nil, r.req.Params, edit)).Request
}

// recall reads the list that a member gave before, if it is remembered.
func (r *reader) recall(out *reading) bool {
	items := r.of.former.recall(r.of.roster.names[out.member], r.req, r.list.method)
	if items == nil {
		return false
	}
	read := &page{era: spec.Modern} // whatever its era: fronts then look at all of it
	if r.req.HoldsTasks {
		read.tasks = markedNone // which it may have is not known
	}
	r.of.readItems(read, out.member, r.list, items)
	out.pages, out.recalled, out.modern = []*page{read}, true, true
	return true
}

// remember remembers the list of a member that has one page, and gathers the items of one that has
// several and is read as a whole.
func (r *reader) remember(out *reading, res *mcp.Result) {
	switch {
	case out.cursor != "" || !r.of.former.remembers():
	case len(out.pages) > 1 || out.next() != "":
		r.gather(out, res)
	default:
		r.of.former.remember(r.of.roster.names[out.member], r.req, r.list.method, res.Body, func(body []byte) []byte { return res.Outline.Get(body, r.list.array) })
	}
}

// gather adds the items of a page to those that are to be remembered.
func (r *reader) gather(out *reading, res *mcp.Result) {
	switch {
	case !r.whole, len(out.pages) > 1 && out.items == nil: // or there were too many
		return
	case len(out.pages) == 1:
		out.items = []byte{}
	}
	for item := range wire.Elements(res.Outline.Get(res.Body, r.list.array)) {
		out.items = append(append(out.items, item...), ',')
	}
	if len(out.items) > maxItems {
		out.items = nil
		member := r.of.roster.names[out.member]
		r.of.opts.Metrics.Limit(r.of.opts.Name, "remembered_list")
		r.of.opts.Logger.Debug("list not remembered: it is too long", "upstream", r.of.opts.Name, "server", member, "method", r.list.method, "limit", maxItems)
	}
}

// rememberRest has lists read as a whole, in the background, of which a client has read the first of
// several pages, so that they are remembered for when a member is away.
func (b *Back) rememberRest(req *mcp.Request, l list, readings []*reading) {
	for _, r := range readings {
		if r.recalled || r.next() == "" || !b.listings.former.askRest(b.roster.names[r.member], req, l.method) {
			continue
		}
		rest := reader{of: b.listings, req: detached(b.listings.readerOf(req, l.method).req), list: l, caller: mcp.Nobody{}, whole: true, fresh: true}
		if !b.background.Start(func(ctx context.Context) {
			defer b.listings.former.reading.Add(-1)
			rest.read(ctx, place{member: r.member})
		}) {
			b.listings.former.reading.Add(-1)
		}
	}
}
