package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/trace"
)

// scope is the name of the instrumentation.
const scope = "github.com/mcpbridge/mcpbridge"

// A Tracer is an [trace.Observer] that makes spans. The owner calls Shutdown.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   oteltrace.Tracer
	carries  propagation.TraceContext
	secrets  *redact.Redactor
	contexts bool // trace contexts are read and sent
	baggage  bool // baggage is
	exports  *exports
}

// Begin implements [trace.Observer].
func (t *Tracer) Begin(r *trace.Request) trace.Record {
	rec := &record{t: t, in: r.Context}
	ctx, ambient := t.parent(r)
	if r.Context.Baggage == "" && r.Arrival != nil {
		rec.in.Baggage = r.Arrival.Context.Baggage
	}
	options := [2]oteltrace.SpanStartOption{oteltrace.WithSpanKind(oteltrace.SpanKindServer)}
	n := 1
	if ambient.IsValid() {
		options[1] = oteltrace.WithLinks(oteltrace.Link{SpanContext: ambient})
		n++
	}
	rec.ctx, rec.span = t.tracer.Start(ctx, spanName(r.Method, t.target(r)), options[:n]...)
	if rec.span.IsRecording() {
		rec.span.SetAttributes(t.requestAttributes(r)...)
		r.SetTraceID(rec.span.SpanContext().TraceID().String())
	}
	return rec
}

// parent returns a context with the parent of a request's span: that of the message or, if
// it has none, that of the HTTP request. ambient is the latter, to be linked, if both are
// there: one message may take several HTTP requests, which have contexts of their own.
//
// Spec: OpenTelemetry semantic conventions for MCP, Context propagation.
func (t *Tracer) parent(r *trace.Request) (ctx context.Context, ambient oteltrace.SpanContext) {
	ctx = context.Background()
	if !t.contexts {
		return ctx, ambient
	}
	own := t.extract(r.Context)
	if r.Arrival != nil {
		ambient = t.extract(r.Arrival.Context)
	}
	switch {
	case own.IsValid():
		return oteltrace.ContextWithRemoteSpanContext(ctx, own), ambient
	case ambient.IsValid():
		return oteltrace.ContextWithRemoteSpanContext(ctx, ambient), oteltrace.SpanContext{}
	}
	return ctx, ambient
}

func (t *Tracer) extract(c trace.Context) oteltrace.SpanContext {
	if c.Traceparent == "" {
		return oteltrace.SpanContext{}
	}
	return oteltrace.SpanContextFromContext(t.carries.Extract(context.Background(), &carrier{c}))
}

// Flush exports what waits. ctx bounds it.
func (t *Tracer) Flush(ctx context.Context) error { return t.provider.ForceFlush(ctx) }

// Shutdown exports what waits, and ends the Tracer. ctx bounds it.
func (t *Tracer) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// A carrier is a [trace.Context] as propagators read and write it.
type carrier struct{ trace.Context }

// Get implements [propagation.TextMapCarrier].
func (c *carrier) Get(key string) string {
	switch key {
	case trace.Traceparent:
		return c.Traceparent
	case trace.Tracestate:
		return c.Tracestate
	}
	return ""
}

// Set implements [propagation.TextMapCarrier].
func (c *carrier) Set(key, value string) {
	switch key {
	case trace.Traceparent:
		c.Traceparent = value
	case trace.Tracestate:
		c.Tracestate = value
	}
}

// Keys implements [propagation.TextMapCarrier].
func (c *carrier) Keys() []string { return []string{trace.Traceparent, trace.Tracestate} }
