package front

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A reply is the reply to one request: it formats messages, and its writer sends them.
//
// It is the mcp.Caller of its request.
type reply struct {
	front  *Front
	id     wire.ID
	writer replyWriter
	trace  *trace.Request // nil while nobody observes
}

// observe has the request, which may be nil, told of what is sent.
func (rp *reply) observe(req *mcp.Request, m *wire.Message) {
	if req != nil && req.Trace != nil {
		rp.trace = req.Trace
		rp.trace.Received(m.Text)
	}
}

// answer sends the response. status is the HTTP status.
func (rp *reply) answer(status int, msg downstream.Message) error {
	switch {
	case rp.trace == nil:
	case rp.trace.Bodies():
		rp.trace.Sent(msg.Bytes())
	default:
		rp.trace.SentSize(len(msg.Text) + len(msg.Large))
	}
	return rp.writer.respond(status, msg)
}

// A replyWriter sends the messages of one request, the response last. It keeps none of
// them, and is safe for concurrent use.
type replyWriter interface {
	// streams reports whether messages can be sent before the response.
	streams() bool
	// put gathers a message for flush, which sends the gathered messages.
	put(msg []byte) error
	flush() error
	// respond sends the response; nothing can be sent after. status is the HTTP status.
	respond(status int, msg downstream.Message) error
	// keepAlive sends comments until stopKeepAlive, if the transport has them.
	keepAlive()
	stopKeepAlive()

	// listen serves a listen stream, which ends when mail does. It may return before the
	// stream has ended. An error of open is sent as the response.
	listen(ctx context.Context, mail *fanout.Mailbox, open openStream) error
	// turns have the rest of a listen stream written.
	turns() *wake.Turns
	// opened records that the request has become a stream, which ends when mail does. It
	// reports whether messages of other requests use the same connection.
	opened(mail *fanout.Mailbox) (shared bool)
	// cause returns why the context of a stream has ended: a write error, if there was
	// one.
	cause(ctx context.Context) error

	// peer returns the client's address, for logs.
	peer() string
}

// An openStream begins a listen stream, and returns what writes the rest of it, or nil if there is
// none: it is called when the turns of p's writer are sent to, and when ctx has ended. It writes to p,
// whose writer may be another than that of the request's reply.
type openStream func(ctx context.Context, p *reply) (turn downstream.Turn, err error)

// Notify sends a progress or log message, unless the client accepts no stream.
func (rp *reply) Notify(_ context.Context, n mcp.Notification) error {
	if !rp.writer.streams() {
		rp.front.drop("client takes no stream")
		return nil
	}
	buf := downstream.NewBuffer()
	defer downstream.FreeBuffer(buf)
	*buf = wire.AppendNotification(*buf, n.Method, n.Params, nil)
	if n.More {
		rp.trace.Sent(*buf)
		return rp.writer.put(*buf)
	}
	return rp.send(*buf)
}

// send sends a message that is not the response.
func (rp *reply) send(msg []byte) error {
	rp.trace.Sent(msg)
	if err := rp.writer.put(msg); err != nil {
		return err
	}
	return rp.writer.flush()
}

// RequestInput is refused: a call whose client supports input requests has a parkedCall as
// its Caller.
func (rp *reply) RequestInput(context.Context, []mcp.InputRequest) ([]mcp.InputResponse, error) {
	return nil, mcp.ErrCannotAsk
}

// result sends the result of req.
func (rp *reply) result(req *mcp.Request, res *mcp.Result) error {
	buf := downstream.NewBuffer()
	defer downstream.FreeBuffer(buf)
	msg, err := rp.front.stamp(*buf, rp.id, req, res)
	if err != nil {
		return err
	}
	*buf = msg.Text
	return rp.answer(http.StatusOK, msg)
}

// message sends a complete response.
func (rp *reply) message(msg []byte) error {
	return rp.answer(http.StatusOK, downstream.Message{Text: msg})
}

// fail sends an error as the response, unless there was a response already.
func (rp *reply) fail(err error) {
	we := mcp.WireError(err)
	status, hint := http.StatusOK, mcp.HintOf(err)
	if refusal := (*mcp.Refusal)(nil); errors.As(err, &refusal) {
		status = cmp.Or(hint.Status, refusalStatus(we.Code))
	}
	e := rp.answer(status, downstream.Message{Text: wire.AppendError(nil, rp.id, we), Hint: hint})
	if e != nil && !errors.Is(e, downstream.ErrEnded) {
		rp.front.opts.Logger.Debug("answer not delivered", "downstream", rp.writer.peer(), "err", e)
	}
}

// refusalStatus returns the HTTP status of an error of the gateway itself.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Request Metadata.
func refusalStatus(code int64) int {
	switch code {
	case spec.CodeMethodNotFound:
		return http.StatusNotFound
	case spec.CodeInternal:
		return http.StatusOK
	}
	return http.StatusBadRequest
}
