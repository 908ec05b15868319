package upstream

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A tracing is an Observer and a record that gives each request a context.
type tracing struct {
	took time.Duration
	ends int
}

func (r *tracing) Begin(*trace.Request) trace.Record { return r }
func (r *tracing) Upstream(x *trace.Exchange) {
	x.Context = trace.Context{Traceparent: "00-own", Baggage: "k=v"}
}
func (r *tracing) Answered(x *trace.Exchange) { r.took, _ = x.Outcome(); r.ends++ }
func (*tracing) Event(trace.Event)            {}
func (*tracing) Follows(trace.Record)         {}
func (*tracing) End(*trace.Request)           {}

// A server gets the context of a call in place of one in the header, whoever sends the
// request, and the header, which the calls of a session share, stays as it is.
func TestContextOfACallIsSent(t *testing.T) {
	got := make(chan http.Header, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header }))
	defer server.Close()
	observer := &tracing{}
	req := trace.New(observer).Begin(trace.Info{Method: "tools/call"})
	for name, rt := range map[string]http.RoundTripper{"own": nil, "another": http.DefaultTransport} {
		o := &Options{Name: "s", URL: server.URL, RoundTripper: rt, Logger: slog.New(slog.DiscardHandler), Metrics: mcp.NoMetrics{}}
		o.Fill(spec.Legacy)
		h := NewHTTP(o, Reading{})
		header := http.Header{"Traceparent": {"00-configured"}, "X-Own": {"1"}}
		for _, to := range []*HTTP{h, h.At(h.URL())} {
			c := &Call{ID: 1, Method: "tools/call"}
			o.Observe(c, req, spec.Legacy, "2025-11-25")
			ctx, cancel := context.WithCancelCause(t.Context())
			c.Cancel = cancel
			r, err := to.Post(ctx, c, header, []byte("{}"))
			if err != nil {
				t.Fatal(err)
			}
			r.Discard()
			o.Ended(c, nil, mcp.ErrCancelled)
			cancel(nil)
			h := <-got
			if p := h["Traceparent"]; len(p) != 1 || p[0] != "00-own" || h.Get("Baggage") != "k=v" || h["Tracestate"] != nil || h.Get("X-Own") != "1" {
				t.Errorf("%s: the server got %v", name, h)
			}
			if len(header) != 2 || header.Get("Traceparent") != "00-configured" {
				t.Errorf("%s: the header of all calls is %v", name, header)
			}
		}
		h.Close()
	}
	if observer.ends != 4 || observer.took <= 0 {
		t.Errorf("%d exchanges have ended, the last after %v", observer.ends, observer.took)
	}
}
