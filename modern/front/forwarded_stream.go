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

// hasExtensions reports whether a filter has members of extensions, which only the server
// knows.
func hasExtensions(filter []byte) bool {
	for k, v := range wire.Members(filter) {
		switch {
		case k.Is("toolsListChanged"), k.Is("promptsListChanged"), k.Is("resourcesListChanged"), k.Is("resourceSubscriptions"):
		case string(v) == "false", wire.IsNull(v):
		default:
			return true
		}
	}
	return false
}

// withoutTasks removes tasks from the filter of a listen request.
func withoutTasks(params []byte) []byte {
	filter := wire.Get(params, "notifications")
	if wire.Get(filter, spec.FilterTaskIDs) == nil {
		return params
	}
	filter = wire.AppendEdited(nil, filter, wire.Edit{Name: spec.FilterTaskIDs})
	return wire.AppendEdited(nil, params, wire.Edit{Name: "notifications", Value: filter})
}

// forwardsFilter reports whether a listen request gets its own upstream stream: its filter
// has members of extensions, and the server is modern.
func (f *Front) forwardsFilter(ctx context.Context, req *mcp.Request) bool {
	if !hasExtensions(wire.Get(req.Params, "notifications")) {
		return false
	}
	era := f.opts.Upstream()
	if f.opts.Group {
		return era != spec.Legacy // Handler leaves out what no member has
	}
	if era == spec.Unknown {
		_, _ = f.opts.Describer.Describe(ctx, req) // waits for the era; if it stays unknown, members of extensions are ignored
		era = f.opts.Upstream()
	}
	return era == spec.Modern
}

// forwardListen serves a listen request with its own upstream stream. Messages are
// forwarded unchanged, with the client's own subscription id.
func (f *Front) forwardListen(ctx context.Context, req *mcp.Request, p *reply) error {
	mail := fanout.NewMailbox(fanout.MailboxOptions{})
	return p.writer.listen(ctx, mail, func(ctx context.Context, p *reply) (write func(), err error) {
		return (&forwardedStream{reply: p, mail: mail}).open(ctx, req)
	})
}

// open registers the stream without topics, so that it ends with the others.
func (s *forwardedStream) open(ctx context.Context, req *mcp.Request) (write func(), err error) {
	sub, _, err := s.front.subscribe(ctx, req, mcp.Filter{}, s.mail)
	if err != nil {
		return nil, err
	}
	return func() {
		defer sub.Close()
		if err := s.write(ctx, req); err != nil {
			s.fail(err)
		}
	}, nil
}

func (s *forwardedStream) write(ctx context.Context, req *mcp.Request) error {
	f, p := s.front, s.reply
	ctx, s.cancel = context.WithCancelCause(ctx)
	defer s.cancel(nil)
	served := make(chan handlerResult, 1)
	go func() { // ends with ctx, which await waits for
		res, err := f.opts.Handler.Serve(ctx, req, s)
		served <- handlerResult{res, err}
	}()
	end, cause := s.await(ctx, served)
	defer end.res.Release()
	switch {
	case errors.Is(cause, os.ErrDeadlineExceeded):
		(&stream{front: f, reply: p}).reportStale()
		return nil
	case cause == errStreamEnded:
		st := &stream{front: f, reply: p, principal: req.Principal, profile: req.Profile}
		return p.message(st.appendEnd(context.WithoutCancel(ctx), nil))
	case end.err != nil:
		return end.err
	}
	return p.message(wire.AppendResult(nil, p.id, s.stamped(end.res.Body), end.res.Extra))
}

// errStreamEnded is why a stream ends that the gateway ends.
var errStreamEnded = errors.New("the stream was ended")

// A handlerResult is the result of a handler. res is nil if err is not.
type handlerResult struct {
	res *mcp.Result
	err error
}

// A forwardedStream is a listen stream with its own upstream stream. It is the mcp.Caller
// of its request.
type forwardedStream struct {
	*reply
	mail   *fanout.Mailbox // ends when the gateway ends the stream
	cancel context.CancelCauseFunc
}

// Notify implements [mcp.Caller]. If writing to the client fails, the stream ends.
func (s *forwardedStream) Notify(ctx context.Context, n mcp.Notification) error {
	n.Params = s.stamped(n.Params)
	err := s.reply.Notify(ctx, n)
	if err != nil {
		s.cancel(err)
	}
	return err
}

// stamped returns params or a result of a stream with the client's own subscription id.
func (rp *reply) stamped(text []byte) []byte {
	meta := wire.AppendEdited(nil, wire.Get(text, "_meta"), wire.Edit{Name: spec.MetaSubscriptionID, Value: rp.id.Append(nil)})
	return wire.AppendEdited(nil, text, wire.Edit{Name: "_meta", Value: meta})
}

// await sends keep-alive comments until the upstream stream has ended. cause is the reason
// if the gateway or the client ended it.
func (s *forwardedStream) await(ctx context.Context, served <-chan handlerResult) (end handlerResult, cause error) {
	s.writer.keepAlive()
	defer s.writer.stopKeepAlive()
	for {
		select {
		case end = <-served:
			return end, s.writer.cause(ctx)
		case <-s.mail.Ready():
			if _, ended := s.mail.Ended(); ended {
				s.cancel(errStreamEnded)
			}
		}
	}
}
