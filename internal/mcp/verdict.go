package mcp

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A Verdict is the result of a probe: the era of a server, and why.
type Verdict struct {
	// Era is spec.Unknown if the responses do not show it. Another probe may.
	Era spec.Era
	// Reason is a text for people: what the server did.
	Reason string
	// Inconclusive says that a server is reachable, and that another request may show its
	// era: it responded with an error that is not about credentials or load, or did not
	// respond. A legacy server with it has opened a session, or is connected, and may be
	// modern, too.
	Inconclusive bool
	// Starting says that the server did not respond, and has not read the request.
	Starting bool
	// Status is the HTTP status of a response without a message, or without a WebSocket;
	// else zero.
	Status int
	// Cause is why there was no response, context.DeadlineExceeded for a time-out; nil if
	// the server responded.
	Cause error

	// Revisions are those that the server sent, unchanged.
	Revisions []spec.Revision
	// Description is the server's description of itself, with its capabilities unchanged;
	// nil if it gave none.
	Description *Description
	// Unasked says that a legacy server can send messages outside of calls.
	Unasked bool
	// Older says that the transport is HTTP+SSE, that of 2024-11-05.
	Older bool
	// Lists are the server's lists, if Probing.Lists is set.
	Lists []Listing

	// Took is the time from the first request to the verdict, without the lists. Steps
	// are the requests, in order.
	Took  time.Duration
	Steps []Step
}

// A Step is one request of a probe.
type Step struct {
	Sent   string        // the method, and the important part of the rest
	Answer string        // in short, or why there is none
	Means  string        // what it shows about the server
	Took   time.Duration // from the request to the response
}

// Probing are the options of a probe. The zero value sends only the requests that the
// verdict needs.
type Probing struct {
	// Lists says that tools, prompts and resources are listed, too, once the era is
	// known.
	Lists bool
	// Begin, which may be nil, is called before each step.
	Begin func(sent string)
	// Silence, which may be nil, waits until the server has sent nothing for so long that
	// it will not respond, and returns true then. It returns false when ctx ends.
	Silence func(ctx context.Context) bool
}

// ErrSilent is the cause of the end of a request when [Probing.Silence] returns true.
var ErrSilent = errors.New("it has read the request and is silent")

// Await returns a context for a request, which ends with ErrSilent when Silence returns
// true. Call done after the response.
func (p Probing) Await(ctx context.Context) (question context.Context, done func()) {
	question, cancel := context.WithCancelCause(ctx)
	if p.Silence == nil {
		return question, func() { cancel(nil) }
	}
	var watching sync.WaitGroup
	watching.Go(func() { // ends with question
		if p.Silence(question) {
			cancel(ErrSilent)
		}
	})
	return question, func() { cancel(nil); watching.Wait() }
}

// Take runs one step of a probe and returns it. ask returns the response in short, and
// its meaning.
func (p Probing) Take(sent string, ask func() (answer, means string)) Step {
	if p.Begin != nil {
		p.Begin(sent)
	}
	begun := time.Now()
	answer, means := ask()
	return Step{Sent: sent, Answer: answer, Means: means, Took: time.Since(begun)}
}
