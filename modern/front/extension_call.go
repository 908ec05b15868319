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

// errAnswered reports that the server has responded to the request, which ends its stream.
var errAnswered = errors.New("the server ended the stream")

// An extensionCall is a request with an unknown method. With its first unknown
// notification it becomes a stream: it may never end by itself, so it counts as a listen
// stream, and ends with those.
//
// It is the mcp.Caller of its request.
type extensionCall struct {
	*reply
	req    *mcp.Request
	mail   *fanout.Mailbox // ends when the gateway ends the stream
	cancel context.CancelCauseFunc

	// ends the registration as a stream; nil if it is none
	release func() // counts the stream out; nil if it is none
	shared  bool   // the client distinguishes streams by their ids alone
}

// serveExtension serves a request with an unknown method.
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

// run serves the request, and ends it when mail ends.
func (x *extensionCall) run(ctx context.Context) handlerResult {
	served := make(chan handlerResult, 1)
	go func() { // ends with ctx at the latest; the loop below waits for it
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

// Notify implements [mcp.Caller]. If writing to the client fails, the request ends.
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

// open registers the request as a stream, once.
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

// underOwnID returns params with the client's own id, if they have an id or need one.
func (x *extensionCall) underOwnID(params []byte) []byte {
	if !x.shared && !hasSubscriptionID(params) {
		return params
	}
	return x.stamped(params)
}

// resultUnderOwnID returns a result with the client's own id, if it has one.
func (x *extensionCall) resultUnderOwnID(res *mcp.Result) *mcp.Result {
	if hasSubscriptionID(res.Body) {
		res.Body, res.Outline = x.stamped(res.Body), nil
	}
	return res
}

// hasSubscriptionID reports whether params or a result have a subscription id.
func hasSubscriptionID(text []byte) bool {
	return wire.Get(wire.Get(text, "_meta"), spec.MetaSubscriptionID) != nil
}

func (x *extensionCall) reportStale() {
	x.front.limit("write_timeout")
	x.front.opts.Logger.Warn("stream closed: its client does not read", "upstream", x.front.opts.Name,
		"method", x.req.Method, "downstream", x.writer.peer(), "limit", x.front.opts.WriteTimeout)
}
