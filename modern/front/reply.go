package front

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A reply is the answer to one request while it is being written: it makes
// messages of what its handler says, and its writer sends them.
//
// It is the mcp.Caller of its request.
type reply struct {
	front  *Front
	id     wire.ID
	writer replyWriter
}

// A replyWriter sends the messages of one request: what comes before the response,
// and the response last. It keeps none of them, and is safe for concurrent use.
type replyWriter interface {
	// streams reports whether anything can be sent before the response.
	streams() bool
	// put gathers a message for flush, which sends what was gathered.
	put(msg []byte) error
	flush() error
	// respond sends the response; nothing can be sent after. status is what HTTP
	// has beside it.
	respond(status int, msg downstream.Message) error
	// keepAlive shows that the request is not forgotten, where a client has to be
	// shown, until stopKeepAlive, which may be called again.
	keepAlive()
	stopKeepAlive()

	// listen serves a listen stream, which ends when mail does. It may return before the
	// stream has ended; an error of open's is the response then.
	listen(ctx context.Context, mail *fanout.Mailbox, open openStream) error
	// opened says that the request has become a stream, which ends when mail does. It
	// reports whether messages of other requests go the same way.
	opened(mail *fanout.Mailbox) (shared bool)
	// cause says why the context of a stream has ended: an error of a write, if one
	// failed.
	cause(ctx context.Context) error

	// peer says who the client is, for logs.
	peer() string
}

// An openStream begins a listen stream, and returns what writes the rest of it until it
// has ended, or nil if there is none. p is where it writes to; its writer may be another
// than that of the reply that the request came with.
type openStream func(ctx context.Context, p *reply) (write func(), err error)

// Notify sends a progress or log message. A client that takes nothing but the
// response goes without.
func (p *reply) Notify(_ context.Context, n mcp.Notification) error {
	if !p.writer.streams() {
		p.front.drop("client takes no stream")
		return nil
	}
	buf := downstream.NewBuffer()
	defer downstream.FreeBuffer(buf)
	*buf = wire.AppendNotification(*buf, n.Method, n.Params, nil)
	return p.send(*buf)
}

// send sends a message that is not the response.
func (p *reply) send(msg []byte) error {
	if err := p.writer.put(msg); err != nil {
		return err
	}
	return p.writer.flush()
}

// RequestInput is refused: a call whose client can be asked has a parkedCall for a Caller.
func (p *reply) RequestInput(context.Context, []mcp.InputRequest) ([]mcp.InputResponse, error) {
	return nil, mcp.ErrCannotAsk
}

// result sends the result of req.
func (p *reply) result(req *mcp.Request, res *mcp.Result) error {
	buf := downstream.NewBuffer()
	defer downstream.FreeBuffer(buf)
	msg, err := p.front.stamp(*buf, p.id, req, res)
	if err != nil {
		return err
	}
	*buf = msg.Text
	return p.writer.respond(http.StatusOK, msg)
}

// message sends a whole response.
func (p *reply) message(msg []byte) error {
	return p.writer.respond(http.StatusOK, downstream.Message{Text: msg})
}

// fail sends an error as the response. A reply that has its response already stays
// as it is.
func (p *reply) fail(err error) {
	we := mcp.WireError(err)
	status, hint := http.StatusOK, mcp.HintOf(err)
	if refusal := (*mcp.Refusal)(nil); errors.As(err, &refusal) {
		status = cmp.Or(hint.Status, refusalStatus(we.Code))
	}
	e := p.writer.respond(status, downstream.Message{Text: wire.AppendError(nil, p.id, we), Hint: hint})
	if e != nil && !errors.Is(e, downstream.ErrEnded) {
		p.front.opts.Logger.Debug("answer not delivered", "downstream", p.writer.peer(), "err", e)
	}
}

// refusalStatus is the HTTP status of an error that the gateway answers itself.
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
