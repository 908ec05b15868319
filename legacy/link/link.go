package link

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// lastWritesTimeout is how long the last messages to a server on a connection may take.
// They end with the connection.
const lastWritesTimeout = 200 * time.Millisecond

// A Sink receives the messages of a Link's server that are not responses.
type Sink interface {
	// Receive gets a request or a notification. from is the call on whose stream it
	// arrived, or nil if it arrived on a shared stream. Then Receive must not wait for a
	// response of the server, because the same goroutine reads it.
	Receive(ctx context.Context, m *wire.Message, from *upstream.Call)
	// ListenChanged is called when the stream for messages that belong to no request was
	// opened or has ended. missed says that messages may have been lost before it was
	// opened.
	ListenChanged(open, missed bool)
}

// A Link carries the messages of one session. After New, connect it with one of the methods
// whose names begin with Over. Its methods are safe for concurrent use.
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

	refusal   int         // see Refusal; written while the session is opened
	worked    atomic.Bool // a request got a response, besides initialize
	inbox     *upstream.Inbox
	outbox    outbox
	aftermath *aftermath    // of calls that were cancelled
	done      chan struct{} // closed when the session is lost or ended
}

// A carrier is the transport under a Link.
type carrier interface {
	// do sends frame, the request c, and returns when c is settled, ctx has ended, or it is
	// known that no response will come. If c is not settled, the error says why: an
	// [*upstream.Failure], or ctx's cause.
	do(ctx context.Context, c *Call, frame []byte) error
	// send sends a notification or a response.
	send(ctx context.Context, frame []byte) error
	// endedBy reports whether an error of send means that the session has ended.
	endedBy(err error) bool
	// useRevision sets the revision that further requests name.
	useRevision(r spec.Revision)
	// listen opens a stream for messages that belong to no request, unless the carrier
	// always has one. It returns when the stream is open, or has been refused, or after a
	// time limit.
	listen(ctx context.Context)
	// initialized is called after notifications/initialized has been sent.
	initialized(ctx context.Context)
	// listening reports whether such a stream is open, and if not, whether it may be soon.
	listening() (open, soon bool)
	// explain returns err with more details on why the server does not respond, if there
	// are any.
	explain(err error) error
	// close ends the session upstream if it still exists, and waits for what the carrier
	// has started. ctx bounds the requests to the server.
	close(ctx context.Context)
}

// New returns a Link that is not yet connected.
func New(opts *upstream.Options, sink Sink) *Link {
	l := &Link{opts: opts, log: opts.Logger, sink: sink, aftermath: newAftermath(), done: make(chan struct{})}
	l.inbox = upstream.NewInbox(opts, reading, inboxSink{l})
	l.Calls = Calls{&l.inbox.Calls, new(atomic.Int64), l.aftermath}
	return l
}

// Ordered reports whether messages reach the server in the order in which they are sent.
func (l *Link) Ordered() bool { return l.ordered }

// Attributes reports whether the stream on which a message arrives can identify its call.
// Otherwise all messages arrive on one stream, and the goroutine that called Do passes the
// notifications of a call to its Owner; see Call.Wake.
func (l *Link) Attributes() bool { return l.attributes }

// IsSSE reports whether the server speaks HTTP+SSE, the transport of 2024-11-05.
func (l *Link) IsSSE() bool { return !l.ordered && !l.attributes }

// UseRevision sets the negotiated revision that further requests name.
func (l *Link) UseRevision(r spec.Revision) { l.carrier.useRevision(r) }

// Listen opens a stream for messages that belong to no request, if there is none yet. Call
// it before notifications/initialized is sent.
func (l *Link) Listen(ctx context.Context) { l.carrier.listen(ctx) }

// Initialized must be called after notifications/initialized was sent: some servers offer
// the stream of Listen only then.
func (l *Link) Initialized(ctx context.Context) { l.carrier.initialized(ctx) }

// Listening reports whether the server can send messages that belong to no request, and if not,
// whether it may soon.
func (l *Link) Listening() (open, soon bool) { return l.carrier.listening() }

// Explain returns err with more details on why the server does not respond, if there are
// any.
func (l *Link) Explain(err error) error { return l.carrier.explain(err) }

// Done is closed when the session is lost or ended.
func (l *Link) Done() <-chan struct{} { return l.done }

// Alive reports whether the session has neither been lost nor ended.
func (l *Link) Alive() bool { return !wake.Closed(l.done) }

// Err returns why the session has ended, nil if it has not.
func (l *Link) Err() error { return l.Calls.Err() }

// Do sends frame, the request c, and returns when c is settled, ctx has ended, or it is
// known that no response will come. If c is not settled, the error says why: an
// [*upstream.Failure], or ctx's cause.
func (l *Link) Do(ctx context.Context, c *Call, frame []byte) error {
	return l.carrier.do(ctx, c, frame)
}

// Send sends a notification or a response.
func (l *Link) Send(ctx context.Context, frame []byte) error { return l.carrier.send(ctx, frame) }

// EndIfLost ends the session if err, an error of Send, means that the server has lost it.
func (l *Link) EndIfLost(err error) {
	if l.carrier.endedBy(err) {
		l.lose(err)
	}
}

// SendLater sends a message in the background. The channel is closed when it was sent, or
// can't be.
func (l *Link) SendLater(ctx context.Context, frame []byte) <-chan struct{} {
	sent := make(chan struct{})
	later := l.Later(ctx, func(ctx context.Context) {
		defer close(sent)
		if l.ordered { // the server may be busy, and needs the message when it reads on
			ctx = context.WithoutCancel(ctx)
		}
		if err := l.Send(ctx, frame); err != nil {
			l.log.Debug("sending to server", "error", transport.Cause(err))
		}
	})
	if !later {
		close(sent)
	}
	return sent
}

// Later runs send in the background; Close waits for it. It never blocks: if too many
// messages are being sent, it drops this one, and returns false.
func (l *Link) Later(ctx context.Context, send func(context.Context)) bool {
	if l.outbox.send(ctx, send) {
		return true
	}
	l.Drop("outgoing")
	return false
}

// Start runs f on a goroutine that ends with the session; Close waits for it. It returns
// false if the session has ended.
func (l *Link) Start(f func()) bool { return l.outbox.start(f) }

// fail ends the session. Requests in flight continue: over HTTP they may still get
// responses.
func (l *Link) fail(err error) {
	if !l.Calls.End(err) {
		return
	}
	close(l.done)
	// One in which nothing has worked may be refused for another reason than its loss.
	if status := (*upstream.StatusError)(nil); errors.As(err, &status) && status.Code != http.StatusNotFound && l.worked.Load() {
		l.opts.Quirks.Met(quirks.LostSession, "")
	}
}

// lose ends the session and fails the requests in flight: they get no responses.
func (l *Link) lose(err error) {
	l.fail(err)
	l.Calls.Fail(err)
}

// End ends the session without a request to the server. Requests in flight fail, and no new
// ones may start.
func (l *Link) End() {
	l.lose(mcp.ErrShutdown)
	l.outbox.close()
}

// Close ends the session upstream and waits for everything that the Link has started.
// Requests in flight fail. ctx bounds the requests to the server, but not the wait.
func (l *Link) Close(ctx context.Context) {
	l.End()
	sent := make(chan struct{})
	go func() { // ends when the messages are sent, or when the carrier's end stops them
		defer close(sent)
		l.outbox.wait() // each bounded by sendTimeout, or by the connection
	}()
	if l.ordered { // a child process that does not read must not delay the end
		late := time.AfterFunc(lastWritesTimeout, func() { l.carrier.close(ctx) })
		defer late.Stop()
	}
	<-sent
	l.carrier.close(ctx)
}
