package telemetry

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// scope is the name of the instrumentation.
const scope = "github.com/mcpbridge/mcpbridge"

// A Tracer is a [trace.Observer] that makes spans. The owner calls Shutdown.
type Tracer struct {
	secrets  *redact.Redactor
	sampler  sampler
	contexts bool // trace contexts are read and sent
	baggage  bool // baggage is
	batch    *batch
	kinds    kinds
	clients  mcp.ClientNames
}

// Begin implements [trace.Observer].
func (t *Tracer) Begin(r *trace.Request) trace.Record {
	var parent, ambient spanContext
	if t.contexts {
		parent, ambient = parents(r)
	}
	span := spanContext{trace: parent.trace, span: newID(), state: parent.state}
	if !parent.isValid() {
		span.trace, span.state = newTrace(), ""
	}
	span.sampled = t.sampler.samples(span.trace, &parent)
	baggage := r.Context.Baggage
	if baggage == "" && r.Arrival != nil {
		baggage = r.Arrival.Context.Baggage
	}
	if !span.sampled {
		return &unsampled{carrier{t, span, baggage}}
	}
	r.SetTraceID(span.traceID())
	rec := &record{carrier: carrier{t, span, baggage}, parent: parent.span, method: t.text(r.Method), name: t.text(r.Subject())}
	if ambient.isValid() {
		rec.links = append(rec.links, link{to: ambient})
	}
	return rec
}

// parents returns the parent of a request's span: that of the message or, if it has none,
// that of the HTTP request. ambient is the latter, to be linked, if both are there: one
// message may take several HTTP requests, which have contexts of their own.
//
// Spec: OpenTelemetry semantic conventions for MCP, Context propagation.
func parents(r *trace.Request) (parent, ambient spanContext) {
	parent = parse(r.Context)
	if r.Arrival != nil {
		ambient = parse(r.Arrival.Context)
	}
	if !parent.isValid() {
		return ambient, spanContext{}
	}
	return parent, ambient
}

// Flush exports what waits. ctx bounds it.
func (t *Tracer) Flush(ctx context.Context) error { return t.batch.flush(ctx) }

// Shutdown exports what waits, and ends the Tracer. ctx bounds it.
func (t *Tracer) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.batch.close(ctx)
}
