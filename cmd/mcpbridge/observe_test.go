package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// accessLines returns the lines of the access log, which is JSON, and what else is logged of
// requests.
func accessLines(t *testing.T, log string) (lines []map[string]any, others []string) {
	t.Helper()
	for text := range strings.Lines(log) {
		var l map[string]any
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		switch {
		case l["request"] != nil:
			lines = append(lines, l)
		case l["msg"] == "request":
			others = append(others, text)
		}
	}
	return lines, others
}

// The access log has a line for each request of clients of both eras, and the log then none.
func TestAccessLog(t *testing.T) {
	s := serve(t, []string{"MCPBRIDGE_LOG__ACCESS=json"}, "-c", configFile(t, "servers: {notebook: {builtin: notebook}, modern: {builtin: modern-notebook}}"))
	for _, e := range s.Endpoints {
		askEras(t, e.URL)
	}
	s.stop()
	lines, others := accessLines(t, s.log.String())
	if len(others) > 0 {
		t.Errorf("the log has requests, too: %q", others)
	}
	seen := map[string]bool{}
	for _, l := range lines {
		seen[l["upstream"].(string)+" "+l["era"].(string)+" "+l["method"].(string)] = true
		if l["in"].(float64) == 0 || l["outcome"] == nil || l["downstream"] == nil || l["took"] == nil {
			t.Errorf("line %v", l)
		}
	}
	for _, want := range []string{"notebook legacy initialize", "notebook modern tools/call", "modern legacy initialize", "modern modern tools/call"} {
		if !seen[want] {
			t.Errorf("no line of %s: %v", want, seen)
		}
	}
}

// serve exports a call's spans to a collector, the last ones before it ends.
func TestTracesAreExported(t *testing.T) {
	var mu sync.Mutex
	var exported string
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what there is of it
		mu.Lock()
		defer mu.Unlock()
		exported += r.URL.Path + string(body)
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	s := serve(t, nil, "-c", configFile(t, "servers: {notebook: {builtin: notebook}}"))
	askEras(t, s.Endpoints[0].URL)
	if code := s.stop(); code != 0 {
		t.Errorf("serve ended with %d: %s", code, s.log)
	}
	mu.Lock()
	defer mu.Unlock()
	wantParts(t, "the export", exported, "/v1/traces", "service.name", "mcpbridge", "tools/call x", "mcp.method.name", "initialize", "mcpbridge.outcome")
	if strings.Contains(s.log.String(), "not exported") {
		t.Errorf("the log: %s", s.log)
	}
}

// Where traces go is checked at the start.
func TestTracesAreChecked(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "carrier-pigeon")
	got := runCommand(t.Context(), nil, "serve", "--listen", "127.0.0.1:0", "--admin", "off")
	if got.code == 0 || !strings.Contains(got.err, `OTEL_EXPORTER_OTLP_PROTOCOL is "carrier-pigeon"; mcpbridge exports by http/protobuf and grpc`) {
		t.Errorf("serve ended with %d: %s", got.code, got.err)
	}
}
