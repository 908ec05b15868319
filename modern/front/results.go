package front

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// stamp appends the response with res. It adds the members that the revision requires, and
// repairs what strict clients would reject. It keeps the members of a modern server, and
// forwards a result that is not complete unchanged. Members of the same names from a
// legacy server are replaced (some servers of both eras send theirs to legacy clients).
// The message may share memory with res.
//
// Spec: 2026-07-28, basic/index, Result Responses; server/utilities/caching.
func (f *Front) stamp(dst []byte, id wire.ID, req *mcp.Request, res *mcp.Result) (downstream.Message, error) {
	if !wire.IsObject(res.Body) {
		return downstream.Message{Text: dst}, fmt.Errorf("server %q answered %s with a result that is not an object", f.opts.Name, req.Method)
	}
	s := stamper{front: f, req: req, res: res, own: res.Era == spec.Modern}
	if s.own && !isComplete(res) {
		return downstream.Message{Text: wire.AppendResult(dst, id, res.Body, res.Extra)}, nil
	}
	dst = slices.Grow(dst, min(len(res.Body), minLarge)+len(res.ServerInfo)+512)
	dst = append(id.Append(append(dst, `{"jsonrpc":"2.0","id":`...)), `,"result":{`...)
	dst = s.tail(s.members(dst))
	for _, q := range s.mended {
		f.opts.Quirks.Met(q, "")
	}
	dst = append(dst, '}')
	if len(res.Extra) > 0 {
		dst = append(append(dst, ','), res.Extra...)
	}
	return downstream.Message{Text: append(dst, '}'), Large: s.large, At: s.at}, nil
}

// minLarge is the size from which on a member is written separately instead of copied.
const minLarge = 128 << 10

// isComplete reports whether a modern server's result ends its request.
func isComplete(res *mcp.Result) bool {
	typ := res.Outline.Get(res.Body, "resultType")
	return typ == nil || string(typ) == `"`+spec.ResultComplete+`"`
}

// A stamper copies one result, member by member.
type stamper struct {
	front *Front
	req   *mcp.Request
	res   *mcp.Result
	own   bool // the server is modern: it has set the required members itself

	meta                          []byte // the result's _meta; nil if none
	hasType, hasTTL, hasScope, ok bool   // ok: the list that the method requires was there

	mended quirks.Mended // what the server's result broke; nil for most

	large []byte // the member that is not copied; nil if all were
	at    int    // its position
}

// members copies the server's members, except those that tail writes. Each member ends
// with a comma.
func (s *stamper) members(dst []byte) []byte {
	array := spec.Array(s.req.Method)
	for k, v := range s.res.Outline.Members(s.res.Body) {
		switch {
		case k.Is("_meta"):
			s.meta = v
			continue
		case k.Is("resultType") && s.stamped(&s.hasType),
			k.Is("ttlMs") && s.stamped(&s.hasTTL),
			k.Is("cacheScope") && s.stamped(&s.hasScope):
			continue
		case array != "" && k.Is(array):
			s.ok = true
			dst = s.list(append(append(dst, k...), ':'), v)
			dst = append(dst, ',')
			continue
		case k.Is("completion") && s.req.Method == spec.MethodComplete:
			cut := mcp.CutCompletion(v)
			if len(cut) != len(v) {
				s.mended.Add(quirks.Completions)
			}
			dst = append(append(append(append(dst, k...), ':'), cut...), ',')
			continue
		case wire.IsNull(v) && (k.Is("nextCursor") || k.Is("isError") || k.Is("description") && s.req.Method == spec.MethodPromptsGet):
			s.mended.Add(quirks.NullMembers)
			continue
		}
		dst = append(append(dst, k...), ':')
		dst = append(s.copy(dst, v), ',')
	}
	return dst
}

// copy appends v, or records its position if v is large.
func (s *stamper) copy(dst, v []byte) []byte {
	if len(v) < minLarge || s.large != nil {
		return append(dst, v...)
	}
	s.large, s.at = v, len(dst)
	return dst
}

// stamped records a required member, and reports whether to omit it.
func (s *stamper) stamped(has *bool) bool {
	*has = s.own
	return !s.own
}

// tail writes the required members, _meta last.
func (s *stamper) tail(dst []byte) []byte {
	if array := spec.Array(s.req.Method); array != "" && !s.ok {
		s.mended.Add(quirks.ListMissing)
		dst = append(wire.AppendString(dst, array), ":[],"...)
	}
	if !s.hasType {
		dst = append(dst, `"resultType":"complete",`...)
	}
	if spec.Cacheable(s.req.Method) {
		dst = s.hints(dst)
	}
	if s.meta == nil && s.res.ServerInfo == nil {
		return bytes.TrimSuffix(dst, []byte{','})
	}
	dst = append(dst, `"_meta":`...)
	if s.res.ServerInfo == nil || wire.Get(s.meta, spec.MetaServerInfo) != nil {
		return wire.AppendEdited(dst, s.meta)
	}
	return wire.AppendEdited(dst, s.meta, wire.Edit{Name: spec.MetaServerInfo, Value: s.res.ServerInfo})
}

func (s *stamper) hints(dst []byte) []byte {
	if !s.hasTTL {
		dst = append(strconv.AppendInt(append(dst, `"ttlMs":`...), s.res.Cache.TTL, 10), ',')
	}
	if !s.hasScope {
		scope := spec.ScopePrivate
		if s.res.Cache.Public {
			scope = spec.ScopePublic
		}
		dst = append(append(append(dst, `"cacheScope":"`...), scope...), `",`...)
	}
	return dst
}

// itemsNonNull has, for each method whose result has an array, the members of its items
// that must not be null.
var itemsNonNull = map[string][]string{
	spec.MethodToolsList:          {"_meta", "name", "title", "description", "inputSchema", "outputSchema", "annotations", "icons"},
	spec.MethodPromptsList:        {"_meta", "name", "title", "description", "arguments", "icons"},
	spec.MethodResourcesList:      {"_meta", "name", "title", "uri", "description", "mimeType", "annotations", "size", "icons"},
	spec.MethodResourcesTemplates: {"_meta", "name", "title", "uriTemplate", "description", "mimeType", "annotations", "icons"},
	spec.MethodToolsCall:          mcp.ContentNonNull,
	spec.MethodResourcesRead:      {"_meta", "uri", "mimeType", "text", "blob"},
	spec.MethodPromptsGet:         {"role", "content"},
}

// list copies the array of a result. It reads the items only if there may be something to
// repair.
func (s *stamper) list(dst, v []byte) []byte {
	switch {
	case wire.IsNull(v):
		s.mended.Add(quirks.ListMissing)
		return append(dst, "[]"...)
	case !wire.IsArray(v):
		return s.copy(dst, v)
	case s.req.Method == spec.MethodToolsList:
		s.front.schemas.Learn(s.req.Profile.Scope, v)
		return s.tools(dst, v)
	case !s.res.Outline.MayHaveNulls(s.res.Body):
		return s.copy(dst, v)
	}
	dst = append(dst, '[')
	for e := range wire.Elements(v) {
		before := len(dst)
		if dst = wire.AppendWithoutNulls(dst, e, itemsNonNull[s.req.Method]); len(dst)-before != len(e) {
			s.mended.Add(quirks.NullMembers)
		}
		dst = append(dst, ',')
	}
	return wire.CloseArray(dst)
}

// tools copies a list of tools. A tool that can't be repaired is omitted, because clients
// would otherwise reject the whole list.
func (s *stamper) tools(dst, v []byte) []byte {
	hash, clean := s.front.clean.has(v)
	if clean {
		return s.copy(dst, v)
	}
	begin, clean := len(dst), true
	dst = append(dst, '[')
	for tool := range wire.Elements(v) {
		edits, reason := toolEdits(tool)
		clean = clean && reason == "" && len(edits) == 1 && wire.GetSeldom(tool, "execution") == nil
		if reason != "" || len(edits) > 1 { // besides that of execution, which is none
			s.mended.Add(quirks.ToolSchema)
		}
		if reason != "" {
			name, _ := wire.GetString(tool, "name")
			s.front.opts.Logger.Warn("tool left out of the list", "upstream", s.front.opts.Name, "tool", name, "reason", reason)
			continue
		}
		for k, v := range wire.Members(tool) {
			if wire.IsNull(v) && slices.Contains(itemsNonNull[spec.MethodToolsList], k.String()) && !k.Is("inputSchema") {
				edits, clean = append(edits, wire.Edit{Name: k.String()}), false
				s.mended.Add(quirks.NullMembers)
			}
		}
		dst = append(wire.AppendEdited(dst, tool, edits...), ',')
	}
	if clean {
		s.front.clean.add(hash)
		return s.copy(dst[:begin], v)
	}
	return wire.CloseArray(dst)
}

// MendedOf returns what is mended of a list that nobody has mended yet.
func MendedOf(l *mcp.Listing) []quirks.Quirk {
	var mended quirks.Mended
	if l.Missing {
		mended.Add(quirks.ListMissing)
	}
	if l.NullCursor {
		mended.Add(quirks.NullMembers)
	}
	for _, item := range l.Items {
		if l.Method == spec.MethodToolsList {
			if edits, reason := toolEdits(item); reason != "" || len(edits) > 1 {
				mended.Add(quirks.ToolSchema)
			}
		}
		for k, v := range wire.Members(item) {
			if wire.IsNull(v) && slices.Contains(itemsNonNull[l.Method], k.String()) && !k.Is("inputSchema") {
				mended.Add(quirks.NullMembers)
			}
		}
	}
	return mended
}

// toolEdits returns the edits that make a tool valid in this revision, or the reason why
// that is impossible. execution belongs to the tasks of 2025-11-25.
func toolEdits(tool []byte) (edits []wire.Edit, reason string) {
	if !wire.IsObject(tool) {
		return nil, "it is not an object"
	}
	edits = append(edits, wire.Edit{Name: "execution"})
	schema := wire.Get(tool, "inputSchema")
	if schema == nil || wire.IsNull(schema) {
		return append(edits, wire.Edit{Name: "inputSchema", Value: []byte(`{"type":"object"}`)}), ""
	}
	if !wire.IsObject(schema) {
		return nil, "its inputSchema is not an object"
	}
	switch typ := wire.Get(schema, "type"); {
	case typ == nil:
		typed := wire.AppendEdited(nil, schema, wire.Edit{Name: "type", Value: []byte(`"object"`)})
		return append(edits, wire.Edit{Name: "inputSchema", Value: typed}), ""
	case wire.Unquote(typ) != "object":
		return nil, "the root of its inputSchema is not of type object"
	}
	return edits, ""
}
