package owner

import (
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
	// Server is the server's name. Required, as are the next two.
	Server string
	// Account returns the account for the memory of a share's tasks.
	Account func(mcp.Share) *budget.Account
	// Sealer binds requestStates to principals.
	Sealer *requeststate.Sealer
	// Era returns the server's era, or spec.Unknown while that is not known: legacy servers
	// have no requestStates. Nil means modern.
	Era func() spec.Era
	// Full is called for each task that is forgotten at a limit, or not stored. It must not
	// block.
	Full func()
	// NoTasks says that clients can't use tasks.
	NoTasks bool
	// Shared is what other replicas know of tasks; nil if there are none. Unshared is called
	// for a task that could not be stored there at once, and must be set with it.
	Shared   *Shared
	Unshared func(error)
}

// A Guard protects the tasks and requestStates of one server's principals from each other.
type Guard struct {
	server string
	sealer *requeststate.Sealer
	era    func() spec.Era
	tasks  *tasks // nil with NoTasks

	shared   *Shared  // nil for one replica
	telling  *telling // nil with NoTasks, too
	unshared func(error)
}

// New returns a Guard. The caller must call Close.
func New(o Options) (*Guard, error) {
	g := &Guard{server: o.Server, sealer: o.Sealer, era: o.Era, shared: o.Shared, unshared: o.Unshared}
	if g.era == nil {
		g.era = func() spec.Era { return spec.Modern }
	}
	if o.NoTasks {
		return g, nil
	}
	var err error
	g.tasks, err = newTasks(maxOwned, maxOwnedEach, o.Account, o.Full)
	if o.Shared != nil {
		g.telling = newTelling(g)
	}
	return g, err
}

// Close forgets all tasks.
func (g *Guard) Close() {
	if g == nil || g.tasks == nil {
		return
	}
	if g.telling != nil {
		g.telling.close()
	}
	g.tasks.close()
}

// Handler returns a Handler that checks requests for next, or next itself if g is nil.
func (g *Guard) Handler(next mcp.Handler) mcp.Handler {
	if g == nil {
		return next
	}
	return &handler{g, next}
}

// A handler checks requests.
type handler struct {
	*Guard
	next mcp.Handler
}

// Serve implements [mcp.Handler]. Legacy clients get no requestStates, and no ids of a modern server's
// tasks; of tasks of a legacy server they get some through a group, and else in their own sessions with
// it, which [Guard.Relay] checks.
func (h *handler) Serve(ctx context.Context, req *mcp.Request, caller mcp.Caller) (*mcp.Result, error) {
	req, err := h.withoutRelated(ctx, req)
	switch {
	case err != nil:
		return nil, err
	case req.Era != spec.Modern && !h.holdsOwn(req):
		return h.next.Serve(ctx, req, caller)
	case h.tasks != nil && (spec.OnTask(req.Method) || req.HoldsTasks && spec.OnHeldTask(req.Method)):
		id, err := member(req.Params, memberTaskID)
		if err != nil {
			return nil, err
		}
		foreign, err := h.isForeign(ctx, shareOf(req), wire.Unquote(id))
		switch {
		case err != nil:
			return nil, err
		case foreign:
			return h.serveAsUnknown(ctx, req, caller, wire.Unquote(id))
		}
	case h.tasks != nil && req.Method == spec.MethodListen:
		req, err = h.withoutOthers(ctx, req)
	case spec.MayAsk(req.Method) && h.era() != spec.Legacy:
		req, err = h.unbind(req)
	}
	if err != nil {
		return nil, err
	}
	res, err := h.next.Serve(ctx, req, caller)
	if err == nil {
		h.record(ctx, req, res)
	}
	return res, err
}

// holdsOwn reports whether a request may make, or use, a task that is a legacy server's own.
func (h *handler) holdsOwn(req *mcp.Request) bool {
	return req.HoldsTasks && h.tasks != nil && h.era() == spec.Legacy
}

// record stores the task and tags the requestState of a result.
func (h *handler) record(ctx context.Context, req *mcp.Request, res *mcp.Result) {
	if req.Era != spec.Modern {
		if id, ok := createdTask(res.Body); ok {
			h.note(ctx, shareOf(req), id)
		}
		return
	}
	kind := res.Outline.Get(res.Body, "resultType")
	if string(kind) == `"`+spec.ResultComplete+`"` {
		return // the usual case
	}
	switch wire.Unquote(kind) {
	case spec.ResultTask:
		if id, ok := wire.GetString(res.Body, memberTaskID); ok && h.tasks != nil {
			h.note(ctx, req.Share, id)
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

// member returns the first member of an object with a name; nil if there is none. It
// returns an error if another member's name differs in case only: some servers would read
// that one instead of the one that was checked (CWE-178).
func member(object []byte, name string) (value []byte, err error) {
	for k, v := range wire.Members(object) {
		switch {
		case len(k) < len(name)+2: // escapes can only make it longer
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

// shareOf returns the share of a request's principal.
func shareOf(req *mcp.Request) mcp.Share {
	share := req.Share
	share.Principal = req.Principal
	return share
}

// withoutOthers returns a listen request without other principals' tasks in its filter.
func (h *handler) withoutOthers(ctx context.Context, req *mcp.Request) (*mcp.Request, error) {
	return h.withoutForeign(ctx, req, "notifications", spec.FilterTaskIDs)
}

// withoutRelated returns a request without other principals' tasks among those that have to do with
// it.
//
// Spec: tasks extension draft, Related Tasks.
func (h *handler) withoutRelated(ctx context.Context, req *mcp.Request) (*mcp.Request, error) {
	if h.tasks == nil || req.BareMeta || req.Method == spec.MethodListen {
		return req, nil
	}
	if req.Era != spec.Modern {
		if params := h.unrelated(ctx, shareOf(req), req.Params); params != nil {
			sent := *req
			sent.Params, sent.Plain = params, wire.Plain{}
			req = &sent
		}
	}
	return h.withoutForeign(ctx, req, "_meta", spec.MetaRelatedTasks)
}

// withoutForeign returns a request without other principals' tasks in a list of ids, which is called
// name in a member of the params.
func (h *handler) withoutForeign(ctx context.Context, req *mcp.Request, in, name string) (*mcp.Request, error) {
	object := wire.Get(req.Params, in)
	if ids, err := member(object, name); ids == nil || err != nil {
		return req, err
	}
	own, foreign := []byte{'['}, false
	for k, ids := range wire.Members(object) {
		if !k.Is(name) {
			continue // the member may occur twice
		}
		for id := range wire.Elements(ids) {
			if id[0] == '"' {
				others, err := h.isForeign(ctx, shareOf(req), wire.Unquote(id))
				if err != nil {
					return nil, err
				}
				if foreign = foreign || others; others {
					continue
				}
			}
			own = append(append(own, id...), ',')
		}
	}
	if !foreign {
		return req, nil
	}
	object = wire.AppendEdited(nil, object, wire.Edit{Name: name, Value: wire.CloseArray(own)})
	sent := *req
	sent.Params, sent.Plain = wire.AppendEdited(nil, req.Params, wire.Edit{Name: in, Value: object}), wire.Plain{}
	return &sent, nil
}
