package owner

import (
	"context"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Relay returns a Relay that checks the requests to l, a session of one client of a legacy
// server, or l itself if there is nothing to check.
//
// Spec: 2025-11-25, basic/utilities/tasks, Task Isolation and Access Control.
func (g *Guard) Relay(l mcp.Relay, of mcp.Share) mcp.Relay {
	if g == nil || g.tasks == nil {
		return l
	}
	return &guardedRelay{l, g, of}
}

type guardedRelay struct {
	mcp.Relay
	guard *Guard
	of    mcp.Share
}

// Call implements [mcp.Relay].
func (l *guardedRelay) Call(m *wire.Message, o mcp.RelayedCall) {
	if params := l.guard.unrelated(context.Background(), l.of, m.Params); params != nil {
		m = withParams(m, params)
	}
	switch {
	case m.Method == spec.MethodTaskList:
		o = &listingCall{RelayedCall: o, l: l}
	case strings.HasPrefix(m.Method, spec.MethodTasksPrefix):
		if m, o = l.guarded(m, o); m == nil {
			return
		}
	case wire.Get(m.Params, "task") != nil:
		o = &creatingCall{RelayedCall: o, l: l}
	}
	l.Relay.Call(m, o)
}

// unrelated returns the params of a request without the task that it is said to belong to, if that is
// another principal's; nil if it is not.
//
// Spec: 2025-11-25, basic/utilities/tasks, Related Task Metadata.
func (g *Guard) unrelated(ctx context.Context, of mcp.Share, params []byte) []byte {
	meta := wire.Get(params, "_meta")
	id, ok := wire.GetString(wire.GetSeldom(meta, spec.MetaRelatedTask), memberTaskID)
	if !ok {
		return nil
	}
	if foreign, _ := g.isForeign(ctx, of, id); !foreign { // it is, if that is not known
		return nil
	}
	return wire.EditedIn(params, "_meta", wire.Edit{Name: spec.MetaRelatedTask})
}

// createdTask returns the id of the task that a result says was made of a call.
//
// Spec: 2025-11-25, basic/utilities/tasks, Creating Tasks.
func createdTask(result []byte) (id string, ok bool) {
	return wire.GetString(wire.Get(result, "task"), memberTaskID)
}

// withParams returns a request with other params.
func withParams(m *wire.Message, params []byte) *wire.Message {
	sent := *m
	sent.Params, sent.Plain, sent.Outline = params, wire.Plain{}, nil
	sent.Text = wire.AppendEdited(nil, m.Text, wire.Edit{Name: "params", Value: params})
	return &sent
}

// guarded returns a request about a task and the RelayedCall for its response, or no
// request if it was refused. For another principal's task the request has an id that no
// task has.
func (l *guardedRelay) guarded(m *wire.Message, o mcp.RelayedCall) (*wire.Message, mcp.RelayedCall) {
	text, err := member(m.Params, memberTaskID)
	if err != nil {
		we := mcp.WireError(err)
		o.Answer(wire.AppendError(nil, m.ID, we), we)
		return nil, nil
	}
	id := wire.Unquote(text)
	foreign, err := l.guard.isForeign(context.Background(), l.of, id)
	switch {
	case err != nil:
		we := mcp.WireError(err)
		o.Answer(wire.AppendError(nil, m.ID, we), we)
		return nil, nil
	case !foreign:
		return m, o
	}
	substitute := substitution{from: unknownTaskID(), to: id}
	return withParams(m, substitute.hide(m.Params)), &substitutedCall{o, substitute, m.ID}
}

// A substitutedCall receives the response to a request about another principal's task.
type substitutedCall struct {
	mcp.RelayedCall
	substitution
	id wire.ID
}

// Answer implements [mcp.RelayedCall]. It replaces a result by an error.
func (r *substitutedCall) Answer(text []byte, failed error) {
	if failed == nil || wire.Get(text, "error") == nil {
		failed = noSuchTask()
		text = wire.AppendError(nil, r.id, noSuchTask())
	}
	r.RelayedCall.Answer(r.text(text), r.error(failed))
}

// A creatingCall receives the response to a request that creates a task.
type creatingCall struct {
	mcp.RelayedCall
	l *guardedRelay
}

// Answer implements [mcp.RelayedCall]. It stores the task before the client can name it.
func (c *creatingCall) Answer(text []byte, failed error) {
	if id, ok := createdTask(wire.Get(text, "result")); ok {
		c.l.guard.note(context.Background(), c.l.of, id)
	}
	c.RelayedCall.Answer(text, failed)
}

// A listingCall receives the response to tasks/list.
type listingCall struct {
	mcp.RelayedCall
	l *guardedRelay
}

// Answer implements [mcp.RelayedCall]. It removes other principals' tasks.
func (c *listingCall) Answer(text []byte, failed error) {
	result := wire.Get(text, "result")
	own, foreign := []byte{'['}, false
	for task := range wire.Elements(wire.Get(result, "tasks")) {
		id, _ := wire.GetString(task, memberTaskID)
		if others, _ := c.l.guard.isForeign(context.Background(), c.l.of, id); others { // also if that is not known
			foreign = true
			continue
		}
		own = append(append(own, task...), ',')
	}
	if foreign {
		result = wire.AppendEdited(nil, result, wire.Edit{Name: "tasks", Value: wire.CloseArray(own)})
		text = wire.AppendEdited(nil, text, wire.Edit{Name: "result", Value: result})
	}
	c.RelayedCall.Answer(text, failed)
}
