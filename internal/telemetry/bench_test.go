package telemetry

import (
	"context"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"

	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/trace"
)

// A sink encodes what is exported, and drops it.
type sink struct{ collector }

func (*sink) UploadTraces(_ context.Context, spans []*tracepb.ResourceSpans) error {
	_, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	return err
}

// A call with one request to a server, exports included.
func BenchmarkCall(b *testing.B) {
	for _, tt := range []struct {
		name  string
		bound uint64
	}{{"unsampled", 0}, {"sampled", 1 << 63}} {
		b.Run(tt.name, func(b *testing.B) {
			limits, err := newBatchLimits()
			if err != nil {
				b.Fatal(err)
			}
			limits.queue = 1 << 30
			t := &Tracer{secrets: redact.New("a-token-of-some-length"), contexts: true, baggage: true, sampler: sampler{bound: tt.bound}}
			t.batch = newBatch(&sink{}, limits, &resourcepb.Resource{}, "v1", newLosses(Options{}))
			defer func() { _ = t.Shutdown(context.Background()) }()
			o := trace.New(t)
			i := call(trace.Context{}, &trace.Arrival{Protocol: "http", Version: "1.1", Peer: "127.0.0.1:4711"})
			b.ReportAllocs()
			for b.Loop() {
				r := o.Begin(i)
				x := r.Upstream(trace.Exchange{Server: "docs", Method: "tools/call", Era: "legacy", Revision: "2025-11-25", ID: 7, Protocol: "http", Address: "127.0.0.1:8080"})
				x.End(nil)
				r.Note("ok", nil)
				r.End(nil)
			}
		})
	}
}
