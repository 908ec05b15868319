package group

import (
	"context"
	"slices"

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
		return nil, b.noTask(ctx, req)
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
	switch {
	case err != nil && b.isUnknown(ctx, &m, sent, err):
		return nil, b.noTask(ctx, req)
	case err != nil:
		return nil, err
	case wire.Get(res.Body, memberTaskID) != nil:
		edit(res, b.sealing.taskEdits(&m, res.Body, id, shown))
	case req.HoldsTasks:
		edit(res, b.sealing.relatedEdits(m.Name, res.Body))
	}
	return res, nil
}

// isUnknown reports whether a member that speaks as its client does, and so has named the task, has
// refused what was sent about it because it does not know it, or not any more. That has one answer,
// whatever the member says.
func (b *Back) isUnknown(ctx context.Context, m *memberAt, sent *passing, err error) bool {
	if !mcp.HasCode(err, spec.CodeInvalidParams) || b.roster.eraAt(m.index) != sent.Era {
		return false
	}
	if sent.Method == spec.MethodTaskGet {
		return true
	}
	get := copied(&sent.Request)
	get.Method, get.ParamHeaders = spec.MethodTaskGet, nil
	get.Params = wire.AppendEdited(nil, sent.Params, wire.Edit{Name: "inputResponses"})
	get.Plain = wire.Plain{}
	res, err := m.Serve(ctx, &get.Request, mcp.Nobody{})
	if err == nil {
		res.Release()
	}
	return mcp.HasCode(err, spec.CodeInvalidParams)
}

// noTask returns the error for an id that no member has handed out. In a group of legacy servers the
// method exists for modern clients where one of them has tasks that clients may hold, and for those
// that declare it.
func (b *Back) noTask(ctx context.Context, req *mcp.Request) error {
	if req.Era == spec.Modern && b.roster.era() == spec.Legacy {
		short, cancel := context.WithTimeout(ctx, b.opts.Patience)
		defer cancel()
		if d, err := b.Describe(short, req); err == nil {
			if refused := mcp.MayUseTasks(req, d, b.opts.Name); refused != nil {
				return refused
			}
		}
	}
	return wire.Errorf(spec.CodeInvalidParams, "Task not found") // of the group
}

// holdTasks has the client of a request that holds tasks of 2025-11-25 know them by the group's ids.
func (s *sealing) holdTasks(sent *passing) {
	sent.caller.tasks = s
	if sent.Aside != nil {
		aside := sent.caller
		aside.Caller = sent.Aside
		sent.Aside = &aside
	}
}

// handOutHeld seals the id of a task of 2025-11-25 that a member has made of a call.
//
// Spec: 2025-11-25, basic/utilities/tasks, Creating Tasks.
func (s *sealing) handOutHeld(m *memberAt, res *mcp.Result) {
	task := wire.Get(res.Body, "task")
	if edits := s.idEdits(m.Name, task); edits != nil {
		edits = []wire.Edit{{Name: "task", Value: wire.AppendReplaced(nil, task, edits...)}}
		edit(res, append(edits, s.relatedEdits(m.Name, res.Body)...))
	}
}

// idEdits returns the edits of an object with the id of a member's task; none if it has none.
func (s *sealing) idEdits(member string, object []byte) []wire.Edit {
	id, ok := wire.GetString(object, memberTaskID)
	if !ok {
		return nil
	}
	return []wire.Edit{{Name: memberTaskID, Value: wire.Quote(s.seal(sealedTask, member, id))}}
}

// relatedEdits returns the edits of an object that says to which task it belongs; none if it does not.
//
// Spec: 2025-11-25, basic/utilities/tasks, Related Task Metadata.
func (s *sealing) relatedEdits(member string, object []byte) []wire.Edit {
	meta := wire.Get(object, "_meta")
	task := wire.GetSeldom(meta, spec.MetaRelatedTask)
	edits := s.idEdits(member, task)
	if edits == nil {
		return nil
	}
	task = wire.AppendReplaced(nil, task, edits...)
	return []wire.Edit{{Name: "_meta", Value: wire.AppendReplaced(nil, meta, wire.Edit{Name: spec.MetaRelatedTask, Value: task})}}
}

// tells returns the params of a message of a member to a client that holds tasks.
func (s *sealing) tells(member string, params []byte) []byte {
	if edits := slices.Concat(s.idEdits(member, params), s.relatedEdits(member, params)); len(edits) > 0 {
		return wire.AppendReplaced(nil, params, edits...)
	}
	return params
}
