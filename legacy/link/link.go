package link

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// lastWritesTimeout is how long the last messages to a server on a connection may take,
// which end with the connection.
const lastWritesTimeout = 200 * time.Millisecond

// A Sink takes what the server of a Link sends that answers no call.
type Sink interface {
	// Receive takes one request or notification. from is the call on whose own stream
	// it came, nil if it came where messages arrive unasked. Then it must not wait for
	// an answer of the server, which comes by the same reader.
	Receive(ctx context.Context, m *wire.Message, from *upstream.Call)
	// ListenChanged says that the stream for what the server sends unasked was opened or
	// has ended. missed says that messages may have been lost before it was opened.
	ListenChanged(open, missed bool)
}

// A Link carries the messages of one session. New makes one, and a method whose name
// begins with Over connects it, before it is used. Its methods are safe for concurrent
// use.
type Link struct {
	// Calls are the requests in flight.
	Calls Calls

	// Set before the Link is used, read-only after.
	opts       *upstream.Options
	log        *slog.Logger
	sink       Sink
	carrier    carrier
	ordered    bool
	attributes bool

	refusal int // see Refusal; written while the session is opened
	inbox   *upstream.Inbox
	outbox  outbox
	done    chan struct{} // closed when the session is lost or ended
}

// A carrier is the transport under a Link.
type carrier interface {
	// do sends frame, the request c, and returns once c is settled, ctx has ended, or
	// it is known that no response will come. The error tells why, if c is not settled:
	// an [*upstream.Failure], or ctx's cause.
	do(ctx context.Context, c *Call, frame []byte) error
	// send sends a notification or a response.
	send(ctx context.Context, frame []byte) error
	// endedBy reports whether the error of send says that the session has ended.
	endedBy(err error) bool
	// useRevision names the revision to the server from then on.
	useRevision(r spec.Revision)
	// listen opens a way for what the server sends unasked, if initialize has not
	// done so. It returns when the way is open, or will not be for a while.
	listen(ctx context.Context)
	// initialized is called after notifications/initialized was sent.
	initialized(ctx context.Context)
	// listening reports whether there is such a way at the moment.
	listening() bool
	// explain returns err with what else is known of why the server is silent.
	explain(err error) error
	// close ends the session upstream as far as it still exists and waits for what
	// the carrier started. ctx bounds what the server is told.
	close(ctx context.Context)
}

// New returns a Link that is not yet connected.
func New(opts *upstream.Options, sink Sink) *Link {
	l := &Link{opts: opts, log: opts.Logger, sink: sink, done: make(chan struct{})}
	l.inbox = upstream.NewInbox(opts, reading, inboxSink{l})
	l.Calls = Calls{&l.inbox.Calls, new(atomic.Int64)}
	return l
}

// Ordered reports whether messages reach the server in the order in which they are sent.
func (l *Link) Ordered() bool { return l.ordered }

// Attributes reports whether the stream on which a message comes may tell to which call
// it belongs. Otherwise everything comes on one stream, and the notes of a call are
// given to its Owner by the goroutine that called Do; see Call.Wake.
func (l *Link) Attributes() bool { return l.attributes }

// IsSSE reports whether the server speaks HTTP+SSE, the transport of 2024-11-05.
func (l *Link) IsSSE() bool { return !l.ordered && !l.attributes }

// UseRevision names the negotiated revision to the server from then on.
func (l *Link) UseRevision(r spec.Revision) { l.carrier.useRevision(r) }

// Listen opens a way for what the server sends unasked, if there is none yet. It is
// called before notifications/initialized is sent.
func (l *Link) Listen(ctx context.Context) { l.carrier.listen(ctx) }

// Initialized is called when notifications/initialized was sent: some servers offer the
// stream that Listen asks for only then.
func (l *Link) Initialized(ctx context.Context) { l.carrier.initialized(ctx) }

// Listening reports whether there is a way for what the server sends unasked.
func (l *Link) Listening() bool { return l.carrier.listening() }

// Explain returns err with what else is known of why the server is silent.
func (l *Link) Explain(err error) error { return l.carrier.explain(err) }

// Done is closed when the session is lost or ended.
func (l *Link) Done() <-chan struct{} { return l.done }

// Alive reports whether the session was neither lost nor ended.
func (l *Link) Alive() bool { return !wake.Closed(l.done) }

// Err returns why the session has ended, nil if it has not.
func (l *Link) Err() error { return l.Calls.Err() }

// Do sends frame, the request c, and returns once c is settled, ctx has ended, or it is
// known that no response will come. The error tells why, if c is not settled: an [*upstream.Failure],
// or ctx's cause.
func (l *Link) Do(ctx context.Context, c *Call, frame []byte) error {
	return l.carrier.do(ctx, c, frame)
}

// Send sends a notification or a response.
func (l *Link) Send(ctx context.Context, frame []byte) error { return l.carrier.send(ctx, frame) }

// EndIfLost ends the session if err, the error of a Send, says that the server has lost
// it.
func (l *Link) EndIfLost(err error) {
	if l.carrier.endedBy(err) {
		l.lose(err)
	}
}

// SendLater sends a message that nobody waits for.
func (l *Link) SendLater(ctx context.Context, frame []byte) {
	l.Later(ctx, func(ctx context.Context) {
		if err := l.Send(ctx, frame); err != nil {
			l.log.Debug("sending to server", "error", transport.Cause(err))
		}
	})
}

// Later runs send, for which nobody waits but Close. It never blocks: where too many are
// running the message is dropped.
func (l *Link) Later(ctx context.Context, send func(context.Context)) {
	if !l.outbox.send(ctx, send) {
		l.Drop("outgoing")
	}
}

// Start runs f, which ends with the session; Close waits. It reports false if the
// session has ended.
func (l *Link) Start(f func()) bool { return l.outbox.start(f) }

// fail ends the session. Requests in flight go on: over HTTP they may still be answered.
func (l *Link) fail(err error) {
	if l.Calls.End(err) {
		close(l.done)
	}
}

// lose ends the session and the requests in flight: no response will come.
func (l *Link) lose(err error) {
	l.fail(err)
	l.Calls.Fail(err)
}

// End ends the session without a word to the server: requests in flight fail, and nothing
// new may start.
func (l *Link) End() {
	l.lose(mcp.ErrShutdown)
	l.outbox.close()
}

// Close ends the session upstream and waits for everything that the Link has started.
// Requests in flight fail. ctx bounds what the server is told, not the waiting.
func (l *Link) Close(ctx context.Context) {
	l.End()
	sent := make(chan struct{})
	go func() { // ends with what is sent, which the carrier's end cuts short
		defer close(sent)
		l.outbox.wait() // each bounded by sendTimeout
	}()
	if l.ordered { // a child that does not read is no reason to wait
		late := time.AfterFunc(lastWritesTimeout, func() { l.carrier.close(ctx) })
		defer late.Stop()
	}
	<-sent
	l.carrier.close(ctx)
}
