package group

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// serveTask serves a request about a task, whose id says which member has it.
func (b *Back) serveTask(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
	p, err := readParams(req, memberTaskID)
	if err != nil {
		return nil, err
	}
	shown := wire.Unquote(p.subject)
	of, id, err := b.sealing.open(sealedTask, shown)
	if err != nil {
		return nil, wire.Errorf(spec.CodeInvalidParams, "Task not found") // of the group
	}
	m, err := b.roster.named(of)
	if err != nil {
		return nil, err
	}
	sent, err := b.sealing.forMember(req, &p, &m, wire.Quote(id))
	if err != nil {
		return nil, err
	}
	res, err := b.ask(ctx, &m, req, sent, c)
	if err == nil && wire.Get(res.Body, memberTaskID) != nil {
		edit(res, b.sealing.taskEdits(&m, res.Body, id, shown))
	}
	return res, err
}
