package metrics

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d, want 200: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestCounters(t *testing.T) {
	m := New("v1.2.3")
	m.Request(mcp.Served{Server: "docs", Method: "tools/call", Era: "modern", Outcome: "ok", Took: 20 * time.Millisecond})
	m.Request(mcp.Served{Server: "docs", Method: "subscriptions/listen", Era: "modern", Outcome: "ok", Took: time.Hour})
	m.Request(mcp.Served{Server: "docs", Method: "tools/call", Era: "modern", Outcome: "error", Took: time.Second, Error: wire.Errorf(-32602, "no"), TraceID: "4bf92f3577b34da6a3ce929d0e0e4736"})
	m.Request(mcp.Served{Server: "docs", Group: "all", Method: "tools/list", Era: "modern", Outcome: "ok"})
	m.Upstream("docs", "tools/call", "", 10*time.Millisecond, "")
	m.Upstream("docs", "tools/call", "-1", 10*time.Millisecond, "")
	m.SpansLost(5)
	m.AuditLost(2)
	m.AuditFailing(true)
	m.Reloaded(true)
	m.Reloaded(false)
	m.Dropped("docs", "unattributed")
	m.Dropped("docs", "unattributed")
	m.Limit("docs", "listen_streams")
	m.Streams(2)
	m.Streams(-1)
	m.Held("docs", mcp.HeldCalls, 3)
	m.Held("docs", mcp.HeldCalls, -1)
	m.Held("docs", mcp.HeldTasks, 5)
	m.Held("docs", mcp.HeldTasks, -1)
	m.Sockets("docs", 4)
	m.Sockets("docs", -1)
	for range 3 {
		m.SessionOpened("docs")
	}
	m.SessionEnded("docs", "idle")
	m.SessionEnded("docs", "lost")
	m.StateLost("docs", "idle", 2)
	m.CommandStarted("files")
	m.Quirk("docs", "header-revision")
	m.Delivered("docs", 7)
	m.Offered("docs", 11)
	m.CacheLooked("docs", "tools/list", false)
	m.CacheLooked("docs", "tools/list", true)
	m.CacheLooked("docs", "tools/list", true)
	m.CacheEvicted("docs", "changed")
	m.CacheBytes("docs", 700)
	m.CacheBytes("docs", -200)
	m.WatchIndex(func() (int, int) { return 10, 30 })
	m.Replicas().Failed()
	m.Replicas().Skipped()
	m.Replicas().Skipped()
	m.Replicas().Crowded()
	m.Replicas().Overasked()

	got := scrape(t, m)
	for _, want := range []string{
		`mcpbridge_requests_total{era="modern",method="tools/call",outcome="ok",server="docs"} 1`,
		`mcpbridge_group_requests_total{group="all",outcome="ok",server="docs"} 1`,
		`mcpbridge_request_duration_seconds_bucket{method="tools/call",server="docs",le="0.01"} 0`,
		`mcpbridge_request_duration_seconds_bucket{method="tools/call",server="docs",le="0.05"} 1`,
		`mcp_server_operation_duration_seconds_count{error_type="",gen_ai_tool_name="",mcp_method_name="tools/call",server="docs"} 1`,
		`mcp_server_operation_duration_seconds_bucket{error_type="-32602",gen_ai_tool_name="",mcp_method_name="tools/call",server="docs",le="1"} 1`,
		`mcp_server_operation_duration_seconds_count{error_type="",gen_ai_tool_name="",mcp_method_name="subscriptions/listen",server="docs"} 1`,
		`mcp_client_operation_duration_seconds_bucket{error_type="",mcp_method_name="tools/call",server="docs",le="0.01"} 1`,
		`mcp_client_operation_duration_seconds_count{error_type="_OTHER",mcp_method_name="tools/call",server="docs"} 1`,
		"mcpbridge_spans_lost_total 5", "mcpbridge_audit_lost_total 2", "mcpbridge_audit_failing 1",
		`mcpbridge_config_reloads_total{result="ok"} 1`, `mcpbridge_config_reloads_total{result="error"} 1`, "mcpbridge_config_last_reload_successful 0",
		"mcpbridge_config_last_reload_success_timestamp_seconds ",
		`mcpbridge_build_info{goversion="` + runtime.Version() + `",version="v1.2.3"} 1`,
		`mcpbridge_messages_dropped_total{reason="unattributed",server="docs"} 2`,
		`mcpbridge_limits_hit_total{limit="listen_streams",server="docs"} 1`,
		`mcpbridge_quirks_total{quirk="header-revision",server="docs"} 1`,
		"mcpbridge_listen_streams 1",
		`mcpbridge_parked_calls{server="docs"} 2`,
		`mcpbridge_tasks{server="docs"} 4`,
		`mcpbridge_client_websockets{server="docs"} 3`,
		`mcpbridge_upstream_sessions{server="docs"} 1`,
		`mcpbridge_upstream_sessions_opened_total{server="docs"} 3`,
		`mcpbridge_upstream_sessions_ended_total{server="docs",why="lost"} 1`,
		`mcpbridge_state_lost_total{cause="idle",server="docs"} 2`,
		`mcpbridge_command_starts_total{server="files"} 1`,
		`mcpbridge_events_delivered_total{server="docs"} 7`,
		`mcpbridge_events_offered_total{server="docs"} 11`,
		`mcpbridge_cache_requests_total{method="tools/list",outcome="hit",server="docs"} 2`,
		`mcpbridge_cache_requests_total{method="tools/list",outcome="miss",server="docs"} 1`,
		`mcpbridge_cache_evicted_total{server="docs",why="changed"} 1`,
		`mcpbridge_cache_bytes{server="docs"} 500`,
		"mcpbridge_index_topics 10",
		"mcpbridge_index_pairs 30",
		"mcpbridge_replica_engine_errors_total 1", "mcpbridge_replica_engine_skips_total 2", `mcpbridge_limits_hit_total{limit="waiting_claims",server=""} 1`, `mcpbridge_limits_hit_total{limit="asked_claims",server=""} 1`,
		"go_goroutines ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, `request_duration_seconds_count{method="subscriptions/listen"`) {
		t.Error("a listen stream's lifetime counts as a request's duration")
	}
}

// A client that invents methods must not make the process grow.
func TestInventedMethodsShareOneSeries(t *testing.T) {
	m := New("v1.2.3")
	for i := range 1000 {
		m.Request(mcp.Served{Server: "docs", Method: fmt.Sprintf("x/%d", i), Era: "modern", Outcome: "refused", Took: 0})
	}
	series := regexp.MustCompile(`(?m)^mcpbridge_requests_total\{.*`).FindAllString(scrape(t, m), -1)
	want := `mcpbridge_requests_total{era="modern",method="other",outcome="refused",server="docs"} 1000`
	if len(series) != 1 || series[0] != want {
		t.Errorf("series = %q, want only %q", series, want)
	}
}

// Two gateways in one process count apart.
func TestNoPackageState(t *testing.T) {
	a, b := New("v1.2.3"), New("v1.2.3")
	a.Limit("docs", "body")
	if got := scrape(t, b); strings.Contains(got, "limits_hit_total{") {
		t.Errorf("the second counts what the first was told:\n%s", got)
	}
}

// The histograms have the traces of examples in the format that has a place for them.
func TestExemplars(t *testing.T) {
	m := New("v1.2.3")
	m.Request(mcp.Served{Server: "docs", Method: "tools/call", Era: "modern", Outcome: "ok", Took: time.Millisecond, TraceID: "4bf92f3577b34da6a3ce929d0e0e4736"})
	m.Upstream("docs", "tools/call", "", time.Millisecond, "5bf92f3577b34da6a3ce929d0e0e4736")
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	m.Handler().ServeHTTP(w, r)
	for _, want := range []string{
		`mcp_server_operation_duration_seconds_bucket{error_type="",gen_ai_tool_name="",mcp_method_name="tools/call",server="docs",le="0.01"} 1 # {trace_id="4bf92f3577b34da6a3ce929d0e0e4736"} 0.001`,
		`mcp_client_operation_duration_seconds_bucket{error_type="",mcp_method_name="tools/call",server="docs",le="0.01"} 1 # {trace_id="5bf92f3577b34da6a3ce929d0e0e4736"} 0.001`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("no %q in\n%s", want, w.Body)
		}
	}
}

// Requests that were counted before take no memory.
func BenchmarkRequest(b *testing.B) {
	m := New("v1.2.3")
	b.ReportAllocs()
	for b.Loop() {
		m.Request(mcp.Served{Server: "docs", Method: "tools/call", Era: "modern", Outcome: "ok", Took: time.Millisecond})
		m.Upstream("docs", "tools/call", "", time.Millisecond, "")
	}
}

// A request through a group and one at its member have their series at hand, whatever was counted
// in between, and those of a server that was forgotten are not taken for those of its name.
func TestRecent(t *testing.T) {
	m := New("v1")
	through := func() {
		m.Request(mcp.Served{Server: "files", Group: "all", Method: "tools/call", Era: "modern", Outcome: "ok"})
		m.Request(mcp.Served{Server: "all", Method: "tools/call", Era: "modern", Outcome: "ok"})
	}
	through()
	if n := testing.AllocsPerRun(100, through); n != 0 {
		t.Errorf("%v allocations for requests that were counted before", n)
	}
	m.Forget("files")
	through()
	calls := map[string]uint64{}
	for _, r := range m.Rates("").Servers {
		calls[r.Server] = r.Minute.Calls
	}
	if want := map[string]uint64{"files": 1, "all": 103}; !maps.Equal(calls, want) {
		t.Errorf("calls in the last minute: %v, want %v", calls, want)
	}
	// All are of one place.
	for _, era := range []string{"modern", "legacy", "Modern", "Legacy"} {
		for range 10 {
			m.Request(mcp.Served{Server: "docs", Method: "tools/call", Era: era, Outcome: "ok"})
		}
	}
	for _, era := range []string{"modern", "legacy", "Modern", "Legacy"} {
		if want := fmt.Sprintf(`mcpbridge_requests_total{era=%q,method="tools/call",outcome="ok",server="docs"} 10`, era); !strings.Contains(scrape(t, m), want) {
			t.Errorf("no %q", want)
		}
	}
}

// BenchmarkRequestThrough counts a call through a group, and at its member.
func BenchmarkRequestThrough(b *testing.B) {
	m := New("v1.2.3")
	b.ReportAllocs()
	for b.Loop() {
		m.Request(mcp.Served{Server: "files", Group: "all", Method: "tools/call", Era: "modern", Outcome: "ok", Client: "c/1", Took: time.Millisecond})
		m.Request(mcp.Served{Server: "all", Method: "tools/call", Era: "modern", Outcome: "ok", Client: "c/1", Took: time.Millisecond})
	}
}

// Tools are named once they have answered, and no more of them than configured: that is
// counted, and logged once.
func TestTools(t *testing.T) {
	m := New("v1.2.3")
	log := &bridgetest.Log{}
	call := func(tool, outcome string) {
		m.Request(mcp.Served{Server: "docs", Method: "tools/call", Era: "modern", Outcome: outcome, Tool: tool})
	}
	call("early", "ok")
	m.NameTools(2, slog.New(slog.NewTextHandler(log, nil)))
	for _, tool := range []string{"a", "b", "a", "c", "d\nlevel=ERROR"} {
		call(tool, "ok")
	}
	call("invented", "error")
	call("a", "error")
	got := scrape(t, m)
	for tool, want := range map[string]int{"": 1, "a": 3, "b": 1, "other": 3} {
		if text := fmt.Sprintf(`mcp_server_operation_duration_seconds_count{error_type="",gen_ai_tool_name=%q,mcp_method_name="tools/call",server="docs"} %d`, tool, want); !strings.Contains(got, text) {
			t.Errorf("no %q", text)
		}
	}
	if want := `mcpbridge_limits_hit_total{limit="metric_tools",server="docs"} 2`; !strings.Contains(got, want) {
		t.Errorf("no %q", want)
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "level=WARN") || !strings.Contains(text, "raise limits.metric_tools") || !strings.Contains(text, "upstream=docs limit=2") {
		t.Errorf("the log is %q, want one line that names limits.metric_tools", text)
	}
	for _, tool := range []string{"c", "early", "invented"} {
		if strings.Contains(got, `gen_ai_tool_name="`+tool+`"`) {
			t.Errorf("%s has series of its own", tool)
		}
	}
}
