package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/auth"
	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A taskGuard is the Handler that keeps the tasks of modern clients from other principals.
// A server that tells its clients apart would do so itself; here all of them are one to it.
//
// Spec: tasks extension 2026-07-28, Security Considerations.
type taskGuard struct {
	next   mcp.Handler
	owners *taskOwners
}

// guardTasks returns a taskGuard before next and its owners, or next itself if there are no
// principals, or no tasks.
func guardTasks(g *Gateway, so ServerOptions, next mcp.Handler) (mcp.Handler, *taskOwners, error) {
	if a := authOf(so, g.opts); a == nil || a == auth.None || slices.Contains(so.HideExtensions, spec.ExtensionTasks) {
		return next, nil, nil
	}
	account := func(share mcp.Share) *budget.Account { return g.budget.Account(share) }
	full := func() { g.opts.Metrics.Limit(so.Name, "task_owners") }
	owners, err := newTaskOwners(maxOwned, maxOwnedEach, account, full)
	if err != nil {
		return nil, nil, err
	}
	return &taskGuard{next: next, owners: owners}, owners, nil
}

// Serve implements [mcp.Handler].
func (h *taskGuard) Serve(ctx context.Context, req *mcp.Request, x mcp.Caller) (*mcp.Result, error) {
	switch {
	case req.Era != spec.Modern:
		return h.next.Serve(ctx, req, x)
	case spec.OnTask(req.Method):
		if id, _ := wire.GetString(req.Params, "taskId"); h.owners.isForeign(req.Principal, id) {
			return h.serveForeign(ctx, req, x, id)
		}
	case req.Method == spec.MethodListen:
		req = h.withoutForeign(req)
	}
	res, err := h.next.Serve(ctx, req, x)
	if err == nil && makesTask(res) {
		id, _ := wire.GetString(res.Body, "taskId")
		h.owners.note(req.Share, id)
	}
	return res, err
}

// makesTask reports whether a result is a task that was made.
func makesTask(res *mcp.Result) bool {
	kind := res.Outline.Get(res.Body, "resultType")
	return string(kind) != `"`+spec.ResultComplete+`"` && wire.Unquote(kind) == spec.ResultTask
}

// serveForeign answers a request about another principal's task as the server answers one
// about a task that does not exist: it is asked about one that nobody has. So what it says
// of these, first of all to clients without the extension, need not be known, and nothing
// tells the two apart. A result is none of the caller's, whatever the server makes of
// ids that it does not know.
func (h *taskGuard) serveForeign(ctx context.Context, req *mcp.Request, x mcp.Caller, id string) (*mcp.Result, error) {
	nobodys := &renaming{Caller: x, from: nobodysTask(), to: id}
	asked := *req
	asked.Params = wire.AppendEdited(nil, req.Params, wire.Edit{Name: "taskId", Value: wire.Quote(nobodys.from)})
	res, err := h.next.Serve(ctx, &asked, nobodys)
	if err == nil {
		res.Release()
		return nil, wire.Errorf(spec.CodeInvalidParams, "Task not found")
	}
	return nil, nobodys.error(err)
}

// nobodysTask returns an id that no task has, in the form that most servers' ids have.
func nobodysTask() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// withoutForeign returns a listen request whose filter names no other principal's tasks.
func (h *taskGuard) withoutForeign(req *mcp.Request) *mcp.Request {
	filter := wire.Get(req.Params, "notifications")
	ids := wire.Get(filter, spec.FilterTaskIDs)
	own, foreign := []byte{'['}, false
	for id := range wire.Elements(ids) {
		if id[0] == '"' && h.owners.isForeign(req.Principal, wire.Unquote(id)) {
			foreign = true
			continue
		}
		own = append(append(own, id...), ',')
	}
	if !foreign {
		return req
	}
	own = append(bytes.TrimSuffix(own, []byte{','}), ']')
	filter = wire.AppendEdited(nil, filter, wire.Edit{Name: spec.FilterTaskIDs, Value: own})
	asked := *req
	asked.Params = wire.AppendEdited(nil, req.Params, wire.Edit{Name: "notifications", Value: filter})
	return &asked
}

// A renaming is the Caller of a request that went up with another task's id, and puts the
// client's own into what comes back.
type renaming struct {
	mcp.Caller
	from, to string
}

// Notify implements [mcp.Caller].
func (r *renaming) Notify(ctx context.Context, n mcp.Notification) error {
	n.Params = r.text(n.Params)
	return r.Caller.Notify(ctx, n)
}

// text renames in JSON.
func (r *renaming) text(text []byte) []byte {
	quoted := wire.Quote(r.to)
	return bytes.ReplaceAll(text, []byte(r.from), quoted[1:len(quoted)-1])
}

// error renames in what a client is told of err, which stays what it is otherwise.
func (r *renaming) error(err error) error {
	var we *wire.Error
	var refusal *mcp.Refusal
	if !errors.As(err, &we) || !strings.Contains(we.Message, r.from) && !bytes.Contains(we.Data, []byte(r.from)) {
		return err
	}
	renamed := &wire.Error{Code: we.Code, Message: strings.ReplaceAll(we.Message, r.from, r.to), Data: r.text(we.Data)}
	if errors.As(err, &refusal) {
		return &mcp.Refusal{Err: renamed}
	}
	return renamed
}
