package front

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/eventstream"
)

// holdTasks lets a request of a session that was told of tasks make and use them, and find out of
// which tools.
func (r *request) holdTasks(req *mcp.Request) {
	switch {
	case !r.session.offered.TaskCalls:
	case req.Method == spec.MethodToolsList:
		req.HoldsTasks = true
	case spec.OnHeldTask(req.Method), wire.IsObject(wire.Get(req.Params, "task")):
		req.HoldsTasks, req.Aside = true, outsideOf(r.session)
	}
}

// An outside is the [mcp.Caller] of a session outside of its requests. It sends on the connection, or
// on the GET stream; it can't ask while there is none.
type outside struct{ request }

// outsideOf returns the outside of a session, which all its tasks share.
func outsideOf(s *session) *outside {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outside == nil {
		var w replyWriter = &outsideReply{s.streams}
		if s.conn != nil {
			w = &connReply{s.conn}
		}
		s.outside = &outside{request{session: s, w: w, m: &wire.Message{Method: spec.MethodToolsCall}}} // of which tasks are made
	}
	return s.outside
}

// RequestInput implements [mcp.Caller]. It also ends with the session.
func (a *outside) RequestInput(ctx context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error) {
	a.session.mu.Lock()
	life := lifeLocked(a.session)
	ended := a.session.ended
	a.session.mu.Unlock()
	if ended {
		return nil, mcp.ErrCannotAsk
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(life, func() { cancel(mcp.ErrCannotAsk) })()
	return a.request.RequestInput(ctx, qs)
}

// An outsideReply sends messages on a session's GET stream.
type outsideReply struct{ streams *eventstream.Streams }

func (o *outsideReply) send(ctx context.Context, msg []byte) error {
	err := o.streams.PutAside(ctx, msg)
	if err == eventstream.ErrNobodyListens {
		return mcp.ErrCannotAsk
	}
	return err
}

func (o *outsideReply) reply(r response)    { r.memory.Release() }
func (o *outsideReply) noReply()            {}
func (o *outsideReply) sessionEnded([]byte) {}
func (o *outsideReply) reach() reachability { return aside }

// A cannotAsk is a [mcp.ErrCannotAsk] that says why, for the client.
type cannotAsk struct{ why *wire.Error }

func (e *cannotAsk) Error() string { return e.why.Error() }

func (e *cannotAsk) Unwrap() []error { return []error{mcp.ErrCannotAsk, e.why} }
