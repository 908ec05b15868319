package group

import (
	"github.com/mcpbridge/mcpbridge/gateway/internal/group/owners"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// handOutOpen is handOut for a result that does not end its request.
func (s *sealing) handOutOpen(m *memberAt, req *mcp.Request, res *mcp.Result, kind string) {
	var edits []wire.Edit
	switch kind {
	case spec.ResultTask:
		id, ok := wire.GetString(res.Body, memberTaskID)
		if !ok {
			return
		}
		edits = s.taskEdits(m, res.Body, id, s.seal(sealedTask, m.Name, id))
	case spec.ResultInputRequired:
		if state, ok := wire.GetString(res.Body, memberState); ok && spec.MayAsk(req.Method) {
			edits = append(edits, wire.Edit{Name: memberState, Value: wire.Quote(s.seal(sealedState, m.Name, state))})
		}
		edits = append(edits, s.questionEdits(m, res.Body)...)
	}
	edit(res, edits)
}

// edit edits the body of a result.
func edit(res *mcp.Result, edits []wire.Edit) {
	if len(edits) > 0 {
		res.Body, res.Outline = wire.AppendReplaced(make([]byte, 0, len(res.Body)+256), res.Body, edits...), nil
	}
}

// questionEdits returns the edits of an object with inputRequests that say which member asks;
// none if it has no questions.
func (s *sealing) questionEdits(m *memberAt, object []byte) []wire.Edit {
	questions := wire.Get(object, "inputRequests")
	if !wire.IsObject(questions) {
		return nil
	}
	meta := wire.AppendReplaced(nil, wire.Get(object, "_meta"), wire.Edit{Name: spec.MetaServer, Value: wire.Quote(m.Name)})
	edits := []wire.Edit{{Name: "_meta", Value: meta}}
	if s.unattributed {
		return edits
	}
	if said, changed := owners.NameQuestions(m.Name, questions); changed {
		edits = append(edits, wire.Edit{Name: "inputRequests", Value: said})
	}
	return edits
}

// taskEdits returns the edits of a task, an object, for clients, who know its id as shown. That
// may also stand in its eventSource. A task may have questions.
//
// Spec: tasks extension 2026-07-28, Task.
func (s *sealing) taskEdits(m *memberAt, task []byte, id, shown string) []wire.Edit {
	edits := []wire.Edit{{Name: memberTaskID, Value: wire.Quote(shown)}}
	if source := wire.Get(task, "eventSource"); source != nil {
		input := wire.Get(source, "input")
		if of, ok := wire.GetString(input, memberTaskID); ok && of == id {
			input = wire.AppendReplaced(nil, input, edits[0])
			edits = append(edits, wire.Edit{Name: "eventSource", Value: wire.AppendReplaced(nil, source, wire.Edit{Name: "input", Value: input})})
		}
	}
	return append(edits, s.questionEdits(m, task)...)
}
