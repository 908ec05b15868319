package telemetry

import "github.com/mcpbridge/mcpbridge/internal/observation/trace"

// BeginOwn implements [trace.OwnObserver]: a request of the gateway's own is a trace of its
// own, whose first span is the client's.
func (t *Tracer) BeginOwn(r *trace.Request) trace.Record {
	span := spanContext{trace: newTrace()} // without the id of a parent
	if span.sampled = t.sampler.samples(span.trace, &spanContext{}); !span.sampled {
		return nil
	}
	return &record{carrier: carrier{t: t, span: span}, method: t.text(r.Method)}
}
