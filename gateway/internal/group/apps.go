package group

import (
	"context"
	"fmt"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Apps returns a Handler that takes calls of apps to next. An app knows the tools of its own
// server by the names that they have there, since it was written before the server was in a group.
// The name that clients see is put in its place, so that the Handler has to stand before what
// controls the access to the group.
//
// Spec: MCP Apps 2026-01-26, Visibility.
func (g *Group) Apps(next mcp.Handler) mcp.Handler { return &apps{g.back.Load, next} }

type apps struct {
	back func() *Back
	next mcp.Handler
}

// Serve implements [mcp.Handler].
func (a *apps) Serve(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
	b := a.back()
	if req.Method != spec.MethodToolsCall || b.opts.Bare {
		return a.next.Serve(ctx, req, c)
	}
	text := req.Plain.Get(req.Params, memberName)
	if len(text) <= len(`""`) || text[0] != '"' || names.PlaceIn(&b.finder.prefixes, text[1:]) >= 0 { // no prefix has escapes
		return a.next.Serve(ctx, req, c)
	}
	name := wire.Unquote(text)
	if names.PlaceIn(&b.finder.prefixes, name) >= 0 {
		return a.next.Serve(ctx, req, c)
	}
	owners := b.appOwners(ctx, req, name)
	if len(owners) != 1 {
		return a.next.Serve(ctx, req, c) // which refuses it
	}
	shown := b.finder.shown(&b.roster.members[owners[0]], policy.Tool, name)
	return a.next.Serve(ctx, &withParams(req, wire.ReplacePart(req.Params, text, wire.Quote(shown))).Request, c)
}

// appOwners returns the places of the members that have a tool which apps may call by its bare
// own name, as far as they are known to a client. Those that can't be asked now count as well.
func (b *Back) appOwners(ctx context.Context, req *mcp.Request, own string) (places []int) {
	b.listings.learn(ctx, b.opts.Patience, req, spec.MethodToolsList)
	return b.uris.ForApps(&req.Profile, b.roster.names, own)
}

// explainBare returns the error for a tool that nobody has by that name: err, or one that says
// that several members have it for their apps.
func (b *Back) explainBare(req *mcp.Request, k policy.Kind, name string, err error) error {
	if k != policy.Tool || b.opts.Bare || names.PlaceIn(&b.finder.prefixes, name) >= 0 {
		return err
	}
	var owners []string
	for _, i := range b.uris.ForApps(&req.Profile, b.roster.names, name) {
		owners = append(owners, fmt.Sprintf("%q as %s", b.roster.names[i], b.finder.shown(&b.roster.members[i], policy.Tool, name)))
	}
	if len(owners) < 2 {
		return err
	}
	return wire.Errorf(spec.CodeInvalidParams, "Unknown tool: %s; several servers have it for their apps, so call it by its whole name: %s", mcp.Shorten(name), strings.Join(owners, ", "))
}
