package access

import (
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// list returns the result of a list without what the client may not use, and whether it has
// changed. A page may become empty; its cursor stays, and leads to the next page.
//
// Spec: 2026-07-28, server/utilities/pagination.
func (q *request) list(result []byte, o *wire.Outline) (body []byte, changed bool) {
	array, _, isList := q.op.Listed()
	if !isList || q.c.opts.Policy == nil && (q.c.opts.Pins == nil || q.method != spec.MethodToolsList) {
		return result, false
	}
	s := listFilter{q: q, caller: q.sender.caller()}
	if q.c.opts.Pins != nil && q.method == spec.MethodToolsList {
		definitions := slices.Collect(wire.Elements(o.Get(result, array)))
		s.accepted = q.c.opts.Pins.Check(definitions, isLast(result, o))
	}
	elements := o.Get(result, array)
	kept, all := s.pick(elements)
	if all {
		return result, false
	}
	return wire.AppendEdited(make([]byte, 0, len(result)), result, wire.Edit{Name: array, Value: kept}), true
}

// isLast reports whether a page of a list is the last one.
func isLast(result []byte, o *wire.Outline) bool {
	next := o.Get(result, "nextCursor")
	return next == nil || wire.IsNull(next)
}

// A listFilter picks the elements of a list that the client may use.
type listFilter struct {
	q        *request
	caller   policy.Caller
	accepted []bool // of the elements from the next one on; nil if definitions are not pinned
}

// pick returns an array of the elements that the client may use, or reports that it may use
// all.
func (s *listFilter) pick(array []byte) (kept []byte, all bool) {
	seen := 0
	for e := range wire.Elements(array) {
		if s.shows(e) {
			if kept != nil {
				kept = append(append(kept, e...), ',')
			} else {
				seen++
			}
			continue
		}
		if kept == nil {
			kept = first(array, seen)
		}
	}
	if kept == nil {
		return array, true
	}
	return wire.CloseArray(kept), false
}

// first returns the beginning of an array with the first n elements of another.
func first(array []byte, n int) []byte {
	kept := append(make([]byte, 0, len(array)), '[')
	for e := range wire.Elements(array) {
		if n--; n < 0 {
			break
		}
		kept = append(append(kept, e...), ',')
	}
	return kept
}

// shows reports whether the client may use the next element.
func (s *listFilter) shows(element []byte) bool {
	accepted := true
	if len(s.accepted) > 0 {
		accepted, s.accepted = s.accepted[0], s.accepted[1:]
	}
	p := s.q.c.opts.Policy
	return accepted && (p == nil || p.Visible(&s.caller, &s.q.op, element))
}

// makePrivate marks a result as one that must not be cached for other clients.
//
// Spec: 2026-07-28, server/utilities/caching, Cache Scope Field.
func makePrivate(res *mcp.Result) {
	res.Cache.Public = false
	scope := res.Outline.Get(res.Body, "cacheScope")
	if scope != nil && wire.Unquote(scope) == spec.ScopePublic {
		res.Body = wire.AppendEdited(make([]byte, 0, len(res.Body)+8), res.Body, wire.Edit{Name: "cacheScope", Value: wire.Quote(spec.ScopePrivate)})
		res.Outline = nil
	}
}
