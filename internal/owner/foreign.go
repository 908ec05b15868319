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

// noSuchTask is the error where a server has none for a task that does not exist.
func noSuchTask() *wire.Error { return wire.Errorf(spec.CodeInvalidParams, "Task not found") }

// serveForeign answers a request about another principal's task as the server answers one
// about a task that does not exist: it is asked about one that nobody has. So what it says
// of these, first of all to clients without the extension, need not be known, and nothing
// tells the two apart. A result is none of the caller's, whatever the server makes of
// ids that it does not know.
func (h *handler) serveForeign(ctx context.Context, req *mcp.Request, x mcp.Caller, id string) (*mcp.Result, error) {
	nobodys := &renamedCaller{x, rename{from: nobodysTask(), to: id}}
	asked := *req
	asked.Params = nobodys.hide(req.Params)
	res, err := h.next.Serve(ctx, &asked, nobodys)
	if err == nil {
		res.Release()
		return nil, noSuchTask()
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

// A rename puts the id that a client has sent into what comes back for the one that went
// up in its place.
type rename struct{ from, to string }

// hide returns params with the id that goes up.
func (r rename) hide(params []byte) []byte {
	return wire.AppendEdited(nil, params, wire.Edit{Name: memberTaskID, Value: wire.Quote(r.from)})
}

// text renames in JSON.
func (r rename) text(text []byte) []byte {
	quoted := wire.Quote(r.to)
	return bytes.ReplaceAll(text, []byte(r.from), quoted[1:len(quoted)-1])
}

// error renames in what a client is told of err, which stays what it is otherwise.
func (r rename) error(err error) error {
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

// A renamedCaller is the Caller of a request that went up with another task's id.
type renamedCaller struct {
	mcp.Caller
	rename
}

// Notify implements [mcp.Caller].
func (r *renamedCaller) Notify(ctx context.Context, n mcp.Notification) error {
	n.Params = r.text(n.Params)
	return r.Caller.Notify(ctx, n)
}
