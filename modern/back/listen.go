package back

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
	"github.com/mcpbridge/mcpbridge/modern/watch"
)

// ackTimeout bounds the wait for the acknowledgment of a listen request, once the server is
// up.
const ackTimeout = 10 * time.Second

var (
	// errClosed reports that the gateway closed the stream.
	errClosed = errors.New("the stream was closed")
	// errNoAck reports that a listen request was not acknowledged in time.
	errNoAck = errors.New("it did not acknowledge subscriptions/listen in time")
)

// openListen opens a listen stream for want, and returns when the server has acknowledged
// it, within 10 s or while it may still be starting. ctx bounds the opening only. The error has a [*wire.Error] in its chain
// if the server refused, and only then.
//
// If a server ends the stream at once, before or after an acknowledgment, openListen
// succeeds, and Next returns the end.
//
// Spec: 2026-07-28, basic/patterns/subscriptions, Opening a Stream.
func (b *Back) openListen(ctx context.Context, p mcp.Profile, want mcp.Filter) (watch.Stream, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.ackTimeout(), errNoAck)
	defer cancel()
	params := protocol.ListenParams(want)
	for negotiated := false; ; negotiated = true {
		c := b.ownCall(spec.MethodListen, params, p)
		s, err := b.link.listen(ctx, c)
		c.Exchange.End(err) // the stream goes on
		var refusal *wire.Error
		switch {
		case err == nil:
			return b.streamOf(s, p), nil
		case errors.As(err, &refusal) && !negotiated && b.renegotiated(refusal):
			continue
		case errors.Is(err, errNoAck):
			return nil, fmt.Errorf("server %q: %w", b.opts.Name, errNoAck)
		case refusal != nil && b.opts.Peer != nil:
			return nil, b.refusedByPeer(p, refusal)
		case refusal != nil:
			return nil, fmt.Errorf("server %q refused subscriptions/listen: %w", b.opts.Name, refusal)
		}
		return nil, b.listenError(err)
	}
}

// ackTimeout returns the time that the server has for an acknowledgment.
func (b *Back) ackTimeout() time.Duration {
	if b.isStarting() {
		return max(ackTimeout, b.opts.Settings.Timeouts.Connect)
	}
	return ackTimeout
}

// isStarting reports whether the server has not been reached yet, or not again.
func (b *Back) isStarting() bool {
	state, _ := b.availability.State()
	return state != upstream.Up
}

// refusedByPeer returns the error of a listen request that another replica has refused. It
// leaves out what its server refuses, so this is about all topics, and is not bisected.
func (b *Back) refusedByPeer(p mcp.Profile, refusal *wire.Error) error {
	err := fmt.Errorf("the replica refused to watch: %s", mcp.Shorten(refusal.Error()))
	b.opts.Peer.Refused(p.Scope, err)
	return err
}

// listenError returns the error of a listen request without a response: the text for
// clients, but not as an error of the server.
func (b *Back) listenError(err error) error {
	err = b.clientError(spec.MethodListen, err)
	if we, ok := errors.AsType[*wire.Error](err); ok {
		return errors.New(we.Message)
	}
	return err
}

// streamOf returns an open stream with what the Back does about its changes.
func (b *Back) streamOf(s watch.Stream, p mcp.Profile) watch.Stream {
	if b.opts.Peer != nil {
		return numberedStream{s}
	}
	return &evictingStream{s, b, p.Scope}
}

// A numberedStream has changes that another replica has numbered.
type numberedStream struct{ watch.Stream }

func (s numberedStream) Next() (fanout.Event, error) {
	ev, err := s.Stream.Next()
	ev.Number, _ = strconv.ParseUint(string(wire.Get(ev.Meta, spec.MetaNumber)), 10, 64) // 0 of an earlier version
	ev.Meta = withoutMember(ev.Meta, spec.MetaNumber)
	return ev, err
}

// An evictingStream evicts the cached schemas of tools when tools change.
type evictingStream struct {
	watch.Stream
	b     *Back
	scope string
}

func (s *evictingStream) Next() (fanout.Event, error) {
	ev, err := s.Stream.Next()
	if err == nil && ev.Topic.Kind == fanout.ToolsListChanged {
		s.b.toolsChanged(s.scope)
	}
	return ev, err
}

// changeOf returns the change in a notification, and whether the filter has its kind. It
// does not alias m.
func changeOf(m *wire.Message, scope string, granted mcp.Filter) (fanout.Event, bool) {
	kind, ok := mcp.ChangeKind(m.Method)
	topic := fanout.Topic{Scope: scope, Kind: kind}
	ok = ok && granted.Has(kind)
	if kind == fanout.ResourceUpdated {
		topic.URI, _ = wire.GetString(m.Params, "uri")
		ok = ok && topic.URI != ""
	}
	return fanout.Event{Topic: topic, Meta: withoutMember(wire.Get(m.Params, "_meta"), spec.MetaSubscriptionID)}, ok
}

// withoutMember returns the members of a change's _meta without one; nil if there are no others.
func withoutMember(meta []byte, name string) json.RawMessage {
	if !wire.IsObject(meta) {
		return nil
	}
	out := wire.AppendEdited(nil, meta, wire.Edit{Name: name})
	if len(out) == len("{}") {
		return nil
	}
	return out
}

// endsStream reports whether m ends the stream c: its response or, as one page of the
// specification says, a cancellation.
//
// Spec: 2026-07-28, basic/patterns/subscriptions, Graceful Closure;
// basic/patterns/cancellation.
func endsStream(m *wire.Message, c *upstreamCall) bool {
	if m.Method == spec.NotifyCancelled {
		id, err := wire.ParseID(wire.Get(m.Params, "requestId"))
		return err == nil && c.Is(id)
	}
	return m.Kind() == wire.Response && c.Is(m.ID)
}

// completed is the result of a client's own listen request that the server ends by a cancellation.
var completed = []byte(`{"resultType":"complete"}`)

// listen implements link. The stream is the response to the request, and Next reads it.
func (l *httpLink) listen(ctx context.Context, c *upstreamCall) (watch.Stream, error) {
	live, cancel := context.WithCancelCause(l.live) // ends with the stream
	c.Cancel = cancel
	unhook := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	s, err := l.openListen(live, cancel, c)
	if !unhook() && err == nil {
		s.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel(errClosed)
		return nil, err
	}
	return s, nil
}

func (l *httpLink) openListen(ctx context.Context, cancel context.CancelCauseFunc, c *upstreamCall) (*httpListen, error) {
	r, err := l.post(ctx, c)
	if err != nil {
		return nil, err
	}
	if r.Status() != http.StatusOK || !r.IsStream() {
		return l.answered(ctx, cancel, c, r)
	}
	r.Busy = upstream.Never
	s := &httpListen{l: l, ctx: ctx, cancel: cancel, c: c, reply: r}
	if err := s.acknowledged(); err != nil {
		r.Close()
		return nil, err
	}
	return s, nil
}

// answered reads the response of a server that opened no stream.
func (l *httpLink) answered(ctx context.Context, cancel context.CancelCauseFunc, c *upstreamCall, r *upstream.Reply) (*httpListen, error) {
	a, err := l.read(ctx, c, r)
	switch {
	case err != nil:
		return nil, err
	case a.Err != nil:
		return nil, a.TakeError()
	}
	a.Free()
	return &httpListen{ctx: ctx, cancel: cancel, err: watch.ErrEnded}, nil
}

// An httpListen is a listen stream over HTTP. Closing its response ends it upstream.
type httpListen struct {
	l       *httpLink
	ctx     context.Context // the response's: a stream begins and ends with it
	cancel  context.CancelCauseFunc
	c       *upstreamCall
	reply   *upstream.Reply
	granted mcp.Filter
	id      wire.ID // that the acknowledgment has: some servers write numbers as strings
	err     error   // why Next returns no more changes
}

// acknowledged reads the stream up to the acknowledgment, or its end if that comes first.
func (s *httpListen) acknowledged() error {
	for {
		m, err := s.reply.Next()
		if err != nil {
			return s.broken(err)
		}
		if granted, ok := protocol.Acknowledgment(m); ok {
			s.granted = granted
			s.id, _ = protocol.SubscriptionID(m)
			return nil
		}
		switch {
		case endsStream(m, s.c) && m.Error != nil:
			return upstream.KeepError(m.Error)
		case endsStream(m, s.c):
			s.err = watch.ErrEnded
			return nil
		}
		s.l.drop("message before the acknowledgment", s.c, s.reply)
	}
}

func (s *httpListen) Honored() mcp.Filter { return s.granted }

// Next implements [watch.Stream]. A notification without a subscription id, or with that of the
// acknowledgment, belongs to the stream on which it arrived.
func (s *httpListen) Next() (fanout.Event, error) {
	for s.err == nil {
		m, err := s.reply.Next()
		if err != nil {
			s.err = s.broken(err)
			break
		}
		if endsStream(m, s.c) {
			s.err = endOf(m.Error)
			s.reply.Close()
			break
		}
		id, named := protocol.SubscriptionID(m)
		ev, ok := changeOf(m, s.c.scope, s.granted)
		if ok && (!named || s.c.Is(id) || id == s.id) {
			if !named {
				s.l.opts.Quirks.Met(quirks.UntaggedNotice, "")
			}
			return ev, nil
		}
		s.l.drop("not a change that was asked for", s.c, s.reply)
	}
	s.cancel(errClosed)
	return fanout.Event{}, s.err
}

// endOf returns why a stream has ended that the server ended, with e if it is not nil.
func endOf(e *wire.Error) error {
	if e != nil {
		return fmt.Errorf("the server ended the stream: %s", mcp.Shorten(e.Error()))
	}
	return watch.ErrEnded
}

// broken returns why a stream can't be read any more.
func (s *httpListen) broken(err error) error {
	switch {
	case s.ctx.Err() != nil:
		return context.Cause(s.ctx)
	case errors.Is(err, upstream.ErrUnanswered):
		return &upstream.Failure{Cause: errors.New("the server closed the stream"), Fate: upstream.MayHaveRun, Again: true}
	}
	return err
}

func (s *httpListen) Close() { s.cancel(errClosed) } // next finds out
