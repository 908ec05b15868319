package group

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"strconv"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group/owners"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// maxKept bounds the pages that are kept as they were read, and maxKeptOne one of them,
	// in bytes of the answer.
	maxKept    = 32 << 20
	maxKeptOne = 1 << 20
	// maxLeftOut bounds the items of which is known that it was told that they are left out.
	maxLeftOut = 1024
)

// A page is one answer of a member to a list, as clients of the group see its items. It is
// immutable, and has nothing of the memory of the answer.
type page struct {
	body  []byte // the answer; nil if the page is not kept
	era   spec.Era
	tasks taskMarks

	texts []byte // the items, each followed by a comma
	items []item // in order
	set   *owners.Names
	found owners.Mentions

	next   string      // the cursor of the next page; empty if there is none
	ttl    []byte      // ttlMs of a modern server; nil if it gave none
	scope  []byte      // and cacheScope
	meta   []wire.Edit // _meta
	others []wire.Edit // members that the specification does not have
}

// taskMarks say what tools have of the tasks of 2025-11-25.
type taskMarks uint8

const (
	unmarked   taskMarks = iota // for a client that holds none: nothing, if the member is legacy
	markedNone                  // for one that holds tasks, of a member that has none: nothing
	markedAll                   // of one that has some: a legacy one says itself of which tools
)

// marks returns what tools of a member have, for a client of a request.
func (r *reader) marks(m *memberAt) taskMarks {
	if !r.req.HoldsTasks || r.list.kind != policy.Tool {
		return unmarked
	}
	if d, err := m.Describe(mcp.Known, r.req); err == nil && mcp.Declares(wire.Get(d.Capabilities, "extensions"), spec.ExtensionTasks) {
		return markedAll
	}
	return markedNone
}

// marked returns a tool with what it has to have of tasks.
func (p *page) marked(tool []byte) []byte {
	switch {
	case p.tasks == markedAll && p.era == spec.Modern:
		return wire.AppendEdited(nil, tool, mcp.MayBeTask)
	case p.tasks == markedAll, p.tasks == unmarked && p.era == spec.Modern, wire.GetSeldom(tool, mcp.MayBeTask.Name) == nil:
		return tool
	}
	return wire.AppendEdited(nil, tool, wire.Edit{Name: mcp.MayBeTask.Name})
}

// An item is one element of a list.
type item struct {
	name string // own name, or URI
	end  int    // of its text in texts, after the comma
}

// names returns the own names of the items.
func (p *page) names() []string {
	out := make([]string, len(p.items))
	for i, it := range p.items {
		out[i] = it.name
	}
	return out
}

// kept has the first page of each list of each member as it was read last, so that it is read
// again only if the member answers something else. Safe for concurrent use.
type kept struct {
	slots []map[string]*atomic.Pointer[page] // by member and method; read-only
	rests []map[string]*owners.Rest          // of the same lists; read-only
	bytes atomic.Int64
}

func newKept(members int) *kept {
	k := &kept{slots: make([]map[string]*atomic.Pointer[page], members), rests: make([]map[string]*owners.Rest, members)}
	for i := range k.slots {
		k.slots[i], k.rests[i] = make(map[string]*atomic.Pointer[page]), make(map[string]*owners.Rest)
		for _, method := range lists {
			k.slots[i][method], k.rests[i][method] = new(atomic.Pointer[page]), new(owners.Rest)
		}
	}
	return k
}

// has reports whether there is a page of a member's list.
func (k *kept) has(member int, method string) bool { return k.slots[member][method].Load() != nil }

// find returns the page of an answer; nil if it has to be read.
func (k *kept) find(member int, method string, res *mcp.Result, tasks taskMarks) *page {
	p := k.slots[member][method].Load()
	if p == nil || p.era != res.Era || p.tasks != tasks || !bytes.Equal(p.body, res.Body) {
		return nil
	}
	return p
}

// keep keeps a page of an answer, unless there is no room.
func (k *kept) keep(member int, method string, p *page, body []byte) {
	slot := k.slots[member][method]
	if len(body) > maxKeptOne || k.bytes.Load()+int64(len(body)) > maxKept {
		return
	}
	p.body = bytes.Clone(body)
	former := slot.Swap(p)
	k.rests[member][method].Clear()
	k.bytes.Add(int64(len(body)))
	if former != nil {
		k.bytes.Add(-int64(len(former.body)))
	}
}

// page reads an answer of a member.
func (l *listings) page(at place, of list, res *mcp.Result, tasks taskMarks) *page {
	if at.cursor != "" {
		p := l.readPage(at.member, of, res, tasks)
		l.kept.rests[at.member][of.method].Add(p.names(), p.next == "")
		return p
	}
	p := l.kept.find(at.member, of.method, res, tasks)
	if p == nil {
		p = l.readPage(at.member, of, res, tasks)
		l.kept.keep(at.member, of.method, p, res.Body)
	}
	return p
}

func (l *listings) readPage(member int, of list, res *mcp.Result, tasks taskMarks) *page {
	p := &page{era: res.Era, tasks: tasks}
	for k, v := range res.Outline.Members(res.Body) {
		switch name := k.String(); {
		case name == of.array:
			l.readItems(p, member, of, v)
		case name == "nextCursor":
			p.next = wire.Unquote(v)
		case name == "_meta":
			p.meta = metaOf(v)
		case name == "resultType":
		case name == "ttlMs":
			p.ttl = bytes.Clone(v)
		case name == "cacheScope":
			p.scope = bytes.Clone(v)
		default:
			p.others = append(p.others, wire.Edit{Name: name, Value: bytes.Clone(v)})
		}
	}
	return p
}

// hint returns how long an answer may be cached, and for whom. A modern server says so in the
// answer; what others have there means nothing.
func (p *page) hint(res *mcp.Result) mcp.CacheHint {
	hint := res.Cache
	if p.era == spec.Modern && p.ttl != nil {
		hint.TTL, _ = strconv.ParseInt(string(p.ttl), 10, 64) // what is no number allows nothing
	}
	if p.era == spec.Modern && p.scope != nil {
		hint.Public = wire.Says(p.scope, spec.ScopePublic)
	}
	return hint
}

// metaOf returns what clients are told of a _meta: a server's own serverInfo is not that of the
// group.
func metaOf(meta []byte) (edits []wire.Edit) {
	for k, v := range wire.Members(meta) {
		if name := k.String(); name != spec.MetaServerInfo {
			edits = append(edits, wire.Edit{Name: name, Value: bytes.Clone(v)})
		}
	}
	return edits
}

// readItems adds the items of a member's list to a page, by the names that clients see.
func (l *listings) readItems(p *page, member int, of list, array []byte) {
	p.texts = make([]byte, 0, len(array)+len(array)/8)
	mark := of.kind == policy.Tool && (p.tasks == markedAll || bytes.Contains(array, []byte(`"execution"`)))
	for text, v := range wire.NamedElements(array, of.name) {
		if why := l.refusal(of.kind, v); why != "" {
			l.leaveOut(member, of, string(v), why)
			continue
		}
		if mark {
			text = p.marked(text)
			v = wire.Get(text, of.name)
		}
		own := wire.Unquote(v)
		p.texts = append(l.appendItem(p.texts, member, of, text, v, own), ',')
		p.items = append(p.items, item{own, len(p.texts)})
	}
	switch {
	case of.kind == policy.Resource:
		p.found = l.uris.Look(of.method, array, p.names())
	case l.naming.bare:
		p.set = owners.NewNames(p.names())
		fallthrough
	default:
		p.found = l.uris.Look(of.method, array, nil)
	}
}

// refusal says why an item whose name is a value is left out; nothing if it is not. That is long for
// names that are kept, as those of tools and prompts are. URIs are not.
func (l *listings) refusal(k policy.Kind, v []byte) string {
	switch {
	case len(v) < len(`""`) || v[0] != '"':
		return "its name is missing, no string, or could be read in two ways"
	case k != policy.Resource && len(v) > owners.MaxName:
		l.opts.Metrics.Limit(l.opts.Name, "item_name")
		return fmt.Sprintf("its name has %d bytes, the limit is %d", len(v), owners.MaxName)
	}
	return ""
}

// appendItem appends an item as clients see it. v is the value of its name, of which all other
// bytes stay.
func (l *listings) appendItem(dst []byte, member int, of list, text, v []byte, own string) []byte {
	if l.naming.isShown(of.kind) {
		return append(dst, text...)
	}
	at := cap(text) - cap(v) // v aliases text
	dst = wire.AppendString(append(dst, text[:at]...), l.naming.shown(&l.roster.members[member], of.kind, own))
	return append(dst, text[at+len(v):]...)
}

// leaveOut tells, once for each item, that it is left out of lists.
func (l *listings) leaveOut(member int, of list, name, reason string) {
	m := l.roster.names[member]
	if l.isNew(m + " " + of.method + " " + name) {
		l.opts.Logger.Warn("item left out of a list", "upstream", l.opts.Name, "server", m, "method", of.method, "item", mcp.Shorten(name), "reason", reason)
	}
}

// isNew reports whether something was not told yet, and is now.
func (l *listings) isNew(text string) bool {
	had, _ := l.leftOut.ContainsOrAdd(maphash.String(l.seed, text), struct{}{})
	return !had
}
