package mcp

import (
	"context"
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// ErrSessionEnded is why a call of a [Relay] has no response after the end of the upstream
// session.
var ErrSessionEnded = errors.New("the session upstream has ended")

// A Relayer opens an upstream session for the session of a legacy client, in which every
// message is forwarded unchanged.
type Relayer interface {
	// OpenRelay opens an upstream session with m, the client's request initialize. Messages
	// that the server sends outside of calls go to c. answer is the text of the response
	// for the client.
	//
	// The relay is nil if the server returned an error, which is in answer. answer is nil,
	// too, if the server is of another era. An error that wraps [ErrStarting] means that
	// a later call may succeed soon.
	OpenRelay(ctx context.Context, req *Request, m *wire.Message, c RelayClient) (r Relay, answer []byte, err error)
}

// A Relay is the upstream session of one client. Its methods are safe for concurrent use.
// The caller must call Close.
type Relay interface {
	// Start begins to forward the messages that the server sends after its response to
	// initialize. Call it once, when the client has received that response, or can't
	// receive it.
	Start()
	// Call sends a request of the client. c receives the messages that belong to it, and
	// its response. Messages of one caller are sent in order, if the transport has an order.
	Call(m *wire.Message, c RelayedCall)
	// Send sends a notification or a response of the client. A cancellation ends its
	// call, whose RelayedCall gets [ErrCancelled]. If the server does not read its connection,
	// Send returns after a moment, later for notifications/initialized, and the message waits in the background, in order, until
	// Close. If too many wait, the error is one of [MayTryLater].
	Send(ctx context.Context, m *wire.Message) error
	// Await waits until the caller's next message may follow m, which was passed to Send;
	// sent is closed when Send has returned. It does not wait longer for a slow server
	// than the order requires, because the server may wait for the next message.
	Await(m *wire.Message, sent <-chan struct{})
	// Done is closed when the upstream session has ended for any reason, or Close was
	// called.
	Done() <-chan struct{}
	// Close ends the upstream session and its calls in the background.
	Close()
}

// ErrCancelled is why a call of a [Relay] ends that was cancelled by its client.
var ErrCancelled = errors.New("cancelled by the client")

// A RelayedCall receives what happens to one call, in order: messages, and then either the
// response or an error. It owns the texts.
type RelayedCall interface {
	// Identity is the sender of the call; nil if it is anonymous.
	Identity() *Identity
	// Arrival says how the call arrived, as [Sender] does.
	Arrival() *trace.Arrival
	// Trace is told what happens to the call; nil while nobody observes. Whoever receives
	// the end of the call ends it.
	Trace() *trace.Request
	// Message receives a message that the server sends during the call. It may wait for a
	// slow client.
	Message(ctx context.Context, text []byte) error
	// Answer receives the response. failed is its error, ErrToolFailed for the result of
	// a tool with isError, and nil for every other result.
	Answer(text []byte, failed error)
	// Lost receives why there is no response: ErrCancelled, an error that wraps
	// ErrSessionEnded, or an error for the client.
	Lost(err error)
}

// A RelayClient receives what a server sends outside of calls.
type RelayClient interface {
	// Message receives one message, in order. anyway says that the message is a request, or
	// the cancellation of one, from a server whose transport has no streams: it may be
	// sent on the stream of a call. Message may wait for a slow client.
	Message(ctx context.Context, text []byte, anyway bool) error
	// Rest returns for how long the client has had neither an open stream nor a call in
	// its session; ok is false if it has. It may have left without ending the session. begun is
	// false as long as it has sent nothing but its handshake.
	Rest() (d time.Duration, begun, ok bool)
	// Retire ends the session for the client, whose next message then finds none, and reports that it
	// has ended. If the client has come back, and so has not rested for least, it reports false, and
	// the session goes on. It is called with a lock, and waits for nothing.
	Retire(least time.Duration) bool
}
