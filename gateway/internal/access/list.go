package access

import (
	"errors"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// list returns the result of a list without what the client may not use, and by the names that
// clients see, and whether it has changed. A page may become empty; its cursor stays, and leads
// to the next page. It returns an error if two elements would have one name.
//
// Spec: 2026-07-28, server/utilities/pagination.
func (q *request) list(result []byte, o *wire.Outline) (body []byte, changed bool, err error) {
	array, name, isList := q.op.Listed()
	pins := q.c.opts.Pins != nil && q.method == spec.MethodToolsList
	if !isList || q.c.opts.Policy == nil && !pins && !q.c.opts.Names.Changes(q.op.Lists()) {
		return result, false, nil
	}
	s := listFilter{q: q, name: name, caller: q.sender.caller()}
	if pins {
		definitions := slices.Collect(wire.Elements(o.Get(result, array)))
		s.accepted = q.c.opts.Pins.Check(definitions, isLast(result, o))
	}
	elements := o.Get(result, array)
	kept, all, err := s.pick(elements)
	if all || err != nil {
		return result, false, err
	}
	return wire.AppendEdited(make([]byte, 0, len(result)), result, wire.Edit{Name: array, Value: kept}), true, nil
}

// isLast reports whether a page of a list is the last one.
func isLast(result []byte, o *wire.Outline) bool {
	next := o.Get(result, "nextCursor")
	return next == nil || wire.IsNull(next)
}

// A listFilter picks the elements of a list that the client may use.
type listFilter struct {
	q        *request
	name     string // the member of elements that has their name
	caller   policy.Caller
	accepted []bool // of the elements from the next one on; nil if definitions are not pinned
}

// pick returns an array of the elements that the client may use, as clients see them, or
// reports that these are all of them, as they are.
func (s *listFilter) pick(array []byte) (kept []byte, all bool, err error) {
	same := 0
	for e := range wire.Elements(array) {
		shown, err := s.show(e)
		if err != nil {
			return nil, false, err
		}
		if kept == nil && len(shown) == len(e) && &shown[0] == &e[0] {
			same++
			continue
		}
		if kept == nil {
			kept = first(array, same)
		}
		if shown != nil {
			kept = append(append(kept, shown...), ',')
		}
	}
	if kept == nil {
		return array, true, nil
	}
	return wire.CloseArray(kept), false, nil
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

// show returns the next element as clients see it; nil if the client may not use it. Definitions
// were compared as the server has sent them.
func (s *listFilter) show(element []byte) ([]byte, error) {
	accepted := true
	if len(s.accepted) > 0 {
		accepted, s.accepted = s.accepted[0], s.accepted[1:]
	}
	p := s.q.c.opts.Policy
	if !accepted || p != nil && !p.Visible(&s.caller, &s.q.op, element) {
		return nil, nil
	}
	shown, err := s.q.c.opts.Names.Item(s.q.op.Lists(), s.name, element)
	switch {
	case errors.Is(err, names.ErrHidden):
		if own, ok := wire.GetString(element, s.name); ok {
			s.q.c.hidden.add(s.q.method, own)
		}
		return nil, nil
	case err != nil:
		return nil, wire.Errorf(spec.CodeInternal, "server %q: %v; in its configuration", s.q.c.opts.Server, err)
	}
	return shown, nil
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
