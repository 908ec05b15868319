package main

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/report"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/notebook"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

var update = flag.Bool("update", false, "rewrite testdata")

func init() {
	// modern-notebook-on-stdio is a server of 2026-07-28 alone.
	children["modern-notebook-on-stdio"] = func([]string) int {
		conn, err := transport.OpenStdio(transport.StdioOptions{In: os.Stdin, Out: os.Stdout})
		if err == nil {
			err = notebook.New(notebook.Options{}).ServeModern(context.Background(), conn)
		}
		return exitCode(err, os.Stderr)
	}
	// probe is the command, in an environment of its own.
	children["probe"] = func(args []string) int {
		got := runCommand(context.Background(), nil, append([]string{"probe"}, args...)...)
		_, _ = io.WriteString(os.Stderr, got.err)
		return got.code
	}
}

var (
	anyTime  = regexp.MustCompile(`\b\d+(\.\d+)?(µs|ms|s)(\s|$)`)
	anyPort  = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	anySpace = regexp.MustCompile(`(\S) {2,}`)
)

// steady takes out of a report what is another each time.
func steady(text string) string {
	text = strings.ReplaceAll(text, os.Args[0], "SERVER")
	text = anyPort.ReplaceAllString(text, "HOST")
	text = anyTime.ReplaceAllString(text, "TIME$3")
	return anySpace.ReplaceAllString(text, "$1  ")
}

// What people read, of servers of both eras and of none.
func TestProbePrints(t *testing.T) {
	url := func(o *backtest.OddServer) func(*testing.T) []string {
		return func(t *testing.T) []string { return []string{o.Start(t)} }
	}
	extended := func(t *testing.T) []string {
		srv := httptest.NewServer(&featured{capabilities: extensions, headers: make(chan http.Header, 1)})
		t.Cleanup(srv.Close)
		return []string{srv.URL}
	}
	for _, tt := range []struct {
		name string
		args func(*testing.T) []string
		code int
	}{
		{"legacy-extensions", extended, 0},
		{"legacy", func(*testing.T) []string { return []string{"--", os.Args[0], "notebook-on-stdio"} }, 0},
		{"legacy-verbose", func(*testing.T) []string { return []string{"--verbose", "--", os.Args[0], "notebook-on-stdio"} }, 0},
		{"modern-verbose", func(*testing.T) []string {
			return []string{"--verbose", "--", os.Args[0], "modern-notebook-on-stdio"}
		}, 0},
		{"modern", func(*testing.T) []string { return []string{"--", os.Args[0], "modern-notebook-on-stdio"} }, 0},
		{"fails-then-greets", url(&backtest.OddServer{Status: 500, Kind: "text/html", Greets: true}), 0},
		{"credentials", url(&backtest.OddServer{Status: 401, Kind: "text/plain", Body: "who?"}), exitFailure},
		{"not-mcp", url(&backtest.OddServer{Status: 404, Kind: "text/html", Body: "<h1>Not Found</h1>"}), exitFailure},
		{"exits", func(*testing.T) []string { return []string{"--", os.Args[0], "odd", "exit"} }, exitFailure},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := runCommand(t.Context(), []string{"GORACE=atexit_sleep_ms=0", "GOCOVERDIR=" + t.TempDir()}, append([]string{"probe"}, tt.args(t)...)...)
			if got.code != tt.code {
				t.Errorf("exit code %d, want %d", got.code, tt.code)
			}
			text := steady(got.out + got.err)
			file := filepath.Join("testdata", "probe", tt.name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || text != string(want) {
				t.Errorf("probe printed\n%s\nwant, by %s (%v; -update rewrites it),\n%s", text, file, err, want)
			}
		})
	}
}

// extensions are capabilities with one extension of each kind.
const extensions = `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html"]},"io.modelcontextprotocol/tasks":{},` +
	`"io.modelcontextprotocol/skills":{"directoryRead":true},"io.modelcontextprotocol/events":{},"com.example/board":{}}}`

// A featured is a server with what a table of crossings asks for.
type featured struct {
	modern             bool
	capabilities, list string
	headers            chan http.Header // of the first request
}

func (f *featured) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	m, _ := wire.Parse(text, wire.Options{})
	select {
	case f.headers <- r.Header:
	default: // it was not the first
	}
	f.serve(w, r, &m)
}

// serve answers one request.
func (f *featured) serve(w http.ResponseWriter, r *http.Request, m *wire.Message) {
	answers := map[string]string{
		spec.MethodInitialize: `{"protocolVersion":"2025-11-25","capabilities":` + f.capabilities + `,"serverInfo":{"name":"old","title":"Old","version":"1"},"instructions":"Be kind."}`,
	}
	if f.modern {
		answers = map[string]string{
			spec.MethodDiscover: `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":` + f.capabilities + `,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"new","version":"2"}}}`,
		}
	}
	answers[spec.MethodToolsList] = `{"resultType":"complete","tools":` + f.list + `}`
	switch answer := answers[m.Method]; {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case m.ID.IsZero():
		w.WriteHeader(http.StatusAccepted)
	case answer == "":
		backtest.Reply(w, 200, "", backtest.SaysUnknown, m.ID)
	default:
		backtest.Reply(w, 200, "", `{"jsonrpc":"2.0","id":%s,"result":`+answer+`}`, m.ID)
	}
}

// probeJSON runs probe --json and returns what it printed.
func probeJSON(t *testing.T, args ...string) (*report.Report, ran) {
	t.Helper()
	got := runCommand(t.Context(), nil, append([]string{"probe", "--json"}, args...)...)
	var r report.Report
	dec := json.NewDecoder(strings.NewReader(got.out))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		t.Fatalf("probe --json printed %q, %q: %v", got.out, got.err, err)
	}
	return &r, got
}

func TestProbeJSONOfALegacyServer(t *testing.T) {
	f := &featured{headers: make(chan http.Header, 1),
		capabilities: `{"tools":{"listChanged":true},"resources":{"listChanged":false},"tasks":{"requests":{}},"experimental":{"vendor/x":{}}}`,
		list:         `[{"name":"a","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},{"name":"b","inputSchema":{"type":"array"},"execution":{"taskSupport":"optional"}}]`,
	}
	srv := httptest.NewServer(f)
	defer srv.Close()
	r, got := probeJSON(t, srv.URL, "-H", "Authorization: Bearer s3cret", "--header", "X-Team:blue")
	if h := <-f.headers; h.Get("Authorization") != "Bearer s3cret" || h.Get("X-Team") != "blue" {
		t.Errorf("headers = %v, want those given", h)
	}
	if strings.Contains(got.out+got.err, "s3cret") {
		t.Error("the report repeats a credential")
	}
	if got.code != 0 || r.Era != "legacy" || r.Transport != "Streamable HTTP" || r.Target != srv.URL || r.Seconds <= 0 || r.Advice != "" ||
		!slices.Equal(r.Revisions, []spec.Revision{"2025-11-25"}) || *r.Server != (report.Server{Name: "old", Title: "Old", Version: "1"}) || r.Instructions != "Be kind." {
		t.Errorf("report = %+v, server %+v, code %d", r, r.Server, got.code)
	}
	var caps struct{ Experimental map[string]any }
	if err := json.Unmarshal(r.Capabilities, &caps); err != nil || caps.Experimental["vendor/x"] == nil {
		t.Errorf("capabilities = %s, want them as the server wrote them", r.Capabilities)
	}
	want := []string{"server/discover in revision 2026-07-28", "initialize in revision 2025-11-25", "tools/list", "resources/list", "resources/templates/list"}
	var sent []string
	for _, s := range r.Steps {
		if sent = append(sent, s.Sent); s.Answer == "" || s.Seconds <= 0 {
			t.Errorf("step %+v, want an answer and its time", s)
		}
	}
	if !slices.Equal(sent, want) || !reflect.DeepEqual(r.Lists, map[string]int{"tools/list": 2, "resources/list": 0, "resources/templates/list": 0}) {
		t.Errorf("steps %q, lists %v", sent, r.Lists)
	}
}

// The transports that a server can have beside the usual two.
func TestProbeOtherTransports(t *testing.T) {
	s := serve(t, nil)
	url := s.Endpoints[0].URL
	for _, tt := range []struct{ url, transport, era string }{
		{url, "Streamable HTTP", "modern"},
		{strings.Replace(url, "/mcp/", "/sse/", 1), "HTTP+SSE", "legacy"},
		{strings.Replace(url, "http:", "ws:", 1), "WebSocket", "modern"},
	} {
		r, got := probeJSON(t, tt.url)
		if got.code != 0 || r.Transport != tt.transport || r.Era != tt.era || r.Lists["tools/list"] != 2 {
			t.Errorf("probe %s = %d, %s over %s, %d tools, want %s over %s; it says %s", tt.url, got.code, r.Era, r.Transport, r.Lists["tools/list"], tt.era, tt.transport, got.err)
		}
	}
}

// A report without a verdict is one, too, and what to do next is on standard error.
func TestProbeWithoutAVerdict(t *testing.T) {
	for _, tt := range []struct {
		name    string
		server  *backtest.OddServer
		timeout string // of each question: a busy machine takes its time for an answer
		advice  string
	}{
		{"401", &backtest.OddServer{Status: 401, Kind: "text/plain"}, "20s", "give it credentials: --header"},
		{"silence", &backtest.OddServer{Silent: true}, "600ms", "--timeout 1m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			r, got := probeJSON(t, "--timeout", tt.timeout, tt.server.Start(t))
			if r.Era != "unknown" || !strings.Contains(r.Advice, tt.advice) || r.Crossings != nil || r.Revisions != nil || len(r.Steps) == 0 {
				t.Errorf("report = %+v, want no verdict and the advice %q", r, tt.advice)
			}
			if got.code != exitFailure || !strings.HasPrefix(got.err, "mcpbridge: "+r.Target+" ") || !strings.HasSuffix(got.err, "; "+r.Advice+"\n") {
				t.Errorf("probe = %d, %q, want %d and the advice", got.code, got.err, exitFailure)
			}
			if took := time.Since(begun); took > 10*time.Second { // --timeout is 10s by itself, per question
				t.Errorf("took %v with --timeout %s", took, tt.timeout)
			}
		})
	}
}

// The same over a WebSocket, and where nobody or something else listens.
func TestProbeAdvisesOnTheWay(t *testing.T) {
	plain := func(status int) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(srv.Close)
		return "ws" + strings.TrimPrefix(srv.URL, "http") + "/mcp"
	}
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	for _, tt := range []struct {
		name, advice string
		args         []string
	}{
		{"401 over a WebSocket", "give it credentials: --header", []string{plain(401)}},
		{"a certificate of nobody's", "SSL_CERT_FILE", []string{secure.URL}},
		{"the same over a WebSocket", "SSL_CERT_FILE", []string{"wss" + strings.TrimPrefix(secure.URL, "https")}},
		{"nobody", "nothing listens there", []string{nobodyURL}},
		{"no such command", "give the path of a program", []string{"--", "./no-such-command"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, got := probeJSON(t, append([]string{"--timeout", "5s"}, tt.args...)...)
			if got.code != exitFailure || r.Era != "unknown" || !strings.Contains(r.Advice, tt.advice) {
				t.Errorf("probe = %d, %+v, want no verdict and the advice %q", got.code, r, tt.advice)
			}
		})
	}
}

// A command that prints what is no message, and nothing else, is not just silent.
func TestProbeSaysWhatACommandWrote(t *testing.T) {
	if os.PathSeparator == '\\' {
		t.Skip("it needs a shell")
	}
	t.Parallel()
	// The command has to start and to write in this time, on a busy machine too: a shell does so soon.
	r, got := probeJSON(t, "--timeout", "3s", "--", "/bin/sh", "-c", `echo "server is ready {not json"; while read line; do :; done`)
	const wrote = `it wrote "server is ready {not json" to its standard output, where only messages belong`
	if got.code != exitFailure || len(r.Steps) != 2 {
		t.Fatalf("probe = %d, %+v, want no verdict after two questions", got.code, r)
	}
	for _, s := range r.Steps {
		if !strings.Contains(s.Answer, wrote) {
			t.Errorf("%s: %q, want %s", s.Sent, s.Answer, wrote)
		}
	}
}

// A proxy of the environment that opens no way is named as what it is.
func TestProbeNamesTheProxy(t *testing.T) {
	proxy := httptest.NewServer(http.NotFoundHandler())
	defer proxy.Close()
	for _, scheme := range []string{"https", "wss", "ws"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "probe", scheme+"://docs.example.com/mcp")
		cmd.Env = []string{"HTTPS_PROXY=" + proxy.URL, "HTTP_PROXY=" + proxy.URL}
		out, err := cmd.CombinedOutput()
		for _, part := range []string{"through proxy " + strings.TrimPrefix(proxy.URL, "http://"), "Not Found", "NO_PROXY"} {
			if err == nil || !strings.Contains(string(out), part) {
				t.Errorf("probe %s:// = %v, %s, want %q in it", scheme, err, out, part)
			}
		}
	}
}

// Who waits at a terminal is told for what.
func TestProbeTellsHowFarItIs(t *testing.T) {
	var progress bridgetest.Log
	p := &prober{progress: &progress, begun: time.Now()}
	mcp.Probing{Begin: p.began}.Take("server/discover in revision 2026-07-28", func() (string, string) { return "", "" })
	if got := progress.String(); !strings.HasSuffix(got, "s  asking server/discover in revision 2026-07-28\n") {
		t.Errorf("progress = %q", got)
	}
}
