package telemetry

import (
	"context"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"

	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// A sink encodes what is exported, and drops it.
type sink struct{ collector }

func (*sink) UploadTraces(_ context.Context, spans []*tracepb.ResourceSpans) error {
	_, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	return err
}

// discarding returns a Tracer that exports to a sink, and records traces below a bound.
func discarding(b testing.TB, bound uint64) *Tracer {
	limits, err := newBatchLimits()
	if err != nil {
		b.Fatal(err)
	}
	limits.queue = 1 << 30
	t := &Tracer{secrets: redact.New("a-token-of-some-length"), contexts: true, baggage: true, sampler: sampler{bound: bound}}
	t.batch = newBatch(&sink{}, limits, &resourcepb.Resource{}, "v1", newLosses(Options{}))
	b.Cleanup(func() { _ = t.Shutdown(context.Background()) })
	return t
}

// serve has a call with one request to a server observed.
func serve(o *trace.Observers, i trace.Info) {
	i.Arrival = o.Arrive(trace.Arrival{Protocol: "http", Version: "1.1", Peer: "127.0.0.1:4711"})
	r := o.Begin(i)
	x := r.Upstream(trace.Exchange{Server: "docs", Method: "tools/call", Era: "legacy", Revision: "2025-11-25", ID: 7, Protocol: "http", Address: "127.0.0.1:8080"})
	x.End(nil)
	r.Note("ok", nil)
	r.End(nil)
}

// levels are who is recorded, by the bounds of samplers, and what a call allocates at most.
var levels = []struct {
	name   string
	bound  uint64
	allocs float64
}{
	{"unsampled", 0, 3},     // the request with its arrival, the record, the context for the server
	{"sampled", 1 << 63, 5}, // the id of the trace as well, and that of the request without quotes
}

// A call, exports included.
func BenchmarkCall(b *testing.B) {
	for _, tt := range levels {
		b.Run(tt.name, func(b *testing.B) {
			o, i := trace.New(discarding(b, tt.bound)), call(trace.Context{}, nil)
			b.ReportAllocs()
			for b.Loop() {
				serve(o, i)
			}
		})
	}
}

func TestAllocations(t *testing.T) {
	pools := testing.AllocsPerRun(1000, func() { // the race detector has pools forget some of what they are given
		for range 4 {
			buffers.Put(buffers.Get())
		}
	})
	for _, tt := range levels {
		o, i := trace.New(discarding(t, tt.bound)), call(trace.Context{}, nil)
		if got := testing.AllocsPerRun(1000, func() { serve(o, i) }); got > tt.allocs+pools {
			t.Errorf("%s: %v allocations for a call, want at most %v", tt.name, got, tt.allocs)
		}
	}
}
