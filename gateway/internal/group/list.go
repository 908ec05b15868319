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
	places, first, err := b.listings.placesOf(req)
	if err != nil {
		return nil, err
	}
	r := reader{of: b.listings, req: req, list: l, caller: c}
	if len(b.roster.names) > 1 {
		r.req, r.whole = withoutProgress(req), b.opts.Bare && l.kind != policy.Resource
	}
	changes := b.finder.tables.Begin()
	readings := r.each(ctx, places)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if first {
		b.short.listed(req, l, readings)
		if !r.whole && l.kind != policy.Resource { // whose lists are read as a whole for their URIs
			b.rememberRest(req, l, readings)
		}
	}
	if err := b.listings.judge(l, readings); err != nil {
		return nil, err
	}
	if !first {
		b.short.listed(req, l, readings) // which are not refused: the client goes on without some
	}
	j := joining{of: b.listings, req: req, list: l}
	switch {
	case r.whole:
		j.table = b.finder.learnTable(req, readings, changes)
	case l.kind == policy.Resource:
		if j.all = b.listings.beyond(ctx, req, readings); ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return j.result(readings), nil
}

// placesOf returns where a request for a list goes on, and whether that is at the beginning.
func (l *listings) placesOf(req *mcp.Request) (places []place, first bool, err error) {
	cursor := wire.Get(req.Params, "cursor")
	if cursor == nil || wire.IsNull(cursor) {
		return l.roster.everywhere(), true, nil
	}
	places, ok := l.openCursor(req, wire.Unquote(cursor))
	if !ok || cursor[0] != '"' {
		return nil, false, mcp.Refuse(spec.CodeInvalidParams, "the cursor is not one of this list of group %q; list from the beginning, without a cursor", l.opts.Name)
	}
	return places, false, nil
}

// sealCursor returns the cursor of what is open of a list. It is of one profile.
func (l *listings) sealCursor(req *mcp.Request, open []place) string {
	text := wire.AppendString([]byte{'['}, req.Method)
	text = wire.AppendString(append(text, ','), mcp.PlainScope(req.Profile.Scope))
	for _, p := range open {
		text = wire.AppendString(append(text, ','), l.roster.names[p.member])
		text = wire.AppendString(append(text, ','), p.cursor)
	}
	return l.sealing.seal(sealedCursor, "", base64.RawURLEncoding.EncodeToString(append(text, ']')))
}

// openCursor returns the places of a cursor, or false for one of another list, another profile,
// or of members that have gone since.
func (l *listings) openCursor(req *mcp.Request, cursor string) (places []place, ok bool) {
	_, encoded, err := l.sealing.open(sealedCursor, cursor)
	text, _ := base64.RawURLEncoding.DecodeString(encoded) // it is as it was sealed
	parts := wire.Strings(text)
	if err != nil || len(parts) < 4 || parts[0] != req.Method || parts[1] != mcp.PlainScope(req.Profile.Scope) {
		return nil, false
	}
	for rest := parts[2:]; len(rest) > 1; rest = rest[2:] {
		i := l.roster.place(rest[0])
		if i < 0 {
			return nil, false
		}
		places = append(places, place{i, rest[1]})
	}
	return places, true
}

// judge returns an error if nothing can be listed, or if nothing may be left out. Where one
// member alone was to be asked, it is that of the member.
func (l *listings) judge(of list, readings []*reading) error {
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
		return wire.Errorf(spec.CodeMethodNotFound, "no server of group %q has %s", l.opts.Name, spec.Capability(of.method))
	case len(failed) == 0:
		return nil
	case len(l.roster.names) == 1:
		return failed[0].err
	}
	for _, r := range failed {
		if r.cursor != "" && mcp.HasCode(r.err, spec.CodeInvalidParams) {
			return wire.Errorf(spec.CodeInvalidParams, "server %q of group %q does not know its cursor any more; list from the beginning, without a cursor",
				l.roster.names[r.member], l.opts.Name)
		}
	}
	if len(failed) < asked && !l.opts.Require {
		return nil
	}
	var why []string
	for _, r := range failed {
		why = append(why, fmt.Sprintf("server %q: %s", l.roster.names[r.member], mcp.WireError(r.err).Message))
	}
	return mcp.RefuseForNow("%s of group %q can't be listed: %s; try again later", spec.Capability(of.method), l.opts.Name, strings.Join(why, "; "))
}
