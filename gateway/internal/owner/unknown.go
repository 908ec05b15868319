package owner

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// noSuchTask is the error for a task that does not exist, if the server sends none.
func noSuchTask() *wire.Error { return wire.Errorf(spec.CodeInvalidParams, "Task not found") }

// serveAsUnknown handles a request about another principal's task: it sends the request
// with an id that no task has, and returns the server's error. So the client can't
// distinguish the task from one that does not exist. A result is replaced by an error, in
// case the server has results for unknown ids.
func (h *handler) serveAsUnknown(ctx context.Context, req *mcp.Request, caller mcp.Caller, id string) (*mcp.Result, error) {
	substitute := &substitutedCaller{caller, substitution{from: unknownTaskID(), to: id}}
	sent := *req
	sent.Params = substitute.hide(req.Params)
	res, err := h.next.Serve(ctx, &sent, substitute)
	if err == nil {
		res.Release()
		return nil, noSuchTask()
	}
	return nil, substitute.error(err)
}

// unknownTaskID returns an id that no task has, in the most common form.
func unknownTaskID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// A substitution replaces the id that was sent to the server by the client's own.
type substitution struct{ from, to string }

// hide returns params with the id for the server.
func (r substitution) hide(params []byte) []byte {
	return wire.AppendEdited(nil, params, wire.Edit{Name: memberTaskID, Value: wire.Quote(r.from)})
}

// text replaces the id in JSON.
func (r substitution) text(text []byte) []byte {
	quoted := wire.Quote(r.to)
	return bytes.ReplaceAll(text, []byte(r.from), quoted[1:len(quoted)-1])
}

// error replaces the id in the error for the client.
func (r substitution) error(err error) error {
	var we *wire.Error
	if !errors.As(err, &we) || !strings.Contains(we.Message, r.from) && !bytes.Contains(we.Data, []byte(r.from)) {
		return err
	}
	renamed := &wire.Error{Code: we.Code, Message: strings.ReplaceAll(we.Message, r.from, r.to), Data: r.text(we.Data)}
	if errors.As(err, new(*mcp.Refusal)) {
		return &mcp.Refusal{Err: renamed}
	}
	return renamed
}

// A substitutedCaller is the Caller of a request that was sent with another task id.
type substitutedCaller struct {
	mcp.Caller
	substitution
}

// Notify implements [mcp.Caller].
func (r *substitutedCaller) Notify(ctx context.Context, n mcp.Notification) error {
	n.Params = r.text(n.Params)
	return r.Caller.Notify(ctx, n)
}
