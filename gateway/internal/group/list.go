package group

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// serveList serves a list: the first answer has the first pages of all members, in their order,
// and the next ones have the next pages of those that have more. Without prefixes, one answer has
// everything, since all names have to be known before one is shown.
//
// Spec: 2026-07-28 and 2025-11-25, server/utilities/pagination.
func (b *Back) serveList(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
	l := listOf(req.Method)
	places, first, err := b.placesOf(req)
	if err != nil {
		return nil, err
	}
	r := reader{b: b, req: req, list: l, caller: c}
	if len(b.opts.Members) > 1 {
		r.req, r.whole = withoutProgress(req), b.opts.Bare && l.kind != policy.Resource
	}
	changes := b.naming.tables.Begin()
	readings := r.each(ctx, places)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if first {
		b.short.listed(req, l, readings)
	}
	if err := b.judge(l, readings); err != nil {
		return nil, err
	}
	j := joining{b: b, req: req, list: l}
	if r.whole {
		j.table = b.learnTable(req, readings, changes)
	}
	return j.result(readings), nil
}

// everywhere returns the beginnings of the lists of all members.
func (b *Back) everywhere() []place {
	places := make([]place, len(b.opts.Members))
	for i := range places {
		places[i].member = i
	}
	return places
}

// placesOf returns where a request for a list goes on, and whether that is at the beginning.
func (b *Back) placesOf(req *mcp.Request) (places []place, first bool, err error) {
	cursor := wire.Get(req.Params, "cursor")
	if cursor == nil || wire.IsNull(cursor) {
		return b.everywhere(), true, nil
	}
	places, ok := b.openCursor(req, wire.Unquote(cursor))
	if !ok || cursor[0] != '"' {
		return nil, false, mcp.Refuse(spec.CodeInvalidParams, "the cursor is not one of this list of group %q; list from the beginning, without a cursor", b.opts.Name)
	}
	return places, false, nil
}

// sealCursor returns the cursor of what is open of a list. It is of one profile.
func (b *Back) sealCursor(req *mcp.Request, open []place) string {
	text := wire.AppendString([]byte{'['}, req.Method)
	text = wire.AppendString(append(text, ','), mcp.PlainScope(req.Profile.Scope))
	for _, p := range open {
		text = wire.AppendString(append(text, ','), b.opts.Members[p.member].Name)
		text = wire.AppendString(append(text, ','), p.cursor)
	}
	return b.seal(sealedCursor, "", base64.RawURLEncoding.EncodeToString(append(text, ']')))
}

// openCursor returns the places of a cursor, or false for one of another list, another profile,
// or of members that have gone since.
func (b *Back) openCursor(req *mcp.Request, cursor string) (places []place, ok bool) {
	_, encoded, err := b.open(sealedCursor, cursor)
	text, _ := base64.RawURLEncoding.DecodeString(encoded) // it is as it was sealed
	parts := wire.Strings(text)
	if err != nil || len(parts) < 4 || parts[0] != req.Method || parts[1] != mcp.PlainScope(req.Profile.Scope) {
		return nil, false
	}
	for rest := parts[2:]; len(rest) > 1; rest = rest[2:] {
		i := b.place(rest[0])
		if i < 0 {
			return nil, false
		}
		places = append(places, place{i, rest[1]})
	}
	return places, true
}

// place returns the place of a member; -1 if there is none of that name.
func (b *Back) place(name string) int {
	for i := range b.opts.Members {
		if b.opts.Members[i].Name == name {
			return i
		}
	}
	return -1
}

// judge returns an error if nothing can be listed, or if nothing may be left out. Where one
// member alone was to be asked, it is that of the member.
func (b *Back) judge(l list, readings []*reading) error {
	var failed []*reading
	asked := 0
	for _, r := range readings {
		if !r.none {
			asked++
		}
		if r.err != nil {
			failed = append(failed, r)
		}
	}
	switch {
	case asked == 0:
		return wire.Errorf(spec.CodeMethodNotFound, "no server of group %q has %s", b.opts.Name, spec.Capability(l.method))
	case len(failed) == 0:
		return nil
	case len(b.opts.Members) == 1:
		return failed[0].err
	}
	for _, r := range failed {
		if r.cursor != "" && says(r.err, spec.CodeInvalidParams) {
			return wire.Errorf(spec.CodeInvalidParams, "server %q of group %q does not know its cursor any more; list from the beginning, without a cursor",
				b.opts.Members[r.member].Name, b.opts.Name)
		}
	}
	if len(failed) < asked && !b.opts.Require {
		return nil
	}
	var why []string
	for _, r := range failed {
		why = append(why, fmt.Sprintf("server %q: %s", b.opts.Members[r.member].Name, mcp.WireError(r.err).Message))
	}
	return mcp.RefuseForNow("%s of group %q can't be listed: %s; try again later", spec.Capability(l.method), b.opts.Name, strings.Join(why, "; "))
}
