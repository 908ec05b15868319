package projection

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// AppendResult appends to dst the result for a client of rev, and returns the extended
// slice, and what the server's result broke that is mended. body is a modern server's result of a request of method with params. t, which
// may be nil, keeps information about tools between their list and their calls.
//
// body must have passed [wire.Check]. If it is not a complete result, AppendResult
// returns dst unchanged and an error.
//
// Spec: 2026-07-28, basic/index, Result Responses.
func AppendResult(dst []byte, rev spec.Revision, method string, params, body []byte, t *Tools) ([]byte, []quirks.Quirk, error) {
	if !wire.IsObject(body) {
		return dst, nil, errors.New("it is not an object")
	}
	p := projector{rev: rev, method: method, params: params, body: body, tools: t,
		array: spec.Array(method), nonNull: itemsNonNull[method]}
	out := p.members(append(dst, '{'))
	if p.odd != nil {
		return dst, nil, fmt.Errorf("its resultType is %s, want %q", p.odd, spec.ResultComplete)
	}
	out = closed(p.missing(out), '}')
	return out, p.mended, nil
}

// A projector copies one result member by member.
type projector struct {
	rev     spec.Revision
	method  string
	params  []byte
	body    []byte
	tools   *Tools
	array   string   // the required array of the result, "" if none
	nonNull []string // members of its items that must not be null

	odd   []byte // a resultType other than complete
	found bool   // the result has array

	mended quirks.Mended // what the result broke; nil for most
}

// withoutNulls appends object without the members among names that are null.
func (p *projector) withoutNulls(dst, object []byte, names []string) []byte {
	before := len(dst)
	if dst = wire.AppendWithoutNulls(dst, object, names); len(dst)-before != len(object) {
		p.mended.Add(quirks.NullMembers)
	}
	return dst
}

// members copies the members for a client of the revision, each followed by a comma.
func (p *projector) members(dst []byte) []byte {
	calls := p.method == spec.MethodToolsCall
	defined := spec.Defined(p.method)
	for k, v := range wire.Members(p.body) {
		switch name := plain(k); {
		case string(name) == "resultType":
			if string(v) != `"complete"` && wire.Unquote(v) != spec.ResultComplete {
				p.odd = v
			}
		case string(name) == "_meta":
			if wire.IsNull(v) {
				p.mended.Add(quirks.NullMembers)
			}
			dst = appendMeta(dst, v)
		case defined && (string(name) == "ttlMs" || string(name) == "cacheScope"):
		case calls && string(name) == "structuredContent":
			dst = append(append(dst, k...), ':')
			dst = append(p.object(dst, v), ',')
		case p.array != "" && string(name) == p.array:
			p.found = true
			dst = append(append(dst, k...), ':')
			dst = append(p.items(dst, v), ',')
		case p.method == spec.MethodComplete && string(name) == "completion":
			dst = append(append(dst, k...), ':')
			cut := mcp.CutCompletion(v)
			if len(cut) != len(v) {
				p.mended.Add(quirks.Completions)
			}
			dst = append(p.withoutNulls(dst, cut, completionMembers), ',')
		case defined && wire.IsNull(v) && slices.Contains(nonNull, string(name)):
			p.mended.Add(quirks.NullMembers)
		default:
			dst = append(append(dst, k...), ':')
			dst = append(append(dst, v...), ',')
		}
	}
	return dst
}

// nonNull names further optional members of results that must not be null. TypeScript and
// Python clients refuse a result with such a null.
var nonNull = []string{"nextCursor", "isError", "description"}

// missing adds the required list if the result lacks it.
func (p *projector) missing(dst []byte) []byte {
	if p.array == "" || p.found {
		return dst
	}
	dst = append(wire.AppendString(dst, p.array), ':')
	return append(p.items(dst, []byte("null")), ',')
}

// modernMeta removes the members that the modern revision has in _meta of results and
// notifications.
//
// Spec: 2026-07-28, basic/index, _meta.
var modernMeta = []wire.Edit{{Name: spec.MetaServerInfo}, {Name: spec.MetaSubscriptionID}}

// appendMeta appends the member _meta, and a comma, unless it becomes empty.
func appendMeta(dst, meta []byte) []byte {
	if wire.IsNull(meta) {
		return dst
	}
	from := len(dst)
	dst = append(dst, `"_meta":`...)
	if !wire.IsObject(meta) {
		return append(append(dst, meta...), ',')
	}
	at := len(dst)
	dst = wire.AppendEdited(dst, meta, modernMeta...)
	if string(dst[at:]) == "{}" && !wire.IsEmptyObject(meta) {
		return dst[:from]
	}
	return append(dst, ',')
}

var completionMembers = []string{"total", "hasMore"}

// plain returns the name of k without quotes.
func plain(k wire.Key) []byte {
	if bytes.IndexByte(k, '\\') < 0 {
		return k[1 : len(k)-1]
	}
	return []byte(k.String())
}

// closed ends a list whose elements are each followed by a comma.
func closed(dst []byte, end byte) []byte {
	return append(bytes.TrimSuffix(dst, []byte{','}), end)
}
