package group

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group/owners"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A joining makes one result of what members have answered to a list.
type joining struct {
	of  *listings
	req *mcp.Request
	list
	table *owners.Table  // who has which name; nil if no name is contested
	all   *owners.Lists  // who lists which URI on any page; nil if all pages are here
	seen  map[string]int // places of members by URI; nil unless several list some

	open    []place
	missing []byte         // quoted names, each followed by a comma
	modern  bool           // the server of a page is
	hint    *mcp.CacheHint // nil before the first page
	meta    []wire.Edit
	others  []wire.Edit
}

// result returns the result of the group.
func (j *joining) result(readings []*reading) *mcp.Result {
	var pages []*page
	partial := false
	for _, r := range readings {
		j.note(r)
		pages = append(pages, r.pages...)
		partial = partial || r.err != nil || r.recalled
	}
	if j.hint != nil && partial {
		j.hint.TTL = 0
	}
	body, outline := j.body(readings, pages, partial || len(j.open) > 0)
	res := mcp.NewResult(body, nil)
	res.Outline = outline
	res.Era, res.ServerInfo = spec.Legacy, json.RawMessage(j.of.opts.ServerInfo)
	if j.modern {
		res.Era = spec.Modern
	}
	if j.hint != nil {
		res.Cache = *j.hint
	}
	return res
}

// A joined is a list that was joined of pages. It is immutable.
type joined struct {
	pages []*page
	table *owners.Table
	hint  mcp.CacheHint // as the body has it
	body  []byte

	outline *wire.Outline // of body
}

// maxJoined bounds a list that is kept as it was joined, in bytes.
const maxJoined = 4 << 20

// body returns the body of the result. If no page has changed, it is the same one as before, unless
// it is of this client alone, and has its outline.
func (j *joining) body(readings []*reading, pages []*page, own bool) ([]byte, *wire.Outline) {
	if own {
		return j.join(readings, pages), nil
	}
	var hint mcp.CacheHint
	if j.modern {
		hint = *j.hint
	}
	slot := j.of.joined[j.method]
	if had := slot.Load(); had != nil && had.table == j.table && had.hint == hint && slices.Equal(had.pages, pages) {
		return had.body, had.outline
	}
	made := &joined{pages: pages, table: j.table, hint: hint, body: j.join(readings, pages)}
	if len(made.body) <= maxJoined {
		made.outline = wire.OutlineOf(made.body)
		slot.Store(made)
	}
	return made.body, made.outline
}

// join makes the body of the result.
func (j *joining) join(readings []*reading, pages []*page) []byte {
	if j.kind == policy.Resource && (len(pages) > 1 || j.all != nil) {
		j.seen = make(map[string]int)
	}
	size := 512
	for _, p := range pages {
		size += len(p.texts)
	}
	dst := append(wire.AppendString(append(make([]byte, 0, size), '{'), j.array), ':', '[')
	for _, r := range readings {
		for _, p := range r.pages {
			dst = j.items(dst, r.member, p)
		}
	}
	return append(j.tail(wire.CloseArray(dst)), '}')
}

// note takes from a reading what is said of the list as a whole. A list that lacks something, or
// is of an earlier run, is not to be cached.
func (j *joining) note(r *reading) {
	if r.err != nil {
		j.missing = append(wire.AppendString(j.missing, j.of.roster.names[r.member]), ',')
	}
	if len(r.pages) > 0 {
		hint := r.hint
		if j.hint != nil {
			hint = hint.Tightest(*j.hint)
		}
		j.hint, j.modern = &hint, j.modern || r.modern
	}
	for _, p := range r.pages {
		j.meta, j.others = united(j.meta, p.meta), united(j.others, p.others)
	}
	if next := r.next(); next != "" {
		j.open = append(j.open, place{r.member, next})
	}
}

// united returns the members of two objects. Of two of one name the first one counts.
func united(a, b []wire.Edit) []wire.Edit {
	for _, e := range b {
		if !slices.ContainsFunc(a, func(had wire.Edit) bool { return had.Name == e.Name }) {
			a = append(a, e)
		}
	}
	return a
}

// items appends the items of a page that are shown, each followed by a comma.
func (j *joining) items(dst []byte, member int, p *page) []byte {
	if j.table == nil && j.seen == nil {
		return append(dst, p.texts...)
	}
	from := 0
	for _, it := range p.items {
		if j.shows(member, it.name) {
			dst = append(dst, p.texts[from:it.end]...)
		}
		from = it.end
	}
	return dst
}

// shows reports whether clients see what a member lists. Of members that list one URI the first
// one has it, on whichever pages they do.
func (j *joining) shows(member int, name string) bool {
	if j.table != nil {
		owner := j.table.Owner(name)
		return owner == member
	}
	first, seen := j.seen[name]
	if !seen {
		if first = member; j.all != nil {
			first = j.all.First(member, name)
		}
		j.seen[name] = first
	}
	if first != member {
		j.of.leaveOut(member, j.list, name, "it is that of server "+strconv.Quote(j.of.roster.names[first])+", which comes first")
	}
	return first == member
}

// tail appends the members of the result after the list, each after a comma. What of them servers
// of the older era can't say is in [mcp.Result].
func (j *joining) tail(dst []byte) []byte {
	add := func(name string, value []byte) {
		dst = append(append(wire.AppendString(append(dst, ','), name), ':'), value...)
	}
	if len(j.open) > 0 {
		add("nextCursor", wire.Quote(j.of.sealCursor(j.req, j.open)))
	}
	for _, e := range j.others {
		add(e.Name, e.Value)
	}
	if j.modern {
		add("resultType", wire.Quote(spec.ResultComplete))
		add("ttlMs", strconv.AppendInt(nil, j.hint.TTL, 10))
		add("cacheScope", wire.Quote(j.scope()))
	}
	if j.missing != nil {
		j.meta = united([]wire.Edit{{Name: spec.MetaMissing, Value: wire.CloseArray(append([]byte{'['}, j.missing...))}}, j.meta)
	}
	if j.meta != nil {
		add("_meta", wire.AppendEdited(nil, nil, j.meta...))
	}
	return dst
}

func (j *joining) scope() string {
	if j.hint.Public {
		return spec.ScopePublic
	}
	return spec.ScopePrivate
}
