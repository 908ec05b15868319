package link

import (
	"context"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// reading is how a server's texts are read: as strictly as those of clients, who
// would have to refuse what is passed on.
var reading = wire.Options{}

// receiveText takes what the server sent in one piece where messages arrive unasked: a
// message, or a batch, which 2025-03-26 allows and which is taken apart. text is the
// Link's from then on. What can't be read is logged and skipped, unless it is the response
// to a call. release, which may be nil, gives text back; it is called for a single
// response only, of which nothing is kept. It reports whether the text was needed.
func (l *Link) receiveText(ctx context.Context, text []byte, release func()) (needed bool) {
	m, err := wire.Parse(text, reading)
	switch {
	case err == nil && m.Kind() == wire.Response:
		return l.respond(&m, release)
	case err == nil:
		other := m // m stays on the stack: most messages are responses
		return l.receive(ctx, &other, nil)
	case isEnvelope(err) && wire.IsArray(text):
		needed = true
		for e := range wire.Elements(text) {
			if !wire.IsArray(e) {
				needed = l.receiveText(ctx, e, nil) && needed
			}
		}
		return needed
	}
	return l.unreadable(text, err)
}

// receive takes a message. from is the call on whose own stream it came, nil if it came
// where messages arrive unasked. It reports whether the message was needed.
func (l *Link) receive(ctx context.Context, m *wire.Message, from *Call) (needed bool) {
	if m.Kind() == wire.Response {
		return l.respond(m, nil)
	}
	before := l.useless.Load()
	l.sink.Receive(ctx, m, from)
	return l.useless.Load() == before
}

// throttle bounds how fast a reader of the session takes what nobody needs.
func (l *Link) throttle() *transport.Throttle {
	return &transport.Throttle{Busy: l.Calls.busy, Done: l.done}
}

// Drop counts a message that reached nobody. what names its kind for the metrics.
func (l *Link) Drop(what string) {
	l.useless.Add(1)
	l.opts.Drop(what)
}

// Ignore counts a message that was not needed, though nothing was lost with it: a reader
// takes only so many of them a second.
func (l *Link) Ignore() { l.useless.Add(1) }

// respond hands a response to the call that waits for it elsewhere than on its own
// stream, and reports whether there is one. release gives back the text that m aliases; it
// may be nil. A response to no call in flight is dropped and counted: where ids alone tell
// to which call one belongs it misleads nobody, it may be to a call that was cancelled, and
// the end of the connection would be that of the session, and of everybody's calls.
func (l *Link) respond(m *wire.Message, release func()) bool {
	c := l.Calls.Find(m.ID)
	if c == nil {
		l.Drop("late answer")
		return false
	}
	r := upstream.ResponseOf(m, release)
	if err := c.take(len(m.Text)); err != nil {
		r.Free()
		c.Cancel(err)
		return true
	}
	if !c.settleElsewhere(r) {
		l.Drop("late answer")
		return false
	}
	return true
}

// unreadable fails the call that an unreadable message answers. If it answers
// none it is logged and skipped, which is reported by false.
func (l *Link) unreadable(text []byte, err error) bool {
	if id, method := wire.Salvage(text); method == "" {
		if c := l.Calls.Find(id); c != nil && c.settleElsewhere(upstream.Response{Err: l.badAnswer(err)}) {
			return true
		}
	}
	l.Drop("unreadable")
	l.odd.Warn(l.log, "skipping unreadable message of server", "error", err)
	return false
}

func (l *Link) badAnswer(err error) *wire.Error {
	return wire.Errorf(spec.CodeInternal, "server %q sent an answer that can't be read: %v", l.opts.Name, err)
}

// tooLong fails the call that a message beyond the limit answers, or refuses the
// request that it is, as far as its beginning tells; otherwise it is skipped.
func (l *Link) tooLong(ctx context.Context, e *transport.TooLongError) {
	l.beyondLimit(e.Limit)
	id, isRequest := wire.LeadingID(e.Start)
	if isRequest {
		l.SendLater(ctx, wire.AppendError(nil, id, wire.Errorf(spec.CodeInternal, "the request is of more than %d bytes, the limit; send less", e.Limit)))
		return
	}
	if c := l.Calls.Find(id); c != nil {
		c.settleElsewhere(upstream.Response{Err: wire.Errorf(spec.CodeInternal, "server %q answered %s with more than %d bytes; %s if that is normal for it",
			l.opts.Name, c.Method, e.Limit, limits.UpstreamMessage.Raise())})
	}
}

// beyondLimit counts and logs a message that is not read.
func (l *Link) beyondLimit(limit int) {
	l.useless.Add(1)
	l.opts.BeyondLimit(limit)
}

func isEnvelope(err error) bool {
	var e *wire.EnvelopeError
	return errors.As(err, &e)
}
