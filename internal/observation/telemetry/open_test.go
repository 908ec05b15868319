package telemetry

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// setenv sets variables, and unsets the others that matter.
func setenv(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, name := range []string{disabledVar, exporterVar, endpointVar, tracesVar, protocolVar, traceProtoVar, propagatorsVar, samplerVar, samplerArgVar, "OTEL_BSP_MAX_QUEUE_SIZE"} {
		t.Setenv(name, variables[name])
	}
}

func TestWanted(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		want bool
	}{
		{nil, false},
		{map[string]string{endpointVar: "http://a"}, true},
		{map[string]string{tracesVar: "http://a"}, true},
		{map[string]string{exporterVar: "otlp"}, true},
		{map[string]string{endpointVar: "http://a", exporterVar: "none"}, false},
		{map[string]string{endpointVar: "http://a", disabledVar: "TRUE"}, false},
	} {
		setenv(t, tt.env)
		if got := Wanted(); got != tt.want {
			t.Errorf("Wanted with %v: %v", tt.env, got)
		}
		if tt.want {
			continue
		}
		if tr, err := Open(t.Context(), Options{}); tr != nil || err != nil || tr.Shutdown(t.Context()) != nil {
			t.Errorf("Open with %v: %v, %v", tt.env, tr, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{exporterVar, "zipkin", `OTEL_TRACES_EXPORTER is "zipkin"; mcpbridge has otlp and none`},
		{protocolVar, "http/json", `OTEL_EXPORTER_OTLP_PROTOCOL is "http/json"; mcpbridge exports by http/protobuf and grpc`},
		{traceProtoVar, "x", `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is "x"`},
		{samplerVar, "jaeger_remote", `OTEL_TRACES_SAMPLER is "jaeger_remote"; mcpbridge has always_on, always_off and traceidratio`},
		{"OTEL_BSP_MAX_QUEUE_SIZE", "many", `OTEL_BSP_MAX_QUEUE_SIZE is "many"; want a number above 0`},
		{propagatorsVar, "tracecontext,b3", `OTEL_PROPAGATORS has "b3"; mcpbridge has tracecontext, baggage and none`},
	} {
		setenv(t, map[string]string{endpointVar: "http://127.0.0.1:1", tt.name: tt.value})
		if _, err := Open(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s=%s: %v, want %q", tt.name, tt.value, err, tt.want)
		}
	}
}

// What can't be exported is counted, and logged once; Shutdown exports what waits.
func TestExports(t *testing.T) {
	var posts atomic.Int32
	status := http.StatusBadRequest
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		posts.Add(1)
		w.WriteHeader(status)
	}))
	defer s.Close()
	setenv(t, map[string]string{endpointVar: s.URL})
	var log bytes.Buffer
	var lost int
	open := func() *Tracer {
		tr, err := Open(t.Context(), Options{Version: "v1", Secrets: redact.New(), Logger: slog.New(slog.NewTextHandler(&log, nil)), Lost: func(n int) { lost += n }})
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
	tr := open()
	o := trace.New(tr)
	for range 3 {
		o.Begin(call(trace.Context{}, nil)).End(nil)
		if err := tr.Flush(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(log.String(), "traces were not exported"); n != 1 || lost != 3 {
		t.Errorf("%d lines, %d spans lost; want 1 and 3:\n%s", n, lost, log.String())
	}
	_ = tr.Shutdown(t.Context())
	status = http.StatusOK
	before := posts.Load()
	tr = open()
	trace.New(tr).Begin(call(trace.Context{}, nil)).End(nil)
	if err := tr.Shutdown(t.Context()); err != nil || posts.Load() != before+1 {
		t.Errorf("Shutdown: %v, %d exports, want one", err, posts.Load()-before)
	}
}
