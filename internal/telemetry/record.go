package telemetry

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/mcpbridge/mcpbridge/internal/trace"
)

// A record has the spans of one request.
type record struct {
	t    *Tracer
	in   trace.Context   // the client's
	ctx  context.Context // with span; a record is made and ends with its request
	span oteltrace.Span

	// mu guards open, and is held for a few instructions.
	mu   sync.Mutex
	open []upstreamSpan
}

// An upstreamSpan is the span of an exchange.
type upstreamSpan struct {
	x    *trace.Exchange
	span oteltrace.Span
}

// Upstream implements [trace.Record]: it begins a span, whose context the server gets.
func (r *record) Upstream(x *trace.Exchange) {
	_, span := r.t.tracer.Start(r.ctx, spanName(x.Method, r.t.targetOf(x)), clientKind)
	if span.IsRecording() {
		span.SetAttributes(r.t.exchangeAttributes(x)...)
		if x.Former != nil {
			span.AddLink(oteltrace.Link{SpanContext: r.t.extract(x.Former.Context), Attributes: []attribute.KeyValue{linkRetry}})
		}
	}
	if r.t.contexts {
		var c carrier
		r.t.carries.Inject(oteltrace.ContextWithSpan(context.Background(), span), &c)
		x.Context = c.Context
	} else {
		x.Context.Traceparent, x.Context.Tracestate = r.in.Traceparent, r.in.Tracestate
	}
	x.Context.Baggage = r.baggage()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = append(r.open, upstreamSpan{x, span})
}

// clientKind is allocated once.
var clientKind = oteltrace.WithSpanKind(oteltrace.SpanKindClient)

// baggage returns the client's, unless it is not for passing on: it becomes a header.
func (r *record) baggage() string {
	if r.in.Baggage == "" || !r.t.baggage {
		return ""
	}
	if _, err := baggage.Parse(r.in.Baggage); err != nil {
		return ""
	}
	return r.in.Baggage
}

// Answered implements [trace.Record].
func (r *record) Answered(x *trace.Exchange) {
	span := r.take(x)
	if span == nil {
		return
	}
	_, err := x.Outcome()
	r.t.fail(span, err)
	span.End()
}

// take removes the span of x, and returns it.
func (r *record) take(x *trace.Exchange) oteltrace.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, o := range r.open {
		if o.x == x {
			r.open = append(r.open[:i], r.open[i+1:]...)
			return o.span
		}
	}
	return nil
}

// Event implements [trace.Record].
func (r *record) Event(e trace.Event) {
	if !r.span.IsRecording() {
		return
	}
	options := []oteltrace.EventOption{oteltrace.WithTimestamp(e.At)}
	if key := detailKeys[e.Kind]; key != "" && e.Detail != "" {
		options = append(options, oteltrace.WithAttributes(key.String(r.t.text(e.Detail))))
	}
	r.span.AddEvent("mcpbridge."+e.Kind.String(), options...)
}

// Follows implements [trace.Record]: it links the call that the request brings input to.
func (r *record) Follows(former trace.Record) {
	if f, ok := former.(*record); ok && r.span.IsRecording() {
		r.span.AddLink(oteltrace.Link{SpanContext: f.span.SpanContext(), Attributes: []attribute.KeyValue{linkRetry}})
	}
}

// End implements [trace.Record].
func (r *record) End(req *trace.Request) {
	if r.span.IsRecording() {
		outcome, _, err := req.Outcome()
		r.span.SetAttributes(attrOutcome.String(outcome))
		r.t.fail(r.span, err)
	}
	r.span.End()
}
