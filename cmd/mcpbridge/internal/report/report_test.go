package report

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/server"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func TestMain(m *testing.M) { os.Exit(bridgetest.Main(m)) }

var update = flag.Bool("update", false, "rewrite testdata")

// A featured is a server with what a table of crossings asks for.
type featured struct {
	modern             bool
	capabilities, list string
}

func (f *featured) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	m, _ := wire.Parse(text, wire.Options{})
	answers := map[string]string{spec.MethodToolsList: `{"resultType":"complete","tools":` + f.list + `}`}
	if f.modern {
		answers[spec.MethodDiscover] = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":` + f.capabilities + `,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"new","version":"2"}}}`
	} else {
		answers[spec.MethodInitialize] = `{"protocolVersion":"2025-11-25","capabilities":` + f.capabilities + `,"serverInfo":{"name":"old","version":"1"}}`
	}
	answer := wire.Edit{Name: "result", Value: []byte(answers[m.Method])}
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case m.ID.IsZero():
		w.WriteHeader(http.StatusAccepted)
		return
	case answers[m.Method] == "":
		answer = wire.Edit{Name: "error", Value: []byte(`{"code":-32601,"message":"Method not found"}`)}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(wire.AppendEdited(nil, []byte(`{"jsonrpc":"2.0"}`), wire.Edit{Name: "id", Value: m.ID.Append(nil)}, answer))
}

// reportOf returns the report about a server, which is asked as one of its era.
func reportOf(t *testing.T, f *featured) *Report {
	t.Helper()
	srv := httptest.NewServer(f)
	defer srv.Close()
	s := server.New(server.Options{Options: upstream.Options{Name: "featured", URL: srv.URL, ClientInfo: []byte(`{"name":"a test"}`), MaxMessage: 1 << 20, Quirks: quirks.New(quirks.Options{})}})
	defer s.Close()
	ask := func(ctx context.Context, how mcp.Probing) (mcp.Verdict, error) {
		return s.Initialize(ctx, 10*time.Second, how)
	}
	if f.modern {
		ask = func(ctx context.Context, how mcp.Probing) (mcp.Verdict, error) {
			return s.Detect(ctx, spec.Unknown, how)
		}
	}
	v, err := ask(t.Context(), mcp.Probing{Lists: true})
	if err != nil {
		t.Fatal(err)
	}
	return New(s, &config.Server{Name: "featured", URL: srv.URL}, v)
}

var (
	anyTime  = regexp.MustCompile(`\b\d+(\.\d+)?(µs|ms|s)(\s|$)`)
	anyPort  = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	anySpace = regexp.MustCompile(`(\S) {2,}`)
)

// steady takes out of a report what is another each time.
func steady(text string) string {
	text = anyPort.ReplaceAllString(text, "HOST")
	text = anyTime.ReplaceAllString(text, "TIME$3")
	return anySpace.ReplaceAllString(text, "$1  ")
}

// What people read, of a server with extensions.
func TestReportPrints(t *testing.T) {
	var out bytes.Buffer
	if err := reportOf(t, &featured{modern: true, capabilities: extensions}).Print(&out, true); err != nil {
		t.Fatal(err)
	}
	text, file := steady(out.String()), filepath.Join("testdata", "modern-extensions.txt")
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || text != string(want) {
		t.Errorf("Print prints\n%s\nwant, by %s (%v; -update rewrites it),\n%s", text, file, err, want)
	}
}

// extensions are capabilities with one extension of each kind.
const extensions = `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html"]},"io.modelcontextprotocol/tasks":{},` +
	`"io.modelcontextprotocol/skills":{"directoryRead":true},"io.modelcontextprotocol/events":{},"com.example/board":{}}}`

// outcomes returns what becomes of each feature.
func outcomes(r *Report) map[string]string {
	out := make(map[string]string)
	for _, c := range r.Crossings {
		out[c.Feature] = strings.TrimSpace(c.Outcome + " " + strings.Join(c.Items, ","))
	}
	return out
}

func wantOutcomes(t *testing.T, r *Report, want map[string]string) {
	t.Helper()
	got := outcomes(r)
	for feature, outcome := range want {
		if got[feature] != outcome {
			t.Errorf("%s: %q, want %q", feature, got[feature], outcome)
		}
	}
	for i := 1; i < len(r.Crossings); i++ {
		rank := []string{Refused, Changes, Crosses, NotOffered}
		if a, b := r.Crossings[i-1].Outcome, r.Crossings[i].Outcome; slices.Index(rank, a) > slices.Index(rank, b) {
			t.Errorf("%s comes after %s, want what does not cross first", b, a)
		}
	}
}

func TestReportOfALegacyServer(t *testing.T) {
	r := reportOf(t, &featured{
		capabilities: `{"tools":{"listChanged":true},"resources":{"listChanged":false},"tasks":{"requests":{"tools":{"call":{}}}},"experimental":{"vendor/x":{}}}`,
		list:         `[{"name":"a","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},{"name":"b","inputSchema":{"type":"array"},"execution":{"taskSupport":"optional"}}]`,
	})
	wantOutcomes(t, r, map[string]string{
		"tools":                                                  "crosses",
		"tools that must be run as tasks":                        "changes a",
		"tools that may be run as tasks":                         "changes b",
		"tools whose input schema is no object":                  "refused b",
		"tasks that a client holds (tasks/*)":                    "changes",
		"experimental capabilities":                              "crosses vendor/x",
		"changes of the list of tools":                           "refused", // announced, without a stream
		"changes of the list of resources":                       "not offered",
		"updates of resources":                                   "not offered",
		"changes of the list of prompts":                         "",
		"completion":                                             "not offered",
		"prompts":                                                "not offered",
		"log messages":                                           "changes",
		"pages to visit (elicitation by URL)":                    "changes",
		"responses that broke off":                               "changes",
		"calls at the same time that may be asked back":          "",
		"questions to the client (elicitation, sampling, roots)": "changes",
	})
}

// A server that has tasks, but runs no calls as such, has none for clients.
func TestReportOfTasksWithoutCalls(t *testing.T) {
	r := reportOf(t, &featured{capabilities: `{"tools":{},"tasks":{"list":{}}}`, list: `[{"name":"a","inputSchema":{"type":"object"}}]`})
	wantOutcomes(t, r, map[string]string{"tasks that a client holds (tasks/*)": "not offered", "tools that may be run as tasks": ""})
}

func TestReportOfAModernServer(t *testing.T) {
	r := reportOf(t, &featured{modern: true,
		capabilities: `{"tools":{"listChanged":true},"resources":{"subscribe":true},"extensions":{"io.modelcontextprotocol/tasks":{},"com.example/board":{}}}`,
		list: `[{"name":"a","inputSchema":{"type":"object","properties":{"where":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}},"outputSchema":{"type":"array"}},` +
			`{"name":"b","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}]`,
	})
	if r.Era != "modern" || !slices.Equal(r.Revisions, []spec.Revision{"2026-07-28"}) || *r.Server != (Server{Name: "new", Version: "2"}) {
		t.Errorf("report = %+v, server %+v", r, r.Server)
	}
	if len(r.Steps) < 2 || r.Steps[0].Means != "so does a server of 2026-07-28 (no sessions)" || r.Steps[1].Answer != "2 tools" {
		t.Errorf("steps = %+v", r.Steps)
	}
	wantOutcomes(t, r, map[string]string{
		"tools with parameters in headers (x-mcp-header)": "changes a",
		"tools whose output schema is no object":          "changes a",
		"structured results":                              "changes a,b",
		"the tasks extension":                             "changes io.modelcontextprotocol/tasks",
		"tasks that a client holds (tasks/*)":             "not offered",
		"extensions":                                      "crosses com.example/board",
		"what extensions let clients listen to":           "refused com.example/board",
		"changes of the list of tools":                    "crosses",
		"changes of the list of resources":                "not offered",
		"updates of resources":                            "crosses",
		"log messages":                                    "not offered",
		"questions to the client (input_required)":        "changes",
		"audio":                                 "changes",
		"what is followed, while more is added": "",
		"how long results may be kept (ttlMs, cacheScope)": "changes",
	})
}

// A server of two tools alone has no limits: what it does not offer is named in one line, and what
// it may do without declaring it, rules and what crosses are for who asks.
func TestReportCountsWhatTheServerHas(t *testing.T) {
	for modern, list := range map[bool]string{false: "", true: `,"subscribe":false`} {
		r := reportOf(t, &featured{modern: modern, capabilities: `{"tools":{"listChanged":false` + list + `}}`,
			list: `[{"name":"now","inputSchema":{"type":"object"}},{"name":"convert","inputSchema":{"type":"object"}}]`})
		var out, full bytes.Buffer
		if err := errors.Join(r.Print(&out, false), r.Print(&full, true)); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(r.Summary, " get all of it, and so do clients of "+map[bool]string{false: "2026-07-28.", true: "2025-11-25 and earlier."}[modern]) {
			t.Errorf("the summary is %q, want no limits", r.Summary)
		}
		text := out.String()
		if lines := strings.Split(text, "\n"); !strings.HasPrefix(lines[2], "tools ") || !strings.HasSuffix(lines[2], " 2: now, convert") {
			t.Errorf("the third line is %q, want the tools", lines[2])
		}
		if strings.Count(text, "\nnot offered: prompts, resources, completion, ") != 1 || strings.Contains(text, "refused") || strings.Contains(text, Crosses+" ") {
			t.Errorf("it prints\n%s\nwant one line of what is not offered", text)
		}
		if id := regexp.MustCompile(`[A-Z0-9]+-\d+\)`).FindString(text); id != "" {
			t.Errorf("it prints the rule %s", id)
		}
		for _, more := range []string{"  " + Refused + "  ", "  " + Crosses + "  ", "How it answered", " (M2L-"} {
			if !modern && !strings.Contains(full.String(), more) {
				t.Errorf("with --verbose it prints\n%s\nwant %q in it", full.String(), more)
			}
		}
	}
}

// Each extension is told of by its name, for clients of either era, with a rule of the
// list.
func TestReportOfExtensions(t *testing.T) {
	rules, err := os.ReadFile("../../../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, modern := range []bool{true, false} {
		r := reportOf(t, &featured{modern: modern, capabilities: extensions})
		var names []string
		for _, e := range r.Extensions {
			names = append(names, e.Name)
			for _, f := range []Treatment{e.Modern, e.Legacy} {
				if !slices.Contains([]string{Refused, Changes, Crosses}, f.Outcome) || f.Why == "" || !strings.Contains(string(rules), "\n| "+f.Rule+" | ") {
					t.Errorf("%s: %+v, want an outcome, a reason and a rule of docs/rules.md", e.Name, f)
				}
			}
		}
		want := []string{"com.example/board", spec.MetaPrefix + "events", spec.MetaPrefix + "skills", spec.ExtensionTasks, spec.MetaPrefix + "ui"}
		if !slices.Equal(names, want) || string(r.Extensions[2].Settings) == "" || r.Extensions[0].Settings != nil {
			t.Errorf("extensions %+v, want %q, with the settings of skills", r.Extensions, want)
		}
	}
}

// The author of a server sees what mcpbridge mends for it, and which sentence says otherwise.
func TestReportOfQuirks(t *testing.T) {
	r := reportOf(t, &featured{
		capabilities: `{"tools":{}}`,
		list:         `[{"name":"a","inputSchema":{"type":"object"}},{"name":"b"}],"nextCursor":null`,
	})
	var names []string
	for _, q := range r.Quirks {
		names = append(names, q.Name)
		if q.Count != 1 || q.Rule != "M2L-09" || q.Seen == "" || !strings.Contains(q.Breaks, "2025-11-25, ") || strings.Contains(q.Seen+q.Done+q.Breaks, "`") {
			t.Errorf("%+v, want it once, with the sentence that it breaks", q)
		}
	}
	if want := []string{"null-members", "tool-schema"}; !slices.Equal(names, want) {
		t.Errorf("quirks %q, want %q", names, want)
	}
	var out bytes.Buffer
	if err := r.Print(&out, true); err != nil || !strings.Contains(out.String(), "null-members") || !strings.Contains(out.String(), "(2025-11-25, server/tools, Tool)") {
		t.Errorf("Print = %v, and prints\n%s", err, &out)
	}
	if odd := reportOf(t, &featured{capabilities: `{"tools":{}}`, list: `[{"name":"a","title":null,"inputSchema":{"type":"object"}}]`}); len(odd.Quirks) != 1 || odd.Quirks[0].Name != "null-members" {
		t.Errorf("a tool whose title is null has %+v", odd.Quirks)
	}
	if odd := reportOf(t, &featured{capabilities: `{"tools":{}}`, list: `null`}); len(odd.Quirks) != 1 || odd.Quirks[0].Name != "list-missing" {
		t.Errorf("a list that is null has %+v", odd.Quirks)
	}
	if good := reportOf(t, &featured{capabilities: `{"tools":{}}`, list: `[{"name":"a","inputSchema":{"type":"object"}}]`}); len(good.Quirks) > 0 {
		t.Errorf("a server without quirks has %+v", good.Quirks)
	}
}
