package front

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
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
	if wire.Get(wire.Get(params, "notifications"), spec.FilterTaskIDs) == nil {
		return params
	}
	return wire.EditedIn(params, "notifications", wire.Edit{Name: spec.FilterTaskIDs})
}

// forwardsFilter reports whether a listen request gets its own upstream stream: its filter
// has members of extensions, and the server is modern.
func (f *Front) forwardsFilter(ctx context.Context, req *mcp.Request) bool {
	if !hasExtensions(wire.Get(req.Params, "notifications")) {
		return false
	}
	era := f.opts.Upstream()
	if f.opts.Group {
		return era != spec.Legacy || namesTasks(req) // Handler leaves out what no member has
	}
	if era == spec.Unknown {
		_, _ = f.opts.Describer.Describe(ctx, req) // waits for the era; if it stays unknown, members of extensions are ignored
		era = f.opts.Upstream()
	}
	return era == spec.Modern
}

// followsTasks reports whether a listen request names tasks of a legacy server, which the Handler
// tells of.
func (f *Front) followsTasks(req *mcp.Request) bool {
	return !f.opts.Group && f.opts.Upstream() == spec.Legacy && namesTasks(req)
}

// namesTasks reports whether the filter of a listen request names tasks.
func namesTasks(req *mcp.Request) bool {
	for range wire.Elements(wire.Get(wire.Get(req.Params, "notifications"), spec.FilterTaskIDs)) {
		return true
	}
	return false
}

// forwardListen serves a listen request with its own upstream stream. Messages are
// forwarded unchanged, with the client's own subscription id. beside says that changes of lists and
// resources are followed as on other streams, and acknowledged with the rest: a group has members of
// either era, and a legacy server no such streams.
func (f *Front) forwardListen(ctx context.Context, req *mcp.Request, want mcp.Filter, beside bool, p *reply) error {
	mail := fanout.NewMailbox(fanout.MailboxOptions{})
	if !beside {
		want = mcp.Filter{}
	}
	return p.writer.listen(ctx, mail, func(ctx context.Context, p *reply) (downstream.Turn, error) {
		return (&forwardedStream{reply: p, mail: mail, beside: beside, acknowledged: make(chan struct{})}).open(ctx, req, want)
	})
}

// open registers the stream, so that it ends with the others. All the rest is one turn.
func (s *forwardedStream) open(ctx context.Context, req *mcp.Request, want mcp.Filter) (downstream.Turn, error) {
	sub, followed, err := s.front.subscribe(ctx, req, want, s.mail)
	if err != nil {
		return nil, err
	}
	s.followed = followed
	s.writer.turns().Send()
	return func() bool {
		defer sub.Close()
		if err := s.write(ctx, req); err != nil {
			s.fail(err)
		}
		return true
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
	st := &stream{front: f, reply: p, mail: s.mail, principal: req.Principal, profile: req.Profile}
	end, cause := s.await(ctx, served, st)
	defer end.res.Release()
	switch {
	case errors.Is(cause, os.ErrDeadlineExceeded):
		st.reportStale()
		return nil
	case cause == errStreamEnded:
		return p.message(st.appendEnd(nil))
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
	mail     *fanout.Mailbox // ends when the gateway ends the stream
	beside   bool            // lists and resources are followed beside the upstream stream
	followed mcp.Filter      // what of them is
	cancel   context.CancelCauseFunc

	once         sync.Once
	acknowledged chan struct{} // closed once the client has the acknowledgment, with beside
}

// Notify implements [mcp.Caller]. If writing to the client fails, the stream ends.
func (s *forwardedStream) Notify(ctx context.Context, n mcp.Notification) error {
	isAck := s.beside && n.Method == spec.NotifyAcknowledged
	if isAck {
		n.Params = s.withFollowed(n.Params)
	}
	n.Params = s.stamped(n.Params)
	err := s.reply.Notify(ctx, n)
	if err != nil {
		s.cancel(err)
	}
	if isAck {
		s.once.Do(func() { close(s.acknowledged) })
	}
	return err
}

// withFollowed returns the params of an acknowledgment with what is followed beside the upstream
// stream.
func (s *forwardedStream) withFollowed(params []byte) []byte {
	var granted []wire.Edit
	for k, v := range wire.Members(wire.Get(params, "notifications")) {
		granted = append(granted, wire.Edit{Name: k.String(), Value: v})
	}
	filter := wire.AppendEdited(nil, protocol.AppendFilter(nil, s.followed), granted...)
	return wire.AppendEdited(nil, params, wire.Edit{Name: "notifications", Value: filter})
}

// stamped returns params or a result of a stream with the client's own subscription id.
func (rp *reply) stamped(text []byte) []byte {
	return wire.EditedIn(text, "_meta", wire.Edit{Name: spec.MetaSubscriptionID, Value: rp.id.Append(nil)})
}

// await sends keep-alive comments, and what is followed beside, until the upstream stream has ended: all
// that has come by then. cause is the reason if the gateway or the client ended it.
func (s *forwardedStream) await(ctx context.Context, served <-chan handlerResult, st *stream) (end handlerResult, cause error) {
	s.writer.keepAlive()
	defer s.writer.stopKeepAlive()
	acknowledged := s.acknowledged
	for over := false; !over; {
		select {
		case end = <-served:
			over = true
		case <-acknowledged:
			acknowledged = nil // what has come before is still in mail
		case <-s.mail.Ready():
		}
		if wake.Closed(s.acknowledged) {
			if err := st.writeChanges(); err != nil {
				s.cancel(err)
			}
		}
		if !over && s.mail.Closed() { // perhaps with what nobody is told without an acknowledgment
			s.cancel(errStreamEnded)
		}
	}
	return end, s.writer.cause(ctx)
}
