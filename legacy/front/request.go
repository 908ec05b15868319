package front

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/projection"
)

// A replyWriter sends the messages of one request.
type replyWriter interface {
	// send sends a message that precedes the response. It waits for a slow client, and
	// returns an error once the client is unreachable.
	send(ctx context.Context, msg []byte) error
	// reply sends the response, which the replyWriter keeps, and then releases its memory.
	// Either reply or noReply is called, once.
	reply(r response)
	// noReply reports that there will be no response.
	noReply()
	// sessionEnded is reply for a request that gets msg because its session has ended.
	sessionEnded(msg []byte)
	// reach reports whether messages of send reach the client. On a connection, where this
	// is of no use, it is unreachable.
	reach() reachability
}

// A response is a response on its way to the client.
type response struct {
	id     wire.ID // of the request
	msg    []byte
	memory mcp.Reservation
	hint   mcp.Hint // of an error
}

// freeResponse is the size of a response up to which it needs no memory besides its
// request's.
const freeResponse = 8 << 10

// respond sends the response to a request that was removed from its session.
func (r *request) respond(msg []byte) {
	r.trace.Sent(msg)
	res := response{id: r.ID, msg: msg, memory: mcp.NewReservation(r.session.front.opts.Memory, r.session.opener.Share)}
	if len(msg) > freeResponse {
		if err := res.memory.Grow(len(msg)); err != nil {
			res = r.failure(err)
		}
	}
	r.w.reply(res)
}

// failure returns err as a response.
func (r *request) failure(err error) response {
	return response{id: r.ID, msg: wire.AppendError(nil, r.ID, mcp.WireError(err)), hint: mcp.HintOf(err)}
}

// A request is a client's request while it is served. It is the mcp.Caller of its request.
type request struct {
	downstream.Call
	session *session
	from    origin
	w       replyWriter
	trace   *trace.Request // set once it is admitted; nil while nobody observes
	m       *wire.Message  // while it is served; nil if it is forwarded as it is

	abandoned atomic.Bool // it is forwarded as it is, and its client is gone

	// mu guards progress, and orders what is sent.
	mu       sync.Mutex
	progress float64 // the last one sent
	begun    bool    // progress was sent
}

// serve answers the request, and removes it from its session.
func (r *request) serve(ctx context.Context, m *wire.Message) {
	r.m = m
	msg, err := r.handle(ctx, m)
	defer func() { r.trace.End(err) }()
	r.session.free(r) // the client may use the id again at once
	if ctx.Err() != nil && context.Cause(ctx) == errCancelledByClient {
		r.w.noReply()
		return
	}
	if err != nil {
		switch context.Cause(ctx) {
		case errGone:
			err = errGone
		case errSessionEnded:
			err = wire.Errorf(spec.CodeSessionNotFound, "%v; initialize anew", errSessionEnded)
		}
		r.session.completeLater(err)
		msg = wire.AppendError(nil, m.ID, errorFor(err))
		r.trace.Sent(msg)
		r.w.reply(response{msg: msg, hint: mcp.HintOf(err)})
		return
	}
	r.respond(msg)
}

// present shows the request to the gateway, in its neutral form, which admits or refuses it.
func (r *request) present(req *mcp.Request, m *wire.Message) error {
	err := r.session.front.opts.Admit(req)
	if r.trace = req.Trace; r.trace != nil {
		r.trace.Received(m.Text)
	}
	return err
}

// handle returns the response to a request that succeeded.
func (r *request) handle(ctx context.Context, m *wire.Message) ([]byte, error) {
	s := r.session
	switch m.Method {
	case spec.MethodPing:
		return empty(m.ID), nil
	case spec.MethodInitialize:
		return nil, wire.Errorf(spec.CodeInvalidRequest, "this session is initialized; open another for a second handshake")
	case spec.MethodSetLevel:
		return empty(m.ID), s.setLevel(m)
	case spec.MethodSubscribe:
		req := s.neutralRequest(m, r.from)
		if err := r.present(req, m); err != nil {
			return nil, err
		}
		return empty(m.ID), s.subscriptions.subscribe(mcp.WithObserved(ctx, &req.Observed), m)
	case spec.MethodUnsubscribe:
		return empty(m.ID), s.subscriptions.unsubscribe(m)
	}
	held := s.offered.TaskCalls && spec.OnHeldTask(m.Method)
	if m.Method == spec.MethodDiscover || m.Method == spec.MethodListen || strings.HasPrefix(m.Method, spec.MethodTasksPrefix) && !held {
		return nil, wire.Errorf(spec.CodeMethodNotFound, "method %q does not exist in revision %s", m.Method, s.revision)
	}
	return r.forward(ctx, m)
}

// refuse answers a request that was not admitted, possibly because its session has ended.
func (r *request) refuse(err error) {
	res := r.failure(err)
	if mcp.WireError(err).Code == spec.CodeSessionNotFound {
		r.w.sessionEnded(res.msg)
		return
	}
	r.w.reply(res)
}

// sessionGone returns the error for a client that has to initialize again.
func sessionGone(id wire.ID, err error) []byte {
	return wire.AppendError(nil, id, wire.Errorf(spec.CodeSessionNotFound, "%v; initialize anew", err))
}

func empty(id wire.ID) []byte { return wire.AppendResult(nil, id, []byte("{}"), nil) }

// forward passes the request to the Handler.
func (r *request) forward(ctx context.Context, m *wire.Message) ([]byte, error) {
	req := r.session.neutralRequest(m, r.from)
	r.holdTasks(req)
	if err := r.present(req, m); err != nil {
		return nil, err
	}
	res, err := r.session.front.opts.Handler.Serve(ctx, req, r)
	if err != nil {
		return nil, err
	}
	defer res.Release()
	msg := make([]byte, 0, len(res.Body)+len(res.Extra)+128)
	msg = m.ID.Append(append(msg, `{"jsonrpc":"2.0","id":`...))
	msg = append(msg, `,"result":`...)
	if msg, err = r.appendResult(msg, m, req.Profile.Scope, res); err != nil {
		return nil, err
	}
	if len(res.Extra) > 0 {
		msg = append(append(msg, ','), res.Extra...)
	}
	return append(msg, '}'), nil
}

// appendResult appends a result in the form for the client.
func (r *request) appendResult(msg []byte, m *wire.Message, scope string, res *mcp.Result) ([]byte, error) {
	if res.Era != spec.Modern {
		return append(msg, res.Body...), nil
	}
	f, method, params, holds := r.session.front, m.Method, m.Params, r.session.offered.TaskCalls
	if res.Tool != "" {
		method, params = spec.MethodToolsCall, wire.AppendEdited(nil, nil, wire.Edit{Name: "name", Value: wire.Quote(res.Tool)})
	}
	from := len(msg)
	msg, mended, err := projection.AppendResult(msg, r.session.revision, method, params, res.Body, f.toolsOf(scope, holds && f.opts.MarksTools))
	if err != nil {
		return nil, wire.Errorf(spec.CodeInternal, "the result of server %q can't be converted for a client of revision %s: %v", f.opts.Name, r.session.revision, err)
	}
	for _, q := range mended {
		f.opts.Quirks.Met(q, "")
	}
	if method == spec.MethodToolsList && holds && !f.opts.MarksTools {
		msg = append(msg[:from:from], projection.WithTaskSupport(msg[from:])...)
	}
	return msg, nil
}

// setLevel sets the log level.
//
// Spec: 2025-11-25, server/utilities/logging, Setting Log Level.
func (s *session) setLevel(m *wire.Message) error {
	name, _ := wire.GetString(m.Params, "level")
	level := spec.LogLevel(name)
	switch {
	case !s.offered.Logging:
		return wire.Errorf(spec.CodeMethodNotFound, "server %q has no logging", s.front.opts.Name)
	case !level.Valid():
		return wire.Errorf(spec.CodeInvalidParams, "unknown log level %q; use one of RFC 5424, such as info", name)
	}
	s.mu.Lock()
	s.level = level
	s.mu.Unlock()
	if to := s.front.opts.Clients; to != nil && s.front.opts.TellLosses {
		s.follow(to.LevelChanged, m)
	}
	return nil
}

// Notify implements [mcp.Caller]. Progress that does not grow is dropped.
func (r *request) Notify(ctx context.Context, n mcp.Notification) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n.Method == spec.NotifyProgress && !r.growsLocked(n) {
		r.session.front.drop("progress not growing")
		return nil
	}
	n = projection.Notification(r.session.revision, n)
	return r.send(ctx, wire.AppendNotification(nil, n.Method, n.Params, nil))
}

// send sends a message that precedes the response.
func (r *request) send(ctx context.Context, msg []byte) error {
	r.trace.Sent(msg)
	return r.w.send(ctx, msg)
}

func (r *request) growsLocked(n mcp.Notification) bool {
	value, err := strconv.ParseFloat(string(wire.Get(n.Params, "progress")), 64)
	if err != nil {
		return true // the client may judge it
	}
	grows := !r.begun || value > r.progress
	if grows {
		r.begun, r.progress = true, value
	}
	return grows
}

// errorFor returns the error for the client: that of a modern server as a legacy client knows it.
func errorFor(err error) *wire.Error {
	if errors.As(err, new(*mcp.PageError)) {
		return mcp.WireError(err) // which was made for this client
	}
	return projection.Error(mcp.WireError(err))
}
