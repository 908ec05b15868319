package router

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// An endings keeps how requests ended.
type endings struct {
	mcp.NoMetrics
	mu    sync.Mutex
	ended []string
}

func (t *endings) Request(s mcp.Served) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = append(t.ended, s.Era+" "+s.Method+" "+s.Outcome)
}

func (t *endings) list() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.ended)
}

// requestLines are the lines about requests of a log, by what matters of them.
func requestLines(t *testing.T, log string) (lines []string) {
	t.Helper()
	for text := range strings.Lines(log) {
		var l struct{ Msg, Level, Method, Name, Session, Client, Era, Outcome, Err string }
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if l.Msg != "request" {
			continue
		}
		if l.Session != "" {
			l.Session = "S"
		}
		lines = append(lines, strings.Join([]string{l.Level, l.Method, l.Name, l.Session, l.Client, l.Era, l.Outcome, l.Err}, "|"))
	}
	return lines
}

// A tool that says that it failed is counted and logged as such, though its result is
// one; the line of a request says what it is about and who asks. For clients of both
// eras, with a session of their own upstream and without.
func TestRequestLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		isolation settings.Isolation
	}{{"linked", settings.IsolatePrincipal}, {"shared", settings.IsolateNothing}} {
		t.Run(tt.name, func(t *testing.T) {
			log, counts := &bridgetest.Log{}, &endings{}
			r := newRig(t, func(o *Options) {
				o.Logger, o.Metrics = slog.New(slog.NewJSONHandler(log, nil)), counts
				o.Servers[0].Settings.Isolation = tt.isolation
			})
			r.peer.answer("tools/call", `{"content":[],"isError":true}`)
			r.peer.answer("resources/read", `{"contents":[]}`)
			r.call(t, "1", "tools/call", "add", `"name":"add","arguments":{}`)
			r.call(t, "2", "resources/read", "note://todo", `"uri":"note://todo"`)
			session := r.enter(t)
			const call = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ädd","arguments":{}}}`
			if got := r.send(t, http.MethodPost, call, legacyHeaders(session)); !strings.Contains(got.body, `"isError":true`) {
				t.Fatalf("tools/call = %d %s", got.status, got.body)
			}
			want := []string{
				"INFO|tools/call|add||c/0|modern|tool_error|",
				"INFO|resources/read|note://todo||c/0|modern|ok|",
				"INFO|initialize||S|old/1|legacy|ok|",
				"INFO|tools/call|ädd|S|old/1|legacy|tool_error|",
			}
			ended := []string{"modern tools/call tool_error", "modern resources/read ok", "legacy initialize ok", "legacy tools/call tool_error"}
			// A client has its answer before it is logged and counted, and sends the next request.
			sorted := func(s []string) []string { return slices.Sorted(slices.Values(s)) }
			r.eventually(t, "logged and counted", func() bool {
				return len(requestLines(t, log.String())) >= len(want) && len(counts.list()) >= len(ended)
			})
			if got := requestLines(t, log.String()); !slices.Equal(sorted(got), sorted(want)) {
				t.Errorf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if got := counts.list(); !slices.Equal(sorted(got), sorted(ended)) {
				t.Errorf("counted %q, want %q", got, ended)
			}
		})
	}
}

// What lines have in common is written once, but not kept of what clients make up.
func TestLinesOfAMethodAreOneKind(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	l := &requestLog{lines: slog.NewJSONHandler(&log, nil)}
	for _, method := range []string{"tools/call", "made/up", "tools/call", "made/up"} {
		if err := l.linesOf(lineKind{method, spec.Modern}).Handle(t.Context(), slog.Record{}); err != nil {
			t.Fatal(err)
		}
		if want := `"method":"` + method + `","era":"modern"}`; !strings.Contains(log.String(), want) {
			t.Errorf("the line is %s, want %s in it", log.String(), want)
		}
		log.Reset()
	}
	kept := 0
	l.kinds.Range(func(any, any) bool { kept++; return true })
	if kept != 1 {
		t.Errorf("%d kinds are kept, want that of tools/call", kept)
	}
}

// The line of a request, as serve writes it by default. The client has its answer before.
func BenchmarkRequestLine(b *testing.B) {
	l := &requestLog{metrics: mcp.NoMetrics{}, lines: slog.NewJSONHandler(io.Discard, nil)}
	req := &mcp.Request{Method: "tools/call", Era: spec.Modern, Params: []byte(`{"name":"add","arguments":{}}`), ClientInfo: []byte(`{"name":"client","version":"1.2.3"}`)}
	b.ReportAllocs()
	for b.Loop() {
		l.write(b.Context(), req, time.Millisecond, "ok", nil)
	}
}
