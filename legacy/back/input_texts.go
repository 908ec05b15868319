package back

import (
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// undeclared returns the error for an input request that needs a capability which the
// client lacks.
func (p *pendingInput) undeclared(need []byte) error {
	return wire.Errorf(spec.CodeInvalidRequest, "%s: the client did not declare %s", p.m.Method, need)
}

// related adds the task of an input request to its response, or to its params for who holds the task.
//
// Spec: 2025-11-25, basic/utilities/tasks, Related Task Metadata.
func (p *pendingInput) related(result []byte) []byte {
	if p.task == "" {
		return result
	}
	task := wire.AppendEdited(nil, nil, wire.Edit{Name: "taskId", Value: wire.Quote(p.task)})
	return wire.EditedIn(result, "_meta", wire.Edit{Name: spec.MetaRelatedTask, Value: task})
}
