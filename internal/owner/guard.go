package owner

import (
	"bytes"
	"context"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Options configure a Guard.
type Options struct {
	// Server is the server's name. Required, as the two that follow.
	Server string
	// Account returns what remembering a task of a share is paid from.
	Account func(mcp.Share) *budget.Account
	// Sealer binds requestStates to principals.
	Sealer *requeststate.Sealer
	// Era tells the server's era, spec.Unknown as long as that is not known: those of the
	// past have no requestStates. Nil means a modern one.
	Era func() spec.Era
	// Full is told of each task that is forgotten at a bound, or not remembered. It does
	// not block.
	Full func()
	// NoTasks says that no tasks pass.
	NoTasks bool
}

// A Guard keeps what one server hands out to principals from other principals.
type Guard struct {
	server string
	sealer *requeststate.Sealer
	era    func() spec.Era
	tasks  *tasks // nil if none pass
}

// New returns a Guard. Whoever gets it calls Close.
func New(o Options) (*Guard, error) {
	g := &Guard{server: o.Server, sealer: o.Sealer, era: o.Era}
	if g.era == nil {
		g.era = func() spec.Era { return spec.Modern }
	}
	if o.NoTasks {
		return g, nil
	}
	var err error
	g.tasks, err = newTasks(maxOwned, maxOwnedEach, o.Account, o.Full)
	return g, err
}

// Close forgets everything.
func (g *Guard) Close() {
	if g != nil && g.tasks != nil {
		g.tasks.close()
	}
}

// Handler returns a Handler that stands before next, or next itself if g is nil.
func (g *Guard) Handler(next mcp.Handler) mcp.Handler {
	if g == nil {
		return next
	}
	return &handler{g, next}
}

// A handler guards requests.
type handler struct {
	*Guard
	next mcp.Handler
}

// Serve implements [mcp.Handler]. Legacy clients have neither: to a modern server they ask
// for none, and their sessions with a legacy one are guarded by [Guard.Relay].
func (h *handler) Serve(ctx context.Context, req *mcp.Request, x mcp.Caller) (*mcp.Result, error) {
	if req.Era != spec.Modern {
		return h.next.Serve(ctx, req, x)
	}
	var err error
	switch {
	case h.tasks != nil && spec.OnTask(req.Method):
		id, err := member(req.Params, memberTaskID)
		if err != nil {
			return nil, err
		}
		if id := wire.Unquote(id); h.tasks.isForeign(req.Principal, id) {
			return h.serveForeign(ctx, req, x, id)
		}
	case h.tasks != nil && req.Method == spec.MethodListen:
		req, err = h.withoutForeign(req)
	case spec.MayAsk(req.Method) && h.era() != spec.Legacy:
		req, err = h.unbound(req)
	}
	if err != nil {
		return nil, err
	}
	res, err := h.next.Serve(ctx, req, x)
	if err == nil {
		h.handOut(req, res)
	}
	return res, err
}

// handOut takes note of what a result hands out.
func (h *handler) handOut(req *mcp.Request, res *mcp.Result) {
	kind := res.Outline.Get(res.Body, "resultType")
	if string(kind) == `"`+spec.ResultComplete+`"` {
		return // as most are
	}
	switch wire.Unquote(kind) {
	case spec.ResultTask:
		if id, ok := wire.GetString(res.Body, memberTaskID); ok && h.tasks != nil {
			h.tasks.note(req.Share, id)
		}
	case spec.ResultInputRequired:
		if spec.MayAsk(req.Method) {
			h.bind(req, res)
		}
	}
}

const (
	memberTaskID = "taskId"
	memberState  = "requestState"
)

// member returns the first member of an object that is called name, nil if there is none. It
// refuses an object with one that some servers take for it and others do not: what a server
// reads has to be what is looked at here (CWE-178).
func member(object []byte, name string) (value []byte, err error) {
	for k, v := range wire.Members(object) {
		switch {
		case len(k) < len(name)+2: // escapes only make a name longer
		case k.Is(name):
			if value == nil {
				value = v
			}
		case strings.EqualFold(k.String(), name):
			return nil, mcp.Refuse(spec.CodeInvalidParams, "the member %s is not the one that is called %q: names are case-sensitive", k, name)
		}
	}
	return value, nil
}

// withoutForeign returns a listen request whose filter names no other principal's tasks.
func (h *handler) withoutForeign(req *mcp.Request) (*mcp.Request, error) {
	filter := wire.Get(req.Params, "notifications")
	if _, err := member(filter, spec.FilterTaskIDs); err != nil {
		return nil, err
	}
	own, foreign := []byte{'['}, false
	for k, ids := range wire.Members(filter) {
		if !k.Is(spec.FilterTaskIDs) {
			continue // it may be there twice
		}
		for id := range wire.Elements(ids) {
			if id[0] == '"' && h.tasks.isForeign(req.Principal, wire.Unquote(id)) {
				foreign = true
				continue
			}
			own = append(append(own, id...), ',')
		}
	}
	if !foreign {
		return req, nil
	}
	own = append(bytes.TrimSuffix(own, []byte{','}), ']')
	filter = wire.AppendEdited(nil, filter, wire.Edit{Name: spec.FilterTaskIDs, Value: own})
	asked := *req
	asked.Params = wire.AppendEdited(nil, req.Params, wire.Edit{Name: "notifications", Value: filter})
	return &asked, nil
}
