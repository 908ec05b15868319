package front

import (
	"context"
	"errors"
	"os"
	"strconv"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
)

// streamSize is the memory of a listen stream, and parkedCallSize that of a call that may
// park, without parameters, in bytes.
const (
	streamSize     = 2 << 10
	parkedCallSize = 2 << 10
)

// listen serves subscriptions/listen.
//
// Spec: 2026-07-28, basic/patterns/subscriptions.
func (f *Front) listen(ctx context.Context, req *mcp.Request, p *reply) error {
	want, err := f.readFilter(req)
	if err != nil {
		return err
	}
	if f.followsTasks(req) {
		if err := mcp.CheckTasks(ctx, req, f.opts.Name, f.opts.Describer.Describe); err != nil {
			return err
		}
		return f.forwardListen(ctx, req, want, true, p)
	}
	if !f.opts.Settings.HoldsTasks() {
		req.Params = withoutTasks(req.Params)
	}
	if f.forwardsFilter(ctx, req) {
		return f.forwardListen(ctx, req, want, f.opts.Group, p)
	}
	mail := fanout.NewMailbox(fanout.MailboxOptions{})
	return p.writer.listen(ctx, mail, func(ctx context.Context, p *reply) (downstream.Turn, error) {
		s := &stream{front: f, reply: p, principal: req.Principal, profile: req.Profile, mail: mail, numbers: f.wantsNumbers(req)}
		return s.open(ctx, req, want)
	})
}

// subscribe registers the mailbox of a listen stream for the changes of want.
func (f *Front) subscribe(ctx context.Context, req *mcp.Request, want mcp.Filter, mail *fanout.Mailbox) (mcp.Subscription, mcp.Filter, error) {
	sub, err := f.opts.Subscriber.Subscribe(req, mail, mcp.SubscribeOptions{Stream: true})
	if err != nil {
		return nil, mcp.Filter{}, err
	}
	honored, err := sub.Add(ctx, want)
	if err != nil {
		sub.Close()
		return nil, mcp.Filter{}, err
	}
	return sub, honored, nil
}

// readFilter returns the filter of a listen request, or an error if it is invalid.
func (f *Front) readFilter(req *mcp.Request) (mcp.Filter, error) {
	want, err := protocol.ReadFilter(wire.Get(req.Params, "notifications"))
	if err != nil {
		return want, err
	}
	if n, most := len(want.URIs), f.opts.Limits.Int(limits.ListenTopics); n > most {
		f.limits.Hit(limits.ListenTopics.Key, "listen stream refused: too many resources", "want", n, "limit", most)
		return want, mcp.Refuse(spec.CodeInvalidParams, "%d resources in one listen request, the limit is %d; open several streams, or %s", n, most, limits.ListenTopics.Raise())
	}
	return want, nil
}

// A stream is one open listen stream. What writes it has its turns one after another; others only
// use mail.
type stream struct {
	front  *Front
	reply  *reply
	mail   *fanout.Mailbox
	memory mcp.Reservation
	sub    mcp.Subscription

	numbers bool // its client is a replica that asks for those of changes

	// The principal and profile of its request.
	principal mcp.Principal
	profile   mcp.Profile
}

// open subscribes to the changes, and acknowledges the stream.
func (s *stream) open(ctx context.Context, req *mcp.Request, want mcp.Filter) (turn downstream.Turn, err error) {
	if s.memory, err = mcp.Reserve(s.front.opts.Memory, req.Share, streamSize+len(req.Params)); err != nil {
		return nil, err
	}
	var honored mcp.Filter
	if s.sub, honored, err = s.front.subscribe(ctx, req, want, s.mail); err != nil {
		s.memory.Release()
		return nil, err
	}
	s.reply.writer.keepAlive()
	if err := s.acknowledge(honored); err != nil {
		s.close(err)
		return nil, nil
	}
	s.mail.Notify(s.reply.writer.turns())
	return func() bool { return s.turn(ctx) }, nil
}

// close ends the stream. err is the write error, nil if the stream was ended.
func (s *stream) close(err error) {
	s.reply.writer.stopKeepAlive()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.reportStale()
	}
	s.sub.Close()
	s.memory.Release()
}

func (s *stream) reportStale() {
	s.front.limit("write_timeout")
	s.front.opts.Logger.Warn("listen stream closed: its client does not read", "upstream", s.front.opts.Name,
		"downstream", s.reply.writer.peer(), "limit", s.front.opts.WriteTimeout)
}

// turn writes what has changed. The stream is over if it was ended, or its client has left.
func (s *stream) turn(ctx context.Context) (over bool) {
	if ctx.Err() != nil {
		s.close(s.reply.writer.cause(ctx))
		return true
	}
	ended, err := s.drain()
	if over = ended || err != nil; over {
		s.close(err)
	}
	return over
}

func (s *stream) acknowledge(honored mcp.Filter) error {
	ack := downstream.NewBuffer()
	defer downstream.FreeBuffer(ack)
	*ack = appendAck((*ack)[:0], honored, s.reply.id)
	return s.reply.send(*ack)
}

// drain writes the pending changes, and the end of the stream if it has ended.
func (s *stream) drain() (ended bool, err error) {
	if err := s.writeChanges(); err != nil {
		return false, err
	}
	if _, ended = s.mail.Ended(); ended {
		err = s.reply.message(s.appendEnd(nil))
	}
	return ended, err
}

// writeChanges writes the pending changes, gathered into few writes.
func (s *stream) writeChanges() error {
	msg := downstream.NewBuffer()
	defer downstream.FreeBuffer(msg)
	n := 0
	for ev, ok := s.mail.Next(); ok; ev, ok = s.mail.Next() {
		n++
		if s.numbers {
			ev.Meta = numbered(ev)
		}
		*msg = appendChange((*msg)[:0], ev, s.reply.id)
		if err := s.reply.writer.put(*msg); err != nil {
			return err
		}
	}
	if err := s.reply.writer.flush(); err != nil {
		return err
	}
	s.front.opts.Metrics.Delivered(s.front.opts.Name, n)
	return nil
}

func appendAck(dst []byte, honored mcp.Filter, id wire.ID) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":`...)
	dst = protocol.AppendFilter(dst, honored)
	return append(appendStamp(append(dst, ','), nil, id), "}}"...)
}

// appendChange appends the notification of ev.
func appendChange(dst []byte, ev fanout.Event, id wire.ID) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":"`...)
	dst = append(append(dst, mcp.ChangeMethod(ev.Topic.Kind)...), `","params":{`...)
	if ev.Topic.Kind == fanout.ResourceUpdated {
		dst = append(wire.AppendString(append(dst, `"uri":`...), ev.URI), ',')
	}
	return append(appendStamp(dst, ev.Meta, id), "}}"...)
}

// wantsNumbers reports whether a listen request asks for the numbers of changes.
func (f *Front) wantsNumbers(req *mcp.Request) bool {
	return f.opts.Numbers && string(wire.Get(wire.Get(req.Params, "_meta"), spec.MetaNumbers)) == "true"
}

// numbered returns the meta of ev with its number.
func numbered(ev fanout.Event) []byte {
	return wire.AppendEdited(nil, ev.Meta, wire.Edit{Name: spec.MetaNumber, Value: strconv.AppendUint(nil, ev.Number, 10)})
}

// appendStamp appends the _meta member of a stream's message: the members in foreign, and
// the id of the listen request.
func appendStamp(dst, foreign []byte, id wire.ID) []byte {
	dst = append(dst, `"_meta":`...)
	if foreign != nil {
		return wire.AppendEdited(dst, foreign, wire.Edit{Name: spec.MetaSubscriptionID, Value: id.Append(nil)})
	}
	dst = append(dst, `{"`+spec.MetaSubscriptionID+`":`...)
	return append(id.Append(dst), '}')
}

// appendEnd appends the result of the listen request, which says that the stream was ended
// gracefully. It waits for nobody: the server may not answer any more, which can be why the gateway ends.
//
// Spec: 2026-07-28, basic/patterns/subscriptions, Graceful Closure.
func (s *stream) appendEnd(dst []byte) []byte {
	dst = append(s.reply.id.Append(append(dst, `{"jsonrpc":"2.0","id":`...)), `,"result":{"resultType":"complete",`...)
	var info []byte
	if known := s.front.serverInfo(&mcp.Request{Method: spec.MethodListen, Era: spec.Modern, Principal: s.principal, Profile: s.profile}); known != nil {
		info = wire.AppendEdited(nil, nil, wire.Edit{Name: spec.MetaServerInfo, Value: known})
	}
	return append(appendStamp(dst, info, s.reply.id), "}}"...)
}
