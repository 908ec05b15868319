package back

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// partingTime is how long the last messages to a server on a connection may take,
// which end with the connection.
const partingTime = 200 * time.Millisecond

// A link carries the messages of one session. Its methods are safe for
// concurrent use; what arrives goes to wireSession.receiveText.
type link interface {
	// exchange sends frame, the request c, and returns once c is settled, ctx
	// has ended, or it is known that no answer will come. The error tells why,
	// if c is not settled: a *failure, or ctx's cause.
	exchange(ctx context.Context, c *wireCall, frame []byte) error
	// send sends a notification or a response.
	send(ctx context.Context, frame []byte) error
	// negotiated is told the revision of the session: messages name it from then on.
	negotiated(r spec.Revision)
	// listen opens a way for what the server sends unasked, if initialize has not
	// done so. It returns when the way is open, or will not be for a while.
	listen(ctx context.Context)
	// initialized is told that notifications/initialized was sent.
	initialized(ctx context.Context)
	// open reports whether there is such a way at the moment.
	open() bool
	// wakes reports whether exchange has the owner of its call deliver when told
	// through wireCall.wake. If not it waits for what can't be woken.
	wakes() bool
	// close ends the session upstream as far as it still exists and joins what
	// the link started. ctx bounds the politeness.
	close(ctx context.Context)
}

// A sink takes what the server of a session sends beside answers.
type sink interface {
	// receive takes a request or notification. from is the call on whose own stream it
	// came, nil if it came where messages arrive unasked.
	receive(ctx context.Context, m *wire.Message, from *wireCall)
	// listening says whether there is a way for what the server sends unasked.
	listening(open bool)
	// missed says that the server may have sent something while there was none.
	missed()
}

// A wireSession is one session as far as its messages go: requests in flight and
// their ids, what is being sent, and whether the server still knows it.
type wireSession struct {
	// Set before the session is handed out, read-only after.
	opts *Options
	log  *slog.Logger
	link link
	to   sink

	calls   callTable
	out     outbox
	gone    chan struct{}         // closed when the session is lost or ended
	useless atomic.Int64          // messages that nobody needed
	odd     transport.WarnLimiter // tells of what can't be read
}

func newWireSession(opts *Options, to sink) *wireSession {
	return &wireSession{
		opts:  opts,
		log:   opts.Logger,
		to:    to,
		gone:  make(chan struct{}),
		calls: callTable{ids: new(atomic.Int64), byID: make(map[int64]*wireCall)},
	}
}

// done is closed when the session is lost or ended.
func (s *wireSession) done() <-chan struct{} { return s.gone }

// alive reports whether the session was neither lost nor ended.
func (s *wireSession) alive() bool {
	select {
	case <-s.gone:
		return false
	default:
		return true
	}
}

// ending returns why the session is gone, nil if it is not.
func (s *wireSession) ending() error { return s.calls.ended() }

// fail says that the session is gone. Requests in flight go on: over HTTP they may
// still be answered.
func (s *wireSession) fail(err error) {
	if s.calls.end(err) {
		close(s.gone)
	}
}

// lost says that the session is gone, and that no request in flight will be answered.
func (s *wireSession) lost(err error) {
	s.fail(err)
	s.calls.cancel(&failure{cause: err, fate: mayHaveRun, lost: true})
}

// sendLater sends a message that nobody waits for.
func (s *wireSession) sendLater(ctx context.Context, frame []byte) {
	s.later(ctx, func(ctx context.Context) {
		if err := s.link.send(ctx, frame); err != nil {
			s.log.Debug("sending to server", "error", cause(err))
		}
	})
}

// later runs send, for which nobody waits but close. It never blocks: where too many are
// under way the message is dropped.
func (s *wireSession) later(ctx context.Context, send func(context.Context)) {
	if !s.out.send(ctx, send) {
		s.drop("outgoing")
	}
}

// start runs f, which ends with the session; close waits. It reports false if the
// session has ended.
func (s *wireSession) start(f func()) bool { return s.out.start(f) }

// close ends the session upstream. Calls still in flight fail. ctx bounds the
// politeness, not the joining.
func (s *wireSession) close(ctx context.Context) {
	s.lost(mcp.ErrShutdown)
	s.out.close()
	sent := make(chan struct{})
	go func() { // ends with what is sent, which the link's end cuts short
		defer close(sent)
		s.out.wait() // each bounded by goodbyeTimeout
	}()
	if _, ok := s.link.(*connLink); ok { // a child that does not read is no reason to wait
		late := time.AfterFunc(partingTime, func() { s.link.close(ctx) })
		defer late.Stop()
	}
	<-sent
	s.link.close(ctx)
}

// drop counts a message of the server that nobody needs.
func (s *wireSession) drop(what string) {
	s.useless.Add(1)
	s.opts.Metrics.Dropped(s.opts.Name, what)
}

// ration bounds how fast a reader of the session takes what nobody needs.
func (s *wireSession) ration() *transport.Throttle {
	return &transport.Throttle{Busy: s.calls.busy, Done: s.gone}
}
