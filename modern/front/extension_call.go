package front

import (
	"context"
	"errors"
	"os"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// errAnswered says that the server answered the request, which ends its stream.
var errAnswered = errors.New("the server ended the stream")

// An extensionCall is a request whose method is not known here. With the first message
// that only its client can make sense of it becomes a stream: it may never end by
// itself, so it is counted among the listen streams, and ends when they do.
//
// It is the mcp.Caller of its request.
type extensionCall struct {
	*reply
	req    *mcp.Request
	mail   *fanout.Mailbox // ends when the gateway ends the stream
	cancel context.CancelCauseFunc

	// Owned by the handler's goroutine until it has returned.
	release func() // counts the stream out; nil if it is none
	shared  bool   // the client tells streams apart by their ids alone
}

// serveExtension serves a request whose method is not known here.
func (f *Front) serveExtension(ctx context.Context, req *mcp.Request, p *reply) error {
	x := &extensionCall{reply: p, req: req, mail: fanout.NewMailbox(fanout.MailboxOptions{})}
	ctx, x.cancel = context.WithCancelCause(ctx)
	defer x.cancel(nil)
	p.writer.keepAlive()
	end := x.run(ctx)
	p.writer.stopKeepAlive()
	defer end.res.Release()
	if x.release != nil {
		defer x.release()
	}
	if end.err == nil {
		x.mail.End(errAnswered)
		return p.result(req, x.resultUnderOwnID(end.res))
	}
	if errors.Is(x.writer.cause(ctx), os.ErrDeadlineExceeded) {
		x.reportStale()
		return nil
	}
	if reason, ended := x.mail.Ended(); ended {
		return wire.Errorf(spec.CodeInternal, "the stream of %s was ended: %v; send the request again", req.Method, reason)
	}
	return end.err
}

// run has the request served until it has ended, and ends it when mail does.
func (x *extensionCall) run(ctx context.Context) handlerResult {
	served := make(chan handlerResult, 1)
	go func() { // ends with ctx at the latest; it is waited for below
		res, err := x.front.opts.Handler.Serve(ctx, x.req, x)
		served <- handlerResult{res, err}
	}()
	for {
		select {
		case end := <-served:
			return end
		case <-x.mail.Ready():
			if reason, ended := x.mail.Ended(); ended {
				x.cancel(reason)
			}
		}
	}
}

// Notify implements [mcp.Caller]. A client that can't be written to ends the
// request.
func (x *extensionCall) Notify(ctx context.Context, n mcp.Notification) error {
	if spec.UndefinedNotification(n.Method) && x.writer.streams() {
		if err := x.open(ctx); err != nil {
			x.cancel(err)
			return err
		}
		n.Params = x.underOwnID(n.Params)
	}
	err := x.reply.Notify(ctx, n)
	if err != nil {
		x.cancel(err)
	}
	return err
}

// open counts the request among the streams, once.
func (x *extensionCall) open(ctx context.Context) error {
	if x.release != nil {
		return nil
	}
	sub, _, err := x.front.subscribe(ctx, x.req, mcp.Filter{}, x.mail)
	if err != nil {
		return err
	}
	x.release, x.shared = sub.Close, x.writer.opened(x.mail)
	return nil
}

// underOwnID returns params under the client's own id, if they have an id or need one.
func (x *extensionCall) underOwnID(params []byte) []byte {
	if !x.shared && !hasSubscriptionID(params) {
		return params
	}
	return x.stamped(params)
}

// resultUnderOwnID returns a result under the client's own id, if it has one.
func (x *extensionCall) resultUnderOwnID(res *mcp.Result) *mcp.Result {
	if hasSubscriptionID(res.Body) {
		res.Body, res.Outline = x.stamped(res.Body), nil
	}
	return res
}

// hasSubscriptionID reports whether params or a result bear the id of a subscription.
func hasSubscriptionID(text []byte) bool {
	return wire.Get(wire.Get(text, "_meta"), spec.MetaSubscriptionID) != nil
}

func (x *extensionCall) reportStale() {
	x.front.limit("write_timeout")
	x.front.opts.Logger.Warn("stream closed: its client does not read", "upstream", x.front.opts.Name,
		"method", x.req.Method, "downstream", x.writer.peer(), "limit", x.front.opts.WriteTimeout)
}
