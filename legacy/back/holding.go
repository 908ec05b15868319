package back

import (
	"context"
	"encoding/json"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/link"
	"github.com/mcpbridge/mcpbridge/legacy/tasks"
)

// tellsTasks reports whether clients of 2026-07-28 are told of the tasks extension.
func (n *negotiated) tellsTasks(opts *Options) bool {
	return n.caps.TaskCalls && n.revision >= spec.Rev20251125 && opts.Settings.HoldsTasks()
}

func (n *negotiated) cancelsTasks() bool {
	return mcp.Declares(wire.Get(n.caps.Raw, "tasks"), "cancel")
}

// A heldSession is the session of a task that a client holds. It implements [tasks.Session], and
// owns what is asked about the task.
type heldSession struct {
	*session
	of      *taskHost
	maker   *tasks.Maker
	token   string // of its progress; empty if the client has asked for none
	release func()
}

// Begin implements [tasks.Session].
func (hs *heldSession) Begin(h *tasks.Held) {
	hs.of.held, hs.of.notice = h, h.Notice
	hs.tasks.Add(h.ID(), hs.of)
	if hs.token != "" {
		hs.tokens.Add(hs.token, h)
	}
}

// Request implements [tasks.Session].
func (hs *heldSession) Request(ctx context.Context, method string, params []byte) (json.RawMessage, error) {
	in := new(mcp.Intake)
	in.Use(hs.maker.Memory, hs.maker.Share)
	behalf := upstream.Behalf{Principal: hs.maker.Principal, Identity: hs.of.held.Identity()}
	return hs.RoundTrip(ctx, &link.Call{Call: upstream.Call{Method: method, In: in, Owner: hs, Behalf: behalf}}, params)
}

// Cancels implements [tasks.Session].
func (hs *heldSession) Cancels() bool { return hs.cancelsTasks() }

// Release implements [tasks.Session].
func (hs *heldSession) Release() {
	h := hs.of.held
	hs.tasks.Remove(h.ID(), hs.of)
	if hs.token != "" {
		hs.tokens.Remove(hs.token, h)
	}
	hs.release()
}

// Answered and Deliver implement [upstream.Owner]: what is asked about a task is waited for.
func (hs *heldSession) Answered(*upstream.Call, upstream.Response) {}
func (hs *heldSession) Deliver()                                   {}

// heldOf returns the task that a client holds about which a request is; nil for none.
func heldOf(c *upstream.Call) *tasks.Held {
	if c == nil {
		return nil
	}
	if hs, ok := c.Owner.(*heldSession); ok {
		return hs.of.held
	}
	return nil
}

// holdTask has the server make a task of a call, which the client holds.
func (s *session) holdTask(ctx context.Context, req *mcp.Request, c *call, place *upstream.Task, keep func() func()) (upstream.Response, error) {
	life := s.opts.Settings.Tasks.Life()
	a, err := s.asTask(ctx, req, c, life, func(ctx context.Context, created json.RawMessage, known func()) (json.RawMessage, error) {
		if ctx.Err() != nil { // nobody was told
			id, _ := tasks.IDOf(created)
			s.cancelTask(ctx, tasks.IDParams(id))
			return nil, context.Cause(ctx)
		}
		maker := &tasks.Maker{Principal: req.Principal, Identity: req.Identity, Profile: req.Profile, Share: req.Share, Memory: req.Memory}
		at := &heldSession{s, new(taskHost), maker, "", keep()}
		if c.token() != nil {
			at.token = wire.NumberID(c.ID).String()
		}
		h := s.holding.Hold(place, at, created, maker, life, s.reopen(maker))
		if h == nil {
			at.Release()
			return nil, &upstream.Failure{Cause: mcp.ErrShutdown, Fate: upstream.MayHaveRun, Lost: true}
		}
		known()
		c.held = h
		return h.Created(), nil
	})
	if c.held == nil {
		place.Drop()
	}
	return a, err
}

// reopen returns what opens another session for a task.
func (s *session) reopen(maker *tasks.Maker) func(context.Context, *tasks.Held) (tasks.Session, error) {
	open := s.open
	return func(ctx context.Context, of *tasks.Held) (tasks.Session, error) {
		s, release, err := open(ctx, maker.Profile, maker.Profile.Single)
		if err != nil {
			return nil, err
		}
		at := &heldSession{s, new(taskHost), maker, "", release}
		at.Begin(of)
		return at, nil
	}
}

// heldResult returns the result that tells a client of its task.
func (s *session) heldResult(h *tasks.Held) *mcp.Result {
	body := h.Created()
	if s.serverInfo != nil {
		body = wire.EditedIn(body, "_meta", wire.Edit{Name: spec.MetaServerInfo, Value: s.serverInfo})
	}
	res := mcp.NewResult(body, nil)
	res.Era = spec.Modern // it is in that form
	res.OnLost(h.Task().Abandon)
	return res
}
