package upstream

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Sink takes what a server sends that answers no call.
type Sink interface {
	// Receive takes a request or a notification. from is the call on whose own stream it
	// came, nil if it came where messages arrive unasked: then it must not wait for the
	// server, whose answer comes by the same reader. See [Reading.Keep] for how long m is
	// valid.
	Receive(ctx context.Context, m *wire.Message, from *Call)
	// Unclaimed takes a response to no call in flight: its id, and its error if it is one.
	// It reports whether it was needed.
	Unclaimed(id wire.ID, e *wire.Error) bool
	// TooLong takes the id of a request that was too long to be read.
	TooLong(ctx context.Context, id wire.ID, limit int)
}

// An Inbox gives each call the response that comes for it among others, and everything else
// to a Sink.
type Inbox struct {
	// Calls are those in flight.
	Calls Calls

	opts    *Options
	reading Reading
	sink    Sink

	useless atomic.Int64          // messages that nobody needed
	odd     transport.WarnLimiter // tells of what can't be read
}

// NewInbox returns an Inbox for the messages of a server.
func NewInbox(o *Options, r Reading, sink Sink) *Inbox {
	return &Inbox{opts: o, reading: r, sink: sink}
}

// ReceiveText takes what the server sent in one piece where messages arrive unasked: a
// message, or a batch. pooled says that text may be given to [transport.PutBuffer] when it
// is not needed any more; otherwise it is the Inbox's to keep. What can't be read is logged
// and skipped, unless it is the response to a call. It reports whether the text was needed.
func (b *Inbox) ReceiveText(ctx context.Context, text []byte, pooled bool) (needed bool) {
	m, err := wire.Parse(text, parsing)
	switch {
	case err == nil && m.Kind() == wire.Response && pooled:
		return b.respond(&m, func() { transport.PutBuffer(text) })
	case err == nil:
		other := m // so that responses, of which there are more, stay off the heap
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

// isBatch reports whether a text that is no message, as err says, may hold several.
func isBatch(r Reading, text []byte, err error) bool {
	var e *wire.EnvelopeError
	return r.Batches && errors.As(err, &e) && wire.IsArray(text)
}

// Receive takes a message that was read. from is the call on whose own stream it came. It
// reports whether the message was needed.
func (b *Inbox) Receive(ctx context.Context, m *wire.Message, from *Call) (needed bool) {
	if m.Kind() == wire.Response {
		return b.respond(m, nil)
	}
	before := b.useless.Load()
	b.sink.Receive(ctx, m, from)
	return b.useless.Load() == before
}

// respond hands a response to the call that waits for it. release gives back the text that
// m aliases; it may be nil. One to no call in flight is dropped and counted: ids alone tell
// whose it is, it may be to a call that was cancelled, and the end of the connection would
// be that of everybody's calls.
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

// unreadable fails the call that an unreadable message answers. If it answers none it is
// logged and skipped, which is reported by false.
func (b *Inbox) unreadable(text []byte, err error) bool {
	if id, method := wire.Salvage(text); method == "" {
		if c := b.Calls.Find(id); c != nil && c.Fail(unreadable(err)) {
			return true
		}
	}
	b.Drop("unreadable")
	b.odd.Warn(b.opts.Logger, "skipping unreadable message of server", "error", err)
	return false
}

// TooLong takes a message beyond the limit. It fails the call that the message answers, or
// tells the Sink of the request that it is, as far as its beginning tells.
func (b *Inbox) TooLong(ctx context.Context, e *transport.TooLongError) {
	b.useless.Add(1)
	b.opts.BeyondLimit(e.Limit)
	id, isRequest := wire.LeadingID(e.Start)
	if isRequest {
		b.sink.TooLong(ctx, id, e.Limit)
	} else if c := b.Calls.Find(id); c != nil {
		c.Fail(&Failure{Cause: e, Fate: MayHaveRun})
	}
}

// Drop counts a message that reached nobody. what names its kind for the metrics.
func (b *Inbox) Drop(what string) {
	b.useless.Add(1)
	b.opts.Drop(what)
}

// Ignore counts a message that was not needed, though nothing was lost with it: a reader
// takes only so many of them a second.
func (b *Inbox) Ignore() { b.useless.Add(1) }
