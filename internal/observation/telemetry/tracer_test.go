package telemetry

import (
	"context"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	fromMeta    = "00-" + clientTrace + "-00f067aa0ba902b7-01"
	fromHTTP    = "00-5bf92f3577b34da6a3ce929d0e0e4736-10f067aa0ba902b7-01"
)

// A collector is the client of an exporter, which keeps what is exported.
type collector struct {
	mu   sync.Mutex
	all  []*tracepb.Span
	tr   *Tracer
	last *tracepb.ResourceSpans
}

func (c *collector) Start(context.Context) error { return nil }
func (c *collector) Stop(context.Context) error  { return nil }

// UploadTraces decodes what would be sent: spans are written by this package.
func (c *collector) UploadTraces(_ context.Context, spans []*tracepb.ResourceSpans) error {
	text, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	var data tracepb.TracesData
	if err == nil {
		err = proto.Unmarshal(text, &data)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range data.ResourceSpans {
		c.last = r
		for _, s := range r.ScopeSpans {
			if len(s.ProtoReflect().GetUnknown()) > 0 {
				return errors.New("not all is a span")
			}
			c.all = append(c.all, s.Spans...)
		}
	}
	return err
}

// spans returns those that have ended, in that order.
func (c *collector) spans(t *testing.T) []*tracepb.Span {
	t.Helper()
	if err := c.tr.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.all {
		if len(s.ProtoReflect().GetUnknown()) > 0 {
			t.Errorf("span %s has unknown fields", s.Name)
		}
	}
	return c.all
}

// newTracer returns a Tracer's observers, and what it exports to.
func newTracer(t *testing.T, secrets ...string) (*trace.Observers, *collector) {
	t.Helper()
	c := &collector{}
	c.tr = &Tracer{secrets: redact.New(secrets...), contexts: true, baggage: true, sampler: sampler{true, 1 << 63}}
	limits, err := newBatchLimits()
	if err != nil {
		t.Fatal(err)
	}
	c.tr.batch = newBatch(c, limits, &resourcepb.Resource{}, "v1", newLosses(Options{}))
	t.Cleanup(func() { _ = c.tr.Shutdown(context.Background()) })
	return trace.New(c.tr), c
}

// attributes returns those of a span as text.
func attributes(all []*commonpb.KeyValue) map[string]string {
	out := make(map[string]string)
	for _, kv := range all {
		out[kv.Key] = kv.Value.GetStringValue()
		if n := kv.Value.GetIntValue(); n != 0 {
			out[kv.Key] = strconv.FormatInt(n, 10)
		}
	}
	return out
}

func digits(b []byte) string { return hex.EncodeToString(b) }

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
	ended := spans.spans(t)
	if len(ended) != 2 {
		t.Fatalf("%d spans, want 2", len(ended))
	}
	client, server := ended[0], ended[1]
	if server.Name != "tools/call echo" || server.Kind != tracepb.Span_SPAN_KIND_SERVER || digits(server.ParentSpanId) != "00f067aa0ba902b7" || digits(server.TraceId) != clientTrace || server.TraceState != "a=1" || server.Flags != 0x301 {
		t.Errorf("server span %v", server)
	}
	if client.Name != "tools/call echo" || client.Kind != tracepb.Span_SPAN_KIND_CLIENT || digits(client.ParentSpanId) != digits(server.SpanId) || digits(client.TraceId) != clientTrace || client.Flags != 0x101 {
		t.Errorf("client span %v", client)
	}
	if server.StartTimeUnixNano > client.StartTimeUnixNano || client.EndTimeUnixNano > server.EndTimeUnixNano || client.StartTimeUnixNano > client.EndTimeUnixNano {
		t.Errorf("the client span is not within the server span: %v, %v", client, server)
	}
	if links := server.Links; len(links) != 1 || digits(links[0].SpanId) != "10f067aa0ba902b7" {
		t.Errorf("links %v, want the context of the HTTP request", links)
	}
	if events := server.Events; len(events) != 1 || events[0].Name != "mcpbridge.input_required" || attributes(events[0].Attributes)["mcpbridge.input.method"] != "elicitation/create" || events[0].TimeUnixNano < server.StartTimeUnixNano {
		t.Errorf("events %v", events)
	}
	want := map[string]string{
		"mcp.method.name": "tools/call", "mcp.protocol.version": "2026-07-28", "gen_ai.tool.name": "echo", "gen_ai.operation.name": "execute_tool",
		"jsonrpc.request.id": "c-1", "network.transport": "tcp", "network.protocol.name": "http", "network.protocol.version": "1.1",
		"client.address": "10.0.0.7", "client.port": "4711", "enduser.id": "ada",
		"mcpbridge.server": "docs", "mcpbridge.era": "modern", "mcpbridge.client": "ide/2", "mcpbridge.outcome": "ok", "mcpbridge.request.id": r.RequestID(),
	}
	if got := attributes(server.Attributes); !maps.Equal(got, want) {
		t.Errorf("attributes of the server span:\n%v\nwant\n%v", got, want)
	}
	want = map[string]string{
		"mcp.method.name": "tools/call", "mcp.protocol.version": "2025-11-25", "gen_ai.tool.name": "echo", "gen_ai.operation.name": "execute_tool",
		"jsonrpc.request.id": "7", "network.transport": "tcp", "network.protocol.name": "http",
		"server.address": "docs.example.com", "server.port": "8080", "mcpbridge.server": "docs", "mcpbridge.era": "legacy",
	}
	if got := attributes(client.Attributes); !maps.Equal(got, want) {
		t.Errorf("attributes of the client span:\n%v\nwant\n%v", got, want)
	}
	wantContext := trace.Context{Traceparent: "00-" + clientTrace + "-" + digits(client.SpanId) + "-01", Tracestate: "a=1", Baggage: "k=v"}
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
			span := spans.spans(t)[0]
			parent, linked := digits(span.ParentSpanId), ""
			for _, l := range span.Links {
				linked += digits(l.SpanId)
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
	all := spans.spans(t)
	names := map[string]string{}
	for i, s := range all {
		names[digits(s.SpanId)] = []string{"first", "call", "second", "retry"}[i]
	}
	for _, s := range all {
		for _, l := range s.Links {
			links = append(links, names[digits(s.SpanId)]+" → "+names[digits(l.SpanId)]+" "+attributes(l.Attributes)["mcpbridge.link"])
		}
	}
	if want := []string{"retry → call retry", "second → first retry"}; !slices.Equal(slices.Sorted(slices.Values(links)), want) {
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
		for _, s := range spans.spans(t) {
			got := attributes(s.Attributes)
			if got["error.type"] != tt.errorType || got["rpc.response.status_code"] != tt.code || s.Status.GetMessage() != tt.describe || s.Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR {
				t.Errorf("%v: %v, status %v", tt.err, got, s.Status)
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
	for _, s := range spans.spans(t) {
		texts := []string{s.Name, s.Status.GetMessage()}
		for _, kv := range s.Attributes {
			texts = append(texts, kv.Value.GetStringValue())
		}
		for _, e := range s.Events {
			for _, kv := range e.Attributes {
				texts = append(texts, kv.Value.GetStringValue())
			}
		}
		for _, text := range texts {
			if strings.Contains(text, secret) || len(text) > mostText+len("…")+len("tools/call ") {
				t.Errorf("span %s has %q", s.Name, text)
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
