package link

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// acceptedTimeout bounds the wait for a response on the GET stream after the server
	// responded to a request with 202 Accepted.
	acceptedTimeout = 5 * time.Second
	// pingTimeout bounds the wait for the response to a ping.
	pingTimeout = 2 * time.Second
)

// A streamable is a session over Streamable HTTP. The goroutine of a call sends the POST
// and reads its reply; only the GET stream has a goroutine of its own.
//
// Spec: 2025-11-25, basic/transports, Streamable HTTP.
type streamable struct {
	l *Link
	e *Endpoint

	// names is replaced twice: by the response to initialize, and when the revision is
	// known.
	names atomic.Pointer[names]

	stream atomic.Pointer[getStream] // nil before listen
}

// names has the session's id and the headers with it. All requests share them; they must
// not be changed.
type names struct {
	id        string // Mcp-Session-Id; empty if the server gave none
	post, get http.Header
}

// OverHTTP connects l over Streamable HTTP. It sends nothing yet.
func (l *Link) OverHTTP(e *Endpoint) {
	h := &streamable{l: l, e: e}
	h.adopt("", "")
	l.carrier, l.attributes, l.Calls.ids = h, true, e.ids
}

// Refusal returns the HTTP status with which the server refused initialize, or 0.
func (l *Link) Refusal() int { return l.refusal }

// adopt sets the session id and the revision that further requests name.
func (h *streamable) adopt(id string, revision spec.Revision) {
	n := &names{id: id}
	n.post, n.get = h.e.headers(id, revision)
	h.names.Store(n)
}

// id returns the Mcp-Session-Id, empty if there is none.
func (h *streamable) id() string { return h.names.Load().id }

// do implements carrier.
func (h *streamable) do(ctx context.Context, c *Call, frame []byte) error {
	reply, err := h.e.http.Post(ctx, &c.Call, h.names.Load().post, frame)
	if err != nil {
		return err
	}
	c.wasTaken()
	if c.Opens {
		h.adopt(reply.Header().Get(spec.HeaderSession), "")
		if reply.Status() > 299 {
			h.l.refusal = reply.Status()
		}
	}
	if reply.IsError() {
		return h.l.rejected(ctx, c, reply, h.id() != "")
	}
	at, err := h.read(ctx, c, reply)
	if at == nil && err == nil && !c.Opens && !h.l.worked.Load() {
		h.l.worked.Store(true)
	}
	switch f := upstream.AsFailure(err); {
	case f != nil && f.Cause == upstream.ErrAccepted:
		return h.accepted(ctx, f)
	case at != nil:
		return h.resume(ctx, c, at)
	}
	return err
}

// accepted waits for the response to a request that was accepted like a notification: it
// may arrive on the GET stream.
func (h *streamable) accepted(ctx context.Context, f *upstream.Failure) error {
	if open, _ := h.listening(); open {
		if err := wake.Wait(ctx, acceptedTimeout); err != nil {
			return err
		}
	}
	return f
}

// rejected handles an HTTP error. It is a JSON-RPC error that answers the request, or says
// that the session is lost, or it is a failure. named says that the request had a session
// id that the server may have lost.
//
// Spec: 2025-11-25, basic/transports, Session Management. It requires 404 for a lost
// session, but many servers respond with 400. Some send either for an unknown method or
// name, too. So without the JSON-RPC error of a lost session neither status ends a session
// that still responds: one client's call would end it for all clients.
func (l *Link) rejected(ctx context.Context, c *Call, reply *upstream.Reply, named bool) error {
	status, m := reply.Rejection()
	status.Slash = status.Slash && l.attributes // HTTP+SSE posts to a URL that belongs to the session
	isError := m != nil
	sessionError := status.Code == http.StatusNotFound && isError && m.Error.Code == spec.CodeSessionNotFound
	pingPutOff := c.Method == spec.MethodPing && !c.Passes && status.Code < http.StatusInternalServerError && putsOff(status.Code)
	if isError && c.Is(m.ID) && !sessionError && !pingPutOff { // see isLost
		c.Settle(upstream.ResponseOf(m, nil))
		return nil
	}
	if isError && spec.ModernError(m.Error.Code) {
		l.opts.Doubt("it answered " + c.Method + " with " + status.Error())
	}
	mayBeLost := named && (status.Code == http.StatusNotFound || status.Code == http.StatusBadRequest)
	if mayBeLost && (sessionError || l.isLost(ctx, c.Method)) {
		l.fail(status)
		return &upstream.Failure{Cause: status, Fate: upstream.Refused, Lost: true}
	}
	if isError && c.Passes && status.Advice() == "" {
		c.Settle(upstream.ResponseOf(m, nil)) // it says more than the status, though it has no id
		return nil
	}
	return status.Failure()
}

// isLost reports whether the session does not respond to a ping, after a request of method
// got an HTTP error. For ping itself it returns true. If ctx, the request's, ends first, or the server
// puts the ping off (429), it returns false: nothing is known.
func (l *Link) isLost(ctx context.Context, method string) bool {
	if method == spec.MethodPing || method == spec.MethodInitialize {
		return true
	}
	err := l.ping(ctx)
	status, answered := errors.AsType[*upstream.StatusError](err)
	later := answered && status.Code < http.StatusInternalServerError && putsOff(status.Code)
	return !l.Alive() || err != nil && ctx.Err() == nil && !later
}

// ping returns nil if the session responds to a ping, also if it does not know that request.
func (l *Link) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	_, err := l.Request(ctx, spec.MethodPing, nil)
	if unknown, ok := errors.AsType[*wire.Error](err); ok && unknown.Code == spec.CodeMethodNotFound {
		return nil
	}
	return err
}

// send implements carrier.
func (h *streamable) send(ctx context.Context, frame []byte) error {
	status, err := sendTo(ctx, h.e.http, h.names.Load().post, frame)
	if err == nil && status != http.StatusAccepted {
		h.l.opts.Quirks.Met(quirks.NotificationStatus, "")
	}
	return err
}

// sendTo posts a message that has no response, and returns the status of success. It returns
// the cause of a failure, because such a message is never sent again.
func sendTo(ctx context.Context, to *upstream.HTTP, header http.Header, frame []byte) (int, error) {
	status, err := to.Send(ctx, header, frame)
	if f := upstream.AsFailure(err); f != nil {
		return 0, f.Cause
	}
	return status, err
}

// endedBy implements carrier: 404 means that the session is lost.
func (h *streamable) endedBy(err error) bool { return h.id() != "" && isNotFound(err) }

// isNotFound reports whether a POST was answered with 404.
func isNotFound(err error) bool {
	var status *upstream.StatusError
	return errors.As(err, &status) && status.Code == http.StatusNotFound
}

// useRevision implements carrier.
func (h *streamable) useRevision(r spec.Revision) { h.adopt(h.id(), r) }

// explain implements carrier.
func (h *streamable) explain(err error) error { return err }

// listen implements carrier: it opens the GET stream.
func (h *streamable) listen(ctx context.Context) {
	g := startStream(ctx, h)
	h.stream.Store(g)
	if !h.l.Alive() {
		g.close() // close may have run before the Store
	}
	g.await(ctx)
}

// initialized implements carrier: it tries once more to open a GET stream that was refused.
func (h *streamable) initialized(ctx context.Context) {
	h.stream.Load().retryRefused(ctx)
}

// listening implements carrier.
func (h *streamable) listening() (open, soon bool) {
	g := h.stream.Load()
	return g != nil && g.isOpen(), g != nil && g.mayOpen()
}

// close implements carrier.
//
// Spec: 2025-11-25, basic/transports, Session Management.
func (h *streamable) close(ctx context.Context) {
	if g := h.stream.Load(); g != nil {
		g.close()
	}
	var lost *upstream.StatusError
	if h.id() == "" || errors.As(h.l.Err(), &lost) {
		return // there is no session to end
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	// A server that does not support DELETE answers 405, which is correct.
	if err := h.e.http.Delete(ctx, h.names.Load().get); err != nil {
		h.l.log.Debug("ending session upstream", "error", transport.Cause(err))
	}
}

var _ carrier = (*streamable)(nil)
