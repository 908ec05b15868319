package front

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/projection"
)

// An outlet is the way back to the client for one request.
type outlet interface {
	// message sends what precedes the answer. It waits for room if the client is
	// slow, and returns an error once the client can't be reached any more.
	message(ctx context.Context, msg []byte) error
	// answer sends the response, which the outlet keeps, and then releases its room. It
	// is called once, or silent is.
	answer(r response)
	// silent says that there will be no answer.
	silent()
}

// A response is the answer to a request on its way to the client.
type response struct {
	id    wire.ID // of the request
	msg   []byte
	room  mcp.Room
	later bool // it is an error, and the same may be taken if it is tried again
}

// unroomed is the size of a response up to which it takes no memory beside its request's.
const unroomed = 8 << 10

// respond has the outlet send the response to a request that has left.
func (c *incoming) respond(msg []byte) {
	r := response{id: c.id, msg: msg, room: mcp.NewRoom(c.d.f.opts.Memory, c.d.share)}
	if len(msg) > unroomed {
		if err := r.room.Grow(len(msg)); err != nil {
			r = c.failure(err)
		}
	}
	c.out.answer(r)
}

// failure is the response that err is.
func (c *incoming) failure(err error) response {
	return response{id: c.id, msg: wire.AppendError(nil, c.id, mcp.WireError(err)), later: mcp.MayTryLater(err)}
}

// An incoming is a request of a client while it is served. It is the
// mcp.Caller of its request.
type incoming struct {
	d      *downstream
	id     wire.ID
	n      uint64 // which of the session's calls it is
	out    outlet
	cancel context.CancelCauseFunc

	room mcp.Room // of the request

	// mu guards progress, and orders what is sent.
	mu       sync.Mutex
	progress float64 // the last told
	begun    bool    // there was one
}

// serve answers the request, and has it leave.
func (c *incoming) serve(ctx context.Context, m *wire.Message) {
	msg, err := c.handle(ctx, m)
	c.d.leave(c) // the client may use the id again at once
	if ctx.Err() != nil && context.Cause(ctx) == errCancelledByClient {
		c.out.silent()
		return
	}
	if err != nil {
		if context.Cause(ctx) == errSessionEnded {
			err = wire.Errorf(spec.CodeSessionNotFound, "%v; initialize anew", errSessionEnded)
		}
		msg = wire.AppendError(nil, m.ID, projection.Error(c.d.revision, m.Method, mcp.WireError(err)))
		c.out.answer(response{msg: msg, later: mcp.MayTryLater(err)})
		return
	}
	c.respond(msg)
}

// handle returns the response to a request that succeeded.
func (c *incoming) handle(ctx context.Context, m *wire.Message) ([]byte, error) {
	d := c.d
	switch m.Method {
	case spec.MethodPing:
		return empty(m.ID), nil
	case spec.MethodInitialize:
		return nil, wire.Errorf(spec.CodeInvalidRequest, "this session is initialized; open another for a second handshake")
	case spec.MethodSetLevel:
		return empty(m.ID), d.setLevel(m.Params)
	case spec.MethodSubscribe:
		return empty(m.ID), d.subs.subscribe(ctx, m)
	case spec.MethodUnsubscribe:
		return empty(m.ID), d.subs.unsubscribe(m)
	}
	if m.Method == spec.MethodDiscover || m.Method == spec.MethodListen || strings.HasPrefix(m.Method, spec.MethodTasksPrefix) {
		return nil, wire.Errorf(spec.CodeMethodNotFound, "method %q does not exist here in revision %s", m.Method, d.revision)
	}
	return c.pass(ctx, m)
}

func empty(id wire.ID) []byte { return wire.AppendResult(nil, id, []byte("{}"), nil) }

// pass has the request served upstream.
func (c *incoming) pass(ctx context.Context, m *wire.Message) ([]byte, error) {
	req := c.d.request(m)
	if err := c.d.f.opts.Admit(req); err != nil {
		return nil, err
	}
	res, err := c.d.f.opts.Handler.Serve(ctx, req, c)
	if err != nil {
		return nil, err
	}
	defer res.Release()
	msg := make([]byte, 0, len(res.Body)+len(res.Extra)+128)
	msg = m.ID.Append(append(msg, `{"jsonrpc":"2.0","id":`...))
	msg = append(msg, `,"result":`...)
	if res.Era == spec.Modern {
		msg, err = projection.AppendResult(msg, c.d.revision, m.Method, m.Params, res.Body, c.d.f.toolsOf(req.Profile.Scope))
		if err != nil {
			return nil, wire.Errorf(spec.CodeInternal, "the answer of server %q can't be given to a client of revision %s: %v", c.d.f.opts.Name, c.d.revision, err)
		}
	} else {
		msg = append(msg, res.Body...)
	}
	if len(res.Extra) > 0 {
		msg = append(append(msg, ','), res.Extra...)
	}
	return append(msg, '}'), nil
}

// setLevel sets how severe a message must be to be sent.
//
// Spec: 2025-11-25, server/utilities/logging, Setting Log Level.
func (d *downstream) setLevel(params []byte) error {
	name, _ := wire.GetString(params, "level")
	level := spec.LogLevel(name)
	switch {
	case !d.offered.Logging:
		return wire.Errorf(spec.CodeMethodNotFound, "server %q has no logging", d.f.opts.Name)
	case !level.Valid():
		return wire.Errorf(spec.CodeInvalidParams, "unknown log level %q; take one of RFC 5424, such as info", name)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.level = level
	return nil
}

// Notify implements [mcp.Caller]. Progress that does not grow is dropped.
func (c *incoming) Notify(ctx context.Context, n mcp.Notification) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.Method == spec.NotifyProgress && !c.growsLocked(n) {
		c.d.f.opts.Metrics.Dropped("progress not growing")
		return nil
	}
	n = projection.Notification(c.d.revision, n)
	return c.out.message(ctx, wire.AppendNotification(nil, n.Method, n.Params, nil))
}

func (c *incoming) growsLocked(n mcp.Notification) bool {
	value, err := strconv.ParseFloat(string(wire.Get(n.Params, "progress")), 64)
	if err != nil {
		return true // not for us to judge
	}
	grows := !c.begun || value > c.progress
	if grows {
		c.begun, c.progress = true, value
	}
	return grows
}

// errCut is why an outlet's stream takes nothing more.
var errCut = errors.New("the client can't be reached")
