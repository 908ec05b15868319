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
	of, id, err := b.open(sealedTask, shown)
	if err != nil {
		return nil, wire.Errorf(spec.CodeInvalidParams, "Task not found") // of the group
	}
	m, err := b.named(of)
	if err != nil {
		return nil, err
	}
	sent, err := b.forMember(req, &p, &m, wire.Quote(id))
	if err != nil {
		return nil, err
	}
	res, err := b.ask(ctx, &m, sent, c)
	if err == nil && wire.Get(res.Body, memberTaskID) != nil {
		edit(res, b.taskEdits(&m, res.Body, id, shown))
	}
	return res, err
}

// taskEdits returns the edits of a task, an object, for clients, who know its id as shown. That
// may also stand in its eventSource. A task may have questions.
//
// Spec: tasks extension 2026-07-28, Task.
func (b *Back) taskEdits(m *memberAt, task []byte, id, shown string) []wire.Edit {
	edits := []wire.Edit{{Name: memberTaskID, Value: wire.Quote(shown)}}
	if source := wire.Get(task, "eventSource"); source != nil {
		input := wire.Get(source, "input")
		if of, ok := wire.GetString(input, memberTaskID); ok && of == id {
			input = wire.AppendReplaced(nil, input, edits[0])
			edits = append(edits, wire.Edit{Name: "eventSource", Value: wire.AppendReplaced(nil, source, wire.Edit{Name: "input", Value: input})})
		}
	}
	return append(edits, b.questionEdits(m, task)...)
}
