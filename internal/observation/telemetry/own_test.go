package telemetry

import (
	"errors"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A request of the gateway's own is a trace with one span, the client's, whose context the
// server gets.
func TestOwnSpans(t *testing.T) {
	o, spans := newTracer(t, "the-secret")
	x := o.Own(trace.Exchange{Server: "docs", Method: "initialize", Era: "legacy", ID: 7, Protocol: "http", Address: "docs.example.com:8080"})
	y := o.Own(trace.Exchange{Server: "docs", Method: "server/discover", Era: "modern"})
	y.End(wire.Errorf(-32601, "no such method, the-secret"))
	x.End(nil)
	ended := spans.spans(t)
	if len(ended) != 2 {
		t.Fatalf("%d spans, want 2", len(ended))
	}
	failed, ok := ended[0], ended[1]
	if ok.Name != "initialize" || ok.Kind != tracepb.Span_SPAN_KIND_CLIENT || len(ok.ParentSpanId) != 0 || len(ok.TraceId) != 16 || ok.Flags != 0x101 || len(ok.Links)+len(ok.Events) != 0 {
		t.Errorf("span %v", ok)
	}
	if want := "00-" + digits(ok.TraceId) + "-" + digits(ok.SpanId) + "-01"; x.Context.Traceparent != want {
		t.Errorf("the server gets %q, want %q", x.Context.Traceparent, want)
	}
	got := attributes(ok.Attributes)
	for name, want := range map[string]string{"mcp.method.name": "initialize", "mcpbridge.server": "docs", "mcpbridge.era": "legacy", "jsonrpc.request.id": "7", "server.address": "docs.example.com", "server.port": "8080"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if failed.Name != "server/discover" || digits(failed.TraceId) == digits(ok.TraceId) || failed.Status.Code != tracepb.Status_STATUS_CODE_ERROR || attributes(failed.Attributes)["error.type"] != "-32601" || failed.Status.Message != "no such method, [hidden]" {
		t.Errorf("span of a failure %v", failed)
	}
}

// The sampler decides on requests of the gateway's own; without the Tracer nothing is told.
func TestOwnSpansAreSampled(t *testing.T) {
	o, spans := newTracer(t)
	spans.tr.sampler = sampler{true, 0}
	if x := o.Own(trace.Exchange{Server: "docs", Method: "initialize"}); x != nil {
		t.Errorf("a request that is not sampled is told of: %v", x)
	}
	for _, none := range []*trace.Observers{nil, trace.New()} {
		x := none.Own(trace.Exchange{Server: "docs", Method: "initialize"})
		if x.End(errors.New("no")); x != nil {
			t.Error("a request is told of to nobody")
		}
	}
	if n := len(spans.spans(t)); n != 0 {
		t.Errorf("%d spans", n)
	}
}

// Who is not told of the gateway's own requests costs them no memory.
func BenchmarkOwnUnobserved(b *testing.B) {
	o := trace.New()
	b.ReportAllocs()
	for b.Loop() {
		o.Own(trace.Exchange{Server: "docs", Method: "initialize"}).End(nil)
	}
}
