package mcp

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A Verdict says of which era a server is, by its answers to a probe.
type Verdict struct {
	// Era is spec.Unknown if the answers are no evidence: asking again may bring some.
	Era spec.Era
	// Reason is what the server did, for people.
	Reason string
	// Inconclusive says that a server is there, to which another question may
	// bring evidence: it failed at this one, or kept silent. What it said was not
	// about credentials or load.
	Inconclusive bool
	// Starting says of a server that did not answer that it has not read the question.
	Starting bool
	// Status is the HTTP status that the server answered with instead of a message, or
	// of a WebSocket; else zero.
	Status int
	// Cause is what came instead of an answer, context.DeadlineExceeded if nothing did;
	// nil if the server answered.
	Cause error

	// Revisions are those that the server named, as it named them.
	Revisions []spec.Revision
	// Description is the server's account of itself, its capabilities as it wrote
	// them; nil if it gave none.
	Description *Description
	// Unasked says that there is a way for what a legacy server sends unasked.
	Unasked bool
	// Older says that it is reached over HTTP+SSE, the transport of 2024-11-05.
	Older bool
	// Lists are what the server lists, if that was asked for.
	Lists []Listing

	// Took is the time from the first question to the verdict; the lists are not in
	// it. Steps are the questions, in order.
	Took  time.Duration
	Steps []Step
}

// A Step is one question to a server, asked to find out what it is.
type Step struct {
	Sent   string        // the method, and what matters of the rest
	Answer string        // in short, or what came instead of one
	Means  string        // what it says of the server
	Took   time.Duration // from the question to the answer
}

// Probing says how to probe. The zero value asks only what the verdict takes, and
// tells nobody.
type Probing struct {
	// Lists says to ask for tools, prompts and resources, too, once the era is known.
	Lists bool
	// Begin, which may be nil, hears of each step before it is taken.
	Begin func(sent string)
	// Silence, which may be nil, returns true when the server has been silent for so
	// long that it will not answer, and false when ctx ends.
	Silence func(ctx context.Context) bool
}

// ErrSilent is why a question ends that [Probing.Silence] gives up on.
var ErrSilent = errors.New("it has read the request and is silent")

// Await returns a context for a question, which ends with ErrSilent when Silence says so.
// Whoever has an answer calls done.
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

// Take takes one step of a probe and returns it. ask returns what came, and what
// that means.
func (p Probing) Take(sent string, ask func() (answer, means string)) Step {
	if p.Begin != nil {
		p.Begin(sent)
	}
	begun := time.Now()
	answer, means := ask()
	return Step{Sent: sent, Answer: answer, Means: means, Took: time.Since(begun)}
}
