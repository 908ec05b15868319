package mcp

import (
	"context"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// ErrLinkEnded is why a call of a [Link] has no answer once the session upstream has
// ended.
var ErrLinkEnded = errors.New("the session upstream has ended")

// ErrFull says that a [Linker] has no room for another session.
var ErrFull = errors.New("no room for another session upstream")

// A Linker gives the session of a legacy client an upstream session of its own, under
// which every message passes as it was written.
type Linker interface {
	// Link has the client's request initialize, m, open a session upstream. What the
	// server sends unasked goes to h. answer is the response's text for the client.
	//
	// The link is nil if the server refused, which is in answer then; and answer is
	// nil too if the upstream is of another era, whose sessions can't be linked. An
	// error that wraps [ErrStarting] says that asking again will soon be worth it, and
	// one that wraps [ErrFull] that it will be once another link was closed.
	Link(ctx context.Context, req *Request, m *wire.Message, h Hearer) (l Link, answer []byte, err error)
}

// A Link is the upstream session of one client. Its methods are safe for concurrent
// use. Whoever gets one calls Close.
type Link interface {
	// Start lets pass what the server sends after its answer to initialize. It is
	// called once the client has that answer, or can't get it any more.
	Start()
	// Call sends a request of the client. o hears of it until its end. Messages of
	// one caller leave in the order of its calls, as far as the way upstream has one.
	Call(m *wire.Message, o Outcome)
	// Send sends a notification or a response of the client. A cancellation ends the
	// call that it names: its Outcome hears of that with [ErrCancelled].
	Send(ctx context.Context, m *wire.Message) error
	// Await returns when the caller's next message may follow m, which is with Send:
	// sent is closed once that has returned. Where the order allows, a server that
	// takes its time is not waited for, since it may wait for what comes next.
	Await(m *wire.Message, sent <-chan struct{})
	// Done is closed when the session has ended upstream, of whatever cause, or
	// Close was called.
	Done() <-chan struct{}
	// Close ends the session upstream in the background, and the calls under it.
	Close()
}

// ErrCancelled is why a call of a [Link] ends that its client cancelled.
var ErrCancelled = errors.New("cancelled by the client")

// An Outcome hears of one call, in order: messages, then either the answer or that
// there will be none. Texts are its own.
type Outcome interface {
	// Message takes what the server sends under the call. It may wait for a slow
	// client.
	Message(ctx context.Context, text []byte) error
	// Answer takes the response. failed is its error, ErrToolFailed for the result of a
	// tool that says that it failed, and nil for every other result.
	Answer(text []byte, failed error)
	// Lost says why there will be no response: ErrCancelled, one that wraps
	// ErrLinkEnded, or what a client can be told.
	Lost(err error)
}

// A Hearer takes what a server sends outside of calls.
type Hearer interface {
	// Hear takes one message, in order. anyway says that it is a question, or takes one
	// back, of a server that had no choice of streams: it may go on that of a call. Hear
	// may wait for a slow client.
	Hear(ctx context.Context, text []byte, anyway bool) error
	// Idle reports whether the client has nothing open in its session, neither a stream
	// nor a call: it may have left without a word.
	Idle() bool
}
