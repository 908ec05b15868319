package group

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// serveExtension serves a request with a method that the specification does not have: with the
// only member that has an extension for it, or with the one of those that its params name.
func (b *Back) serveExtension(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
	p := params{meta: wire.Get(req.Params, "_meta")}
	places := b.declarers(ctx, req)
	if len(places) == 0 {
		return nil, b.noMethod(req)
	}
	if place, own := b.subject(ctx, req, places, &p); place >= 0 {
		m, err := b.roster.at(place)
		if err != nil {
			return nil, err
		}
		shown := wire.Unquote(p.subject)
		if own == shown {
			return b.askFor(ctx, &m, req, &p, c)
		}
		sent, err := b.sealing.forMember(req, &p, &m, wire.Quote(own))
		if err != nil {
			return nil, err
		}
		renameInHeader(&sent.Request, shown, own)
		return b.ask(ctx, &m, req, sent, c)
	}
	if len(places) > 1 {
		return nil, b.noMethod(req)
	}
	m, err := b.roster.at(places[0])
	if err != nil {
		return nil, err
	}
	return b.askFor(ctx, &m, req, &p, c)
}

// subject returns which of the members at places has what the params of a request name, and its
// own name for that, and stores the member of the params; -1 for a place if they name nothing of
// them.
func (b *Back) subject(ctx context.Context, req *mcp.Request, places []int, p *params) (place int, own string) {
	p.name, p.subject = memberTaskID, wire.Get(req.Params, memberTaskID)
	if of, inner, err := b.sealing.open(sealedTask, wire.Unquote(p.subject)); err == nil && slices.Contains(places, b.roster.place(of)) {
		return b.roster.place(of), inner
	}
	p.name, p.subject = memberName, wire.Get(req.Params, memberName)
	if name := wire.Unquote(p.subject); name != "" && (b.opts.Bare || names.PlaceIn(&b.finder.prefixes, name) >= 0) {
		for _, k := range []policy.Kind{policy.Tool, policy.Prompt} {
			if m, own, err := b.finder.ownerOf(ctx, req, k, name); err == nil && slices.Contains(places, m.index) {
				return m.index, own
			}
		}
	}
	p.name, p.subject = memberURI, wire.Get(req.Params, memberURI)
	if uri := wire.Unquote(p.subject); uri != "" {
		holders := slices.DeleteFunc(b.uris.Holders(&req.Profile, b.roster.names, uri), func(i int) bool { return !slices.Contains(places, i) })
		if len(holders) == 1 {
			return holders[0], uri
		}
	}
	return -1, ""
}

// declarers returns the places of the members that may have a method: those that declare the
// extension that it is of, as far as its name tells, or else those that declare any. The only
// member of a group may have every method.
func (b *Back) declarers(ctx context.Context, req *mcp.Request) (places []int) {
	if len(b.roster.names) == 1 {
		return []int{0}
	}
	short, cancel := context.WithTimeout(ctx, b.opts.Patience)
	defer cancel()
	best := 1
	for i := range b.roster.names {
		m, err := b.roster.at(i)
		if err != nil {
			continue
		}
		d, err := m.Describe(short, req)
		if err != nil {
			continue
		}
		switch rank := extensionRank(d.Capabilities, req.Method); {
		case rank > best:
			best, places = rank, []int{i}
		case rank == best:
			places = append(places, i)
		}
	}
	return places
}

// extensionRank says how likely a server with capabilities has a method: not if it declares no
// extension, and most likely if it declares the one that the method is of, whose name ends as the
// method begins: com.example/events has events/stream.
func extensionRank(capabilities []byte, method string) (rank int) {
	of, _, _ := strings.Cut(method, "/")
	for _, set := range []string{"extensions", "experimental"} {
		for k := range wire.Members(wire.Get(capabilities, set)) {
			switch name := k.String(); {
			case name == spec.ExtensionTasks, name == spec.ExtensionUI: // the first has methods that are known, and the other one has none
			case name[strings.LastIndexByte(name, '/')+1:] == of:
				return 2
			default:
				rank = 1
			}
		}
	}
	return rank
}

// renameInHeader has the Mcp-Name of a request, if it names what clients see as shown, name the own name.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Request Metadata.
func renameInHeader(sent *mcp.Request, shown, own string) {
	if v := sent.ParamHeaders[spec.HeaderName]; len(v) != 1 || v[0] != shown || own == shown {
		return
	}
	sent.ParamHeaders = maps.Clone(sent.ParamHeaders)
	sent.ParamHeaders[spec.HeaderName] = []string{spec.EncodeHeader(own)}
}
