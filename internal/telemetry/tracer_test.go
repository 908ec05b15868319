package telemetry

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/trace"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	fromMeta    = "00-" + clientTrace + "-00f067aa0ba902b7-01"
	fromHTTP    = "00-5bf92f3577b34da6a3ce929d0e0e4736-10f067aa0ba902b7-01"
)

// newTracer returns a Tracer, its observers, and what it has recorded.
func newTracer(t *testing.T, secrets ...string) (*trace.Observers, *tracetest.SpanRecorder) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	tr := &Tracer{secrets: redact.New(secrets...), contexts: true, baggage: true}
	tr.use(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), "v1")
	t.Cleanup(func() { _ = tr.Shutdown(context.Background()) })
	return trace.New(tr), spans
}

// attributes returns those of a span as text.
func attributes(all []attribute.KeyValue) map[string]string {
	out := make(map[string]string)
	for _, kv := range all {
		out[string(kv.Key)] = kv.Value.Emit()
	}
	return out
}

func call(context trace.Context, a *trace.Arrival) trace.Info {
	return trace.Info{
		Server: "docs", Method: "tools/call", Name: "echo", Era: "modern", Revision: "2026-07-28", ID: `"c-1"`,
		Principal: "ada", ClientInfo: []byte(`{"name":"ide","version":"2"}`), Arrival: a, Context: context,
	}
}

func TestSpansOfACall(t *testing.T) {
	o, spans := newTracer(t)
	r := o.Begin(call(trace.Context{Traceparent: fromMeta, Tracestate: "a=1", Baggage: "k=v"},
		&trace.Arrival{Protocol: "http", Version: "1.1", Peer: "10.0.0.7:4711", Context: trace.Context{Traceparent: fromHTTP}}))
	x := r.Upstream(trace.Exchange{Server: "docs", Method: "tools/call", Era: "legacy", Revision: "2025-11-25", ID: 7, Protocol: "http", Address: "docs.example.com:8080"})
	r.Event(trace.InputRequired, "elicitation/create")
	x.End(nil)
	r.Note("ok", nil)
	r.End(nil)
	ended := spans.Ended()
	if len(ended) != 2 {
		t.Fatalf("%d spans, want 2", len(ended))
	}
	client, server := ended[0], ended[1]
	if server.Name() != "tools/call echo" || server.SpanKind() != oteltrace.SpanKindServer || server.Parent().SpanID().String() != "00f067aa0ba902b7" || server.SpanContext().TraceID().String() != clientTrace {
		t.Errorf("server span %s %v, parent %v", server.Name(), server.SpanKind(), server.Parent())
	}
	if client.Name() != "tools/call echo" || client.SpanKind() != oteltrace.SpanKindClient || client.Parent().SpanID() != server.SpanContext().SpanID() {
		t.Errorf("client span %s %v, parent %v", client.Name(), client.SpanKind(), client.Parent())
	}
	if links := server.Links(); len(links) != 1 || links[0].SpanContext.SpanID().String() != "10f067aa0ba902b7" {
		t.Errorf("links %v, want the context of the HTTP request", links)
	}
	if events := server.Events(); len(events) != 1 || events[0].Name != "mcpbridge.input_required" || attributes(events[0].Attributes)["mcpbridge.input.method"] != "elicitation/create" {
		t.Errorf("events %v", events)
	}
	want := map[string]string{
		"mcp.method.name": "tools/call", "mcp.protocol.version": "2026-07-28", "gen_ai.tool.name": "echo", "gen_ai.operation.name": "execute_tool",
		"jsonrpc.request.id": "c-1", "network.transport": "tcp", "network.protocol.name": "http", "network.protocol.version": "1.1",
		"client.address": "10.0.0.7", "client.port": "4711", "enduser.id": "ada",
		"mcpbridge.server": "docs", "mcpbridge.era": "modern", "mcpbridge.client": "ide/2", "mcpbridge.outcome": "ok", "mcpbridge.request.id": r.RequestID(),
	}
	if got := attributes(server.Attributes()); !maps.Equal(got, want) {
		t.Errorf("attributes of the server span:\n%v\nwant\n%v", got, want)
	}
	want = map[string]string{
		"mcp.method.name": "tools/call", "mcp.protocol.version": "2025-11-25", "gen_ai.tool.name": "echo", "gen_ai.operation.name": "execute_tool",
		"jsonrpc.request.id": "7", "network.transport": "tcp", "network.protocol.name": "http",
		"server.address": "docs.example.com", "server.port": "8080", "mcpbridge.server": "docs", "mcpbridge.era": "legacy",
	}
	if got := attributes(client.Attributes()); !maps.Equal(got, want) {
		t.Errorf("attributes of the client span:\n%v\nwant\n%v", got, want)
	}
	wantContext := trace.Context{Traceparent: "00-" + clientTrace + "-" + client.SpanContext().SpanID().String() + "-01", Tracestate: "a=1", Baggage: "k=v"}
	if x.Context != wantContext {
		t.Errorf("the server gets %+v, want %+v", x.Context, wantContext)
	}
	if r.TraceID() != clientTrace {
		t.Errorf("trace id %q", r.TraceID())
	}
}

func TestParent(t *testing.T) {
	for _, tt := range []struct {
		name           string
		meta, ambient  string
		parent, linked string
	}{
		{"neither", "", "", "", ""},
		{"the message's", fromMeta, "", "00f067aa0ba902b7", ""},
		{"the HTTP request's", "", fromHTTP, "10f067aa0ba902b7", ""},
		{"both", fromMeta, fromHTTP, "00f067aa0ba902b7", "10f067aa0ba902b7"},
		{"an invalid one and the HTTP request's", "00-zz-1-01", fromHTTP, "10f067aa0ba902b7", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, spans := newTracer(t)
			o.Begin(call(trace.Context{Traceparent: tt.meta}, &trace.Arrival{Context: trace.Context{Traceparent: tt.ambient}})).End(nil)
			span, parent, linked := spans.Ended()[0], "", ""
			if p := span.Parent(); p.IsValid() {
				parent = p.SpanID().String()
			}
			for _, l := range span.Links() {
				linked += l.SpanContext.SpanID().String()
			}
			if parent != tt.parent || linked != tt.linked {
				t.Errorf("parent %q, links %q; want %q and %q", parent, linked, tt.parent, tt.linked)
			}
		})
	}
}

// A retry, of the client's or the gateway's, is linked to what it repeats.
func TestRetriesAreLinked(t *testing.T) {
	o, spans := newTracer(t)
	r := o.Begin(call(trace.Context{}, nil))
	first := r.Upstream(trace.Exchange{Method: "tools/call"})
	first.End(errors.New("lost"))
	r.Event(trace.Repeated, "lost")
	second := r.Upstream(trace.Exchange{Method: "tools/call"})
	r.Note("input_required", nil)
	r.End(nil)
	retry := o.Begin(call(trace.Context{}, nil))
	r.Continue(retry)
	second.End(nil)
	retry.End(nil)
	var links []string
	names := map[oteltrace.SpanID]string{}
	for i, s := range spans.Started() {
		names[s.SpanContext().SpanID()] = []string{"call", "first", "second", "retry"}[i]
	}
	for _, s := range spans.Ended() {
		for _, l := range s.Links() {
			links = append(links, names[s.SpanContext().SpanID()]+" → "+names[l.SpanContext.SpanID()])
		}
	}
	if want := []string{"retry → call", "second → first"}; !slices.Equal(slices.Sorted(slices.Values(links)), want) {
		t.Errorf("links %v, want %v", links, want)
	}
}

func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		err                       error
		errorType, code, describe string
	}{
		{mcp.ErrToolFailed, "tool_error", "", ""},
		{wire.Errorf(-32602, "no such tool"), "-32602", "-32602", "no such tool"},
		{mcp.ErrCancelled, "cancelled", "", "cancelled by the client"},
		{errors.New("connection reset, secret-token-1"), "_OTHER", "", "connection reset, [hidden]"},
	} {
		o, spans := newTracer(t, "secret-token-1")
		r := o.Begin(call(trace.Context{}, nil))
		x := r.Upstream(trace.Exchange{Method: "tools/call"})
		x.End(tt.err)
		r.Note("failed", tt.err)
		r.End(nil)
		for _, s := range spans.Ended() {
			got := attributes(s.Attributes())
			if got["error.type"] != tt.errorType || got["rpc.response.status_code"] != tt.code || s.Status().Description != tt.describe || s.Status().Code.String() != "Error" {
				t.Errorf("%v: %v, status %v", tt.err, got, s.Status())
			}
		}
	}
}

// No secret of the configuration gets into a span, whichever text has it; and no text is
// longer than it may be.
func TestSpansHaveNoSecrets(t *testing.T) {
	const secret = "hunter2-hunter2"
	o, spans := newTracer(t, secret)
	i := call(trace.Context{}, nil)
	i.Name, i.ID, i.Principal, i.Session = "tool "+secret, `"`+secret+`"`, secret, "s"
	i.ClientInfo = []byte(`{"name":"` + secret + `"}`)
	r := o.Begin(i)
	r.Event(trace.Repeated, "because of "+secret)
	x := r.Upstream(trace.Exchange{Method: "tools/call"})
	x.End(errors.New(strings.Repeat("x", 5000) + secret))
	r.End(errors.New(secret))
	for _, s := range spans.Ended() {
		texts := []string{s.Name(), s.Status().Description}
		for _, kv := range s.Attributes() {
			texts = append(texts, kv.Value.Emit())
		}
		for _, e := range s.Events() {
			for _, kv := range e.Attributes {
				texts = append(texts, kv.Value.Emit())
			}
		}
		for _, text := range texts {
			if strings.Contains(text, secret) || len(text) > mostText+len("…") {
				t.Errorf("span %s has %q", s.Name(), text)
			}
		}
	}
}

// Baggage that can't be a header is not passed on.
func TestBaggageIsChecked(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"k=v,l=w", "k=v,l=w"}, {"k=v\r\nX-Evil: 1", ""}, {strings.Repeat("k=v,", 9000), ""},
	} {
		o, _ := newTracer(t)
		r := o.Begin(call(trace.Context{Baggage: tt.in}, nil))
		if x := r.Upstream(trace.Exchange{}); x.Context.Baggage != tt.want {
			t.Errorf("baggage %.20q is passed on as %.20q", tt.in, x.Context.Baggage)
		}
	}
}
