package upstream

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// outerText is how much of the beginning, and of the end, of a text that is not JSON is searched for an
// id, in bytes.
const outerText = 256

// A Sink receives a server's messages that are not responses to calls.
type Sink interface {
	// Receive gets a request or a notification. from is the call on whose stream it
	// arrived, or nil if it arrived on a shared stream. Then Receive must not wait for the
	// server, because the same goroutine reads its response. See [Reading.Keep] for how
	// long m is valid.
	Receive(ctx context.Context, m *wire.Message, from *Call)
	// Unclaimed gets a response to no call in flight: its id, and its error if there is
	// one. It reports whether the response was needed.
	Unclaimed(id wire.ID, e *wire.Error) bool
	// TooLong gets the id of a request that was too long to be read.
	TooLong(ctx context.Context, id wire.ID, limit int)
}

// An Inbox passes responses to their calls, and other messages to a Sink.
type Inbox struct {
	// Calls contains the calls in flight.
	Calls Calls

	opts    *Options
	reading Reading
	sink    Sink

	useless atomic.Int64          // number of messages that were not needed
	odd     transport.WarnLimiter // logs what can't be read
}

// NewInbox returns an Inbox for the messages of a server.
func NewInbox(o *Options, r Reading, sink Sink) *Inbox {
	return &Inbox{opts: o, reading: r, sink: sink}
}

// ReceiveText handles a text that arrived on a shared stream: a message, or a batch. pooled
// says that text may be passed to [transport.PutBuffer]; otherwise the Inbox owns it. A
// text that can't be read is logged and skipped, unless it is the response to a call.
// ReceiveText reports whether the text was needed.
func (b *Inbox) ReceiveText(ctx context.Context, text []byte, pooled bool) (needed bool) {
	m, err := b.opts.parse(text)
	switch {
	case err == nil && m.Kind() == wire.Response && pooled:
		return b.respond(&m, func() { transport.PutBuffer(text) })
	case err == nil:
		other := m // so that responses, which are more frequent, stay off the heap
		needed = b.Receive(ctx, &other, nil)
	case isBatch(b.reading, text, err):
		needed = b.receiveBatch(ctx, text)
	default:
		needed = b.unreadable(text, err)
	}
	if pooled && !b.reading.Keep {
		transport.PutBuffer(text)
	}
	return needed
}

func (b *Inbox) receiveBatch(ctx context.Context, text []byte) (needed bool) {
	needed = true
	for e := range wire.Elements(text) {
		if !wire.IsArray(e) {
			needed = b.ReceiveText(ctx, e, false) && needed
		}
	}
	return needed
}

// isBatch reports whether a text that is not a message because of err may be a batch.
func isBatch(r Reading, text []byte, err error) bool {
	return r.Batches && errors.As(err, new(*wire.EnvelopeError)) && wire.IsArray(text)
}

// Receive handles a message. from is the call on whose stream it arrived. It reports
// whether the message was needed.
func (b *Inbox) Receive(ctx context.Context, m *wire.Message, from *Call) (needed bool) {
	if m.Kind() == wire.Response {
		return b.respond(m, nil)
	}
	before := b.useless.Load()
	b.sink.Receive(ctx, m, from)
	return b.useless.Load() == before
}

// respond passes a response to its call. release, which may be nil, frees the text that m
// aliases. A response to no call in flight is dropped and counted: it may be that of a
// cancelled call, and closing the connection would end all other calls.
func (b *Inbox) respond(m *wire.Message, release func()) (needed bool) {
	c := b.Calls.Find(m.ID)
	if c == nil && b.sink.Unclaimed(m.ID, m.Error) {
		free(release)
		return true
	}
	if c != nil {
		r, err := ResponseOf(m, release), c.take(len(m.Text))
		if err == nil && c.SettleElsewhere(r) {
			return true
		}
		if err != nil && c.Fail(err) {
			free(release)
			return true
		}
	}
	free(release)
	b.Drop("late answer")
	return false
}

func free(release func()) {
	if release != nil {
		release()
	}
}

// unreadable fails the call whose response can't be read. Another message is logged and
// skipped; then it returns false.
func (b *Inbox) unreadable(text []byte, err error) bool {
	if c := b.Calls.Find(answered(text, err)); c != nil && c.Fail(unreadable(err)) {
		return true
	}
	b.Drop("unreadable")
	b.odd.Warn(b.opts.Logger, "skipping unreadable message of server", "error", err)
	return false
}

// answered returns the id of the response in a text that can't be read because of err; zero if it is
// none, or the id is not found. It mostly stands beside what is wrong.
func answered(text []byte, err error) wire.ID {
	id, method := wire.Salvage(text)
	isOther := method != ""
	if id.IsZero() && errors.As(err, new(*wire.SyntaxError)) {
		id, isOther = wire.OuterID(text[:min(outerText, len(text))], text[max(0, len(text)-outerText):])
	}
	if isOther {
		return wire.ID{}
	}
	return id
}

// TooLong handles a message beyond the limit: it fails the call of a response, or passes a
// request to the Sink, if the beginning or the end of the message has the id.
func (b *Inbox) TooLong(ctx context.Context, e *transport.TooLongError) {
	b.useless.Add(1)
	b.opts.BeyondLimit(e.Limit)
	id, isRequest := wire.OuterID(e.Start, e.End)
	if isRequest {
		b.sink.TooLong(ctx, id, e.Limit)
	} else if c := b.Calls.Find(id); c != nil {
		c.Fail(&Failure{Cause: e, Fate: MayHaveRun})
	}
}

// Drop counts a message that was not delivered. what is its kind in the metrics.
func (b *Inbox) Drop(what string) {
	b.useless.Add(1)
	b.opts.Drop(what)
}

// Ignore counts a message that had no effect, though nothing was lost with it. A reader
// accepts only a limited number of them per second.
func (b *Inbox) Ignore() { b.useless.Add(1) }
