package group

import (
	"context"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Serve implements [mcp.Handler]. A request goes to the one member that it is for, but for
// lists, which are joined, and listen streams, which are divided. Progress, cancellation and
// questions are between that member and the client.
func (b *Back) Serve(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
	switch req.Method {
	case spec.MethodToolsCall:
		return b.serveNamed(ctx, req, c, policy.Tool)
	case spec.MethodPromptsGet:
		return b.serveNamed(ctx, req, c, policy.Prompt)
	case spec.MethodToolsList, spec.MethodPromptsList, spec.MethodResourcesList, spec.MethodResourcesTemplates:
		return b.serveList(ctx, req, c)
	case spec.MethodResourcesRead:
		return b.serveRead(ctx, req, c)
	case spec.MethodComplete:
		return b.serveCompletion(ctx, req, c)
	case spec.MethodListen:
		return b.serveListen(ctx, req, c)
	case spec.MethodTaskGet, spec.MethodTaskUpdate, spec.MethodTaskCancel:
		return b.serveTask(ctx, req, c)
	case spec.MethodTaskResult:
		if req.HoldsTasks {
			return b.serveTask(ctx, req, c)
		}
	case spec.MethodPing:
		return mcp.NewResult([]byte("{}"), nil), nil
	}
	if spec.Defined(req.Method) || strings.HasPrefix(req.Method, spec.MethodTasksPrefix) {
		return nil, b.noMethod(req)
	}
	return b.serveExtension(ctx, req, c)
}

// noMethod returns the error for a method that no member serves.
func (b *Back) noMethod(req *mcp.Request) error {
	return mcp.Refuse(spec.CodeMethodNotFound, "no server of group %q has the method %q", b.opts.Name, mcp.Shorten(req.Method))
}

// serveNamed serves a request about a tool or a prompt.
func (b *Back) serveNamed(ctx context.Context, req *mcp.Request, c mcp.Caller, k policy.Kind) (*mcp.Result, error) {
	p, err := readParams(req, memberName)
	if err != nil {
		return nil, err
	}
	var m memberAt
	var subject []byte
	if i := b.finder.atHand(req, k, &p); i >= 0 {
		m, err = b.roster.at(i)
	} else {
		shown, own := wire.Unquote(p.subject), ""
		m, own, err = b.finder.ownerOf(ctx, req, k, shown)
		switch {
		case err != nil:
			err = b.explainBare(req, k, shown, err)
		case own != shown:
			subject = wire.Quote(own)
		}
	}
	if err != nil {
		return nil, err
	}
	sent, err := b.sealing.forMember(req, &p, &m, subject)
	if err != nil {
		return nil, err
	}
	return b.ask(ctx, &m, req, sent, c)
}

// ask has a member serve a client's request, as it is sent there.
func (b *Back) ask(ctx context.Context, m *memberAt, req *mcp.Request, sent *passing, c mcp.Caller) (*mcp.Result, error) {
	sent.caller = attributed{Caller: c, server: m.Name, silent: b.opts.Unattributed}
	if req.HoldsTasks {
		b.sealing.holdTasks(sent)
	}
	res, err := m.Serve(ctx, &sent.Request, &sent.caller)
	if err != nil {
		return nil, err
	}
	b.handOut(m, req, res)
	return res, nil
}

// serveCompletion serves a completion: a prompt is called by its shown name, and a resource
// is found as for reading.
func (b *Back) serveCompletion(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
	op, err := policy.ReadParsed(req.Method, req.Params, req.Extra, req.Plain)
	kind, name := op.About()
	switch {
	case err != nil:
		return nil, mcp.Refuse(spec.CodeInvalidParams, "params.ref can't be read: %v", err)
	case kind == policy.Resource:
		return b.serveURI(ctx, req, &params{meta: wire.Get(req.Params, "_meta")}, c, name)
	case kind != policy.Prompt:
		return nil, mcp.Refuse(spec.CodeInvalidParams, "params.ref names neither a prompt nor a resource")
	}
	m, own, err := b.finder.ownerOf(ctx, req, kind, name)
	if err != nil {
		return nil, err
	}
	if own == name {
		return b.ask(ctx, &m, req, copied(req), c)
	}
	return b.ask(ctx, &m, req, withParams(req, names.Params(req.Method, req.Params, own)), c)
}

// EraOf returns the era of the member that a client's request is for, or spec.Unknown if that
// is not certain. It asks nobody.
func (g *Group) EraOf(req *mcp.Request) spec.Era { return g.back.Load().eraOf(req) }

// eraOf returns the era of the member that a client's request is for, or spec.Unknown if that
// is not certain. It asks nobody.
func (b *Back) eraOf(req *mcp.Request) spec.Era {
	if req.Method == spec.MethodToolsCall || req.Method == spec.MethodPromptsGet {
		name, _ := wire.GetString(req.Params, memberName)
		if i := names.PlaceIn(&b.finder.prefixes, name); i >= 0 {
			return b.roster.eraAt(i)
		}
	}
	era := b.roster.eraAt(0)
	for i := range b.roster.names[1:] {
		if b.roster.eraAt(i+1) != era {
			return spec.Unknown
		}
	}
	return era
}

// handOut makes the result of a member the group's: what the member wants back is sealed, its
// questions say whose they are, and the URIs in it are remembered.
func (b *Back) handOut(m *memberAt, req *mcp.Request, res *mcp.Result) {
	switch {
	case spec.OnTask(req.Method):
	case res.Era == spec.Modern:
		kind := res.Outline.Get(res.Body, "resultType")
		if string(kind) != `"`+spec.ResultComplete+`"` {
			b.sealing.handOutOpen(m, req, res, wire.Unquote(kind))
		}
	case req.HoldsTasks:
		b.sealing.handOutHeld(m, res)
	}
	b.uris.NoteResult(req, m.Name, res)
}
