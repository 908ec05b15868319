package telemetry

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
)

// A carrier passes the context of a trace on.
type carrier struct {
	t       *Tracer
	span    spanContext // the request's
	baggage string      // the client's
}

// Upstream implements [trace.Record]: the server gets the context of a span of its own.
func (c *carrier) Upstream(x *trace.Exchange) {
	x.Span = newID()
	if c.t.contexts {
		x.Context.Traceparent, x.Context.Tracestate = c.span.traceparent(x.Span), c.span.state
	} else {
		in := &x.Request().Context
		x.Context.Traceparent, x.Context.Tracestate = in.Traceparent, in.Tracestate
	}
	if c.t.baggage {
		x.Context.Baggage = checked(c.baggage)
	}
}

// An unsampled is what a request has that is not recorded. It is a [trace.Quiet] record.
type unsampled struct{ carrier }

// Quiet implements [trace.Quiet].
func (*unsampled) Quiet() {}

// Answered implements [trace.Record].
func (*unsampled) Answered(*trace.Exchange) {}

// Event implements [trace.Record].
func (*unsampled) Event(trace.Event) {}

// Follows implements [trace.Record].
func (*unsampled) Follows(trace.Record) {}

// End implements [trace.Record].
func (*unsampled) End(*trace.Request) {}

// newID returns the id of a new span, which is not zero.
func newID() (out id) {
	binary.BigEndian.PutUint64(out[:], rand.Uint64()|1)
	return out
}

// newTrace returns the id of a new trace, which is not zero.
func newTrace() (out [16]byte) {
	binary.BigEndian.PutUint64(out[:8], rand.Uint64())
	binary.BigEndian.PutUint64(out[8:], rand.Uint64()|1)
	return out
}
