package client

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// A RefusedError is the cause with which a context of [Printer.Follow] ends if the server
// can't be reached again.
type RefusedError struct {
	Server string
	Err    error
	Step   string // what to do
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s can't be reached again: %v; %s", e.Server, e.Err, e.Step)
}

// A Reconnects says why a connection that was lost can't be opened again, and ends what
// follows the server if that won't change by itself.
type Reconnects struct {
	Server string // as a person named it
	Out    io.Writer
	Cancel context.CancelCauseFunc

	// mu guards the fields below.
	mu   sync.Mutex
	was  bool   // there was a connection
	last string // why the last attempt failed; empty if it did not
}

// Dialed takes the outcome of an attempt. Who waits for the first is told of it otherwise.
func (r *Reconnects) Dialed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.last
	if r.last = ""; err == nil {
		r.was = true
		return
	}
	r.last = err.Error()
	switch {
	case !r.was:
	case transport.IsRefusedCertificate(err):
		r.Cancel(&RefusedError{Server: r.Server, Err: err, Step: transport.Advice(err)})
	case r.last != last:
		_, _ = output.Printf(r.Out, "mcpbridge: %s can't be reached: %v; trying again\n", r.Server, err) // nobody hears of it otherwise
	}
}
