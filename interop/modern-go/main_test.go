//lint:file-ignore SA1019 What is deprecated in 2026-07-28 is part of it all the same.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A world is a server, and its admin page.
type world struct {
	board      *board
	mcp, admin *httptest.Server
}

func newWorld(t *testing.T, f flags) *world {
	t.Helper()
	l, err := openLedger(f.ledger)
	if err != nil {
		t.Fatal(err)
	}
	f.items = 3
	b := newBoard(l, f)
	g := newGate(b)
	w := &world{b, httptest.NewServer(g), httptest.NewServer(adminHandler(b, g))}
	t.Cleanup(func() {
		w.admin.Close()
		w.mcp.CloseClientConnections()
		w.mcp.Close()
		l.close()
	})
	return w
}

func (w *world) connect(t *testing.T, opts *mcp.ClientOptions, roots ...*mcp.Root) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts)
	c.AddRoots(roots...)
	cs, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: w.mcp.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	if got := cs.InitializeResult().ProtocolVersion; got != revision {
		t.Fatalf("the client negotiated %s, want %s", got, revision)
	}
	return cs
}

// answering is a client that fills in every form and completes every prompt.
func answering() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if r.Params.Mode == "url" {
				return &mcp.ElicitResult{Action: "accept"}, nil
			}
			content := make(map[string]any)
			for name, schema := range r.Params.RequestedSchema.(map[string]any)["properties"].(map[string]any) {
				content[name] = "my " + name
				if schema.(map[string]any)["type"] == "boolean" {
					content[name] = true
				}
			}
			return &mcp.ElicitResult{Action: "accept", Content: content}, nil
		},
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			prompt := r.Params.Messages[0].Content.(*mcp.TextContent).Text
			return &mcp.CreateMessageResult{Model: "m", Role: "assistant", Content: &mcp.TextContent{Text: "echo of " + prompt}}, nil
		},
		Capabilities: &mcp.ClientCapabilities{
			RootsV2:     &mcp.RootCapabilities{},
			Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
		},
	}
}

// call returns the text of a tool's content, and whether it is an error's.
func call(t *testing.T, cs *mcp.ClientSession, name string, args any) (string, bool) {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var lines []string
	for _, c := range res.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			lines = append(lines, c.Text)
		}
	}
	return strings.Join(lines, "\n"), res.IsError
}

// TestQuestions proves that each tool asks what it should, and works with what
// the client answers.
func TestQuestions(t *testing.T) {
	cs := newWorld(t, flags{}).connect(t, answering(), &mcp.Root{URI: "file:///home", Name: "home"})
	for _, tt := range []struct {
		tool string
		args any
		want string
	}{
		{"test_input_required_result_elicitation", nil, "Hello, my name!"},
		{"test_input_required_result_sampling", nil, "echo of What is the capital of France?"},
		{"test_input_required_result_list_roots", nil, "roots: file:///home"},
		{"test_input_required_result_request_state", nil, "state-ok: true"},
		{"test_input_required_result_tampered_state", nil, "state-ok: true"},
		{"test_input_required_result_multiple_inputs", nil, "echo of Generate a greeting my name has file:///home"},
		{"test_input_required_result_multi_round", nil, "my name likes my color"},
		{"test_missing_capability", nil, "echo of What is the capital of France?"},
		{"test_streaming_elicitation", nil, "Hello, my name!"},
		{"test_sampling", map[string]any{"prompt": "p"}, "the model says: echo of p"},
		{"test_elicitation", map[string]any{"message": "m"}, "content=map[email:my email username:my username]"},
		{"visit", nil, "consent: accept"},
		{"ask", map[string]any{"nonce": "n", "rounds": 3}, "my nonce"},
		{"busy", nil, "served at last"},
	} {
		t.Run(tt.tool, func(t *testing.T) {
			if got, isError := call(t, cs, tt.tool, tt.args); isError || got != tt.want {
				t.Errorf("%s = %q, error %v, want %q", tt.tool, got, isError, tt.want)
			}
		})
	}
	t.Run("prompt", func(t *testing.T) {
		res, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "test_input_required_result_prompt"})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := res.Messages[0].Content.(*mcp.TextContent).Text, "in the context of my context"; got != want {
			t.Errorf("prompt = %q, want %q", got, want)
		}
	})
	t.Run("resource", func(t *testing.T) {
		res, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "res://guarded"})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := res.Contents[0].Text, "read by my name"; got != want {
			t.Errorf("resource = %q, want %q", got, want)
		}
	})
	t.Run("endless", func(t *testing.T) {
		if res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "endless"}); err == nil {
			t.Errorf("eleven rounds ended with %v, want the client to give up", res.Content)
		}
	})
}

func TestDeclined(t *testing.T) {
	opts := answering()
	opts.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	got, isError := call(t, newWorld(t, flags{}).connect(t, opts), "test_input_required_result_multi_round", nil)
	if !isError || !strings.Contains(got, "decline") {
		t.Errorf("a declined question gave %q, error %v, want an error that says so", got, isError)
	}
}

// TestLegacyRejected proves that no request of another era is served, and that
// initialize is told the revision.
func TestLegacyRejected(t *testing.T) {
	w := newWorld(t, flags{})
	const initialize = `{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	refused := map[string]string{
		"initialize":   initialize,
		"list":         `{"jsonrpc":"2.0","id":"a","method":"tools/list"}`,
		"ping":         `{"jsonrpc":"2.0","id":"a","method":"ping","params":{}}`,
		"old envelope": `{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25"}}}`,
	}
	for name, body := range refused {
		t.Run("http "+name, func(t *testing.T) {
			req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
			req.Host = "127.0.0.1"
			req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
			rec := httptest.NewRecorder()
			w.mcp.Config.Handler.ServeHTTP(rec, req)
			if rec.Code != http.StatusBadRequest || strings.Contains(rec.Body.String(), `"result"`) {
				t.Errorf("%s = %d %s, want 400 and an error", name, rec.Code, rec.Body)
			}
			if name == "initialize" && !strings.Contains(rec.Body.String(), `"supported":["2026-07-28"]`) {
				t.Errorf("%s = %s, want it to name the revision", name, rec.Body)
			}
		})
		t.Run("pipe "+name, func(t *testing.T) {
			if got := pipe(t, w.board, body); !strings.Contains(got, `"id":"a"`) || !strings.Contains(got, `"error"`) {
				t.Errorf("%s = %s, want an error", name, got)
			}
		})
	}
	t.Run("SDK", func(t *testing.T) {
		c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		opts := &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"}
		if _, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: w.mcp.URL}, opts); err == nil {
			t.Error("a client of 2025-11-25 connected")
		}
	})
}

// pipe sends one line as on stdio and returns the answer.
func pipe(t *testing.T, b *board, line string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- b.server.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out}) }()
	if _, err := io.WriteString(toServer, line+"\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := bufio.NewReader(fromServer).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = errors.Join(toServer.Close(), fromServer.Close(), <-done) // it was cancelled
	return answer
}

// A listener is a raw listen stream.
type listener struct {
	body   io.Closer
	frames chan string // closed at its end
}

const envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}`

// listen opens a stream, and fails the test if it is not answered with status.
func (w *world) listen(t *testing.T, id, filter string, status int) *listener {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{"notifications":%s,%s}}`, id, filter, envelope)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.mcp.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {revision}, "Mcp-Method": {"subscriptions/listen"}}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != status {
		t.Fatalf("listen %s: status %d, want %d", id, res.StatusCode, status)
	}
	s := &listener{res.Body, make(chan string, 100)}
	go s.read(res.Body) // ends with the body
	t.Cleanup(func() { _ = s.body.Close() })
	return s
}

func (s *listener) read(body io.Reader) {
	defer close(s.frames)
	for lines := bufio.NewScanner(body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			s.frames <- data
		}
	}
}

// want takes the next frame, which must hold all parts.
func (s *listener) want(t *testing.T, parts ...string) {
	t.Helper()
	select {
	case f, ok := <-s.frames:
		for _, part := range parts {
			if !ok || !strings.Contains(f, part) {
				t.Fatalf("frame %q, open %v, want %q in it", f, ok, part)
			}
		}
	case <-time.After(time.Minute):
		t.Fatalf("no frame, want one with %q", parts)
	}
}

func (s *listener) wantEnd(t *testing.T) {
	t.Helper()
	select {
	case f, ok := <-s.frames:
		if ok {
			t.Fatalf("frame %q, want the end", f)
		}
	case <-time.After(time.Minute):
		t.Fatal("the stream did not end")
	}
}

func (w *world) post(t *testing.T, path string, form url.Values, into any) {
	t.Helper()
	res, err := http.PostForm(w.admin.URL+path, form)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("POST %s: %s", path, res.Status)
	}
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}

// TestListen proves what a stream hears of, what is refused, how streams end,
// and that the ledger has it all.
func TestListen(t *testing.T) {
	refuse := filepath.Join(t.TempDir(), "refuse")
	if err := os.WriteFile(refuse, []byte("res://item/001\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, flags{refuse: refuse})
	for _, how := range []string{"graceful", "abrupt"} {
		t.Run(how, func(t *testing.T) {
			a := w.listen(t, `"a"`, `{"toolsListChanged":true,"resourceSubscriptions":["res://item/000","res://item/001"]}`, http.StatusOK)
			b := w.listen(t, `2`, `{"promptsListChanged":true,"resourcesListChanged":true}`, http.StatusOK)
			a.want(t, "acknowledged", `/subscriptionId":"a"`, `"resourceSubscriptions":["res://item/000"]`)
			b.want(t, "acknowledged", `/subscriptionId":2`)
			if got := w.board.listens.subscriptions(1); len(got.Streams) != 2 || !maps.Equal(got.URIs, map[string]int{"res://item/000": 1}) {
				t.Errorf("subscriptions = %+v, want two streams, one with res://item/000", got)
			}
			var ignored any
			w.post(t, "/admin/touch", url.Values{"uri": {"res://item/000", "res://item/001"}}, &ignored)
			a.want(t, "resources/updated", "res://item/000", `/subscriptionId":"a"`)
			w.post(t, "/admin/change", url.Values{"kind": {"tools"}}, &ignored)
			a.want(t, "tools/list_changed")
			w.post(t, "/admin/change", url.Values{"kind": {"resources"}}, &ignored)
			b.want(t, "resources/list_changed", `/subscriptionId":2`)
			var cut struct{ Streams int }
			w.post(t, "/admin/cut", url.Values{"how": {how}, "hold": {"1h"}}, &cut)
			if cut.Streams != 2 {
				t.Errorf("cut %d streams, want 2", cut.Streams)
			}
			if how == "graceful" {
				a.want(t, `"id":"a"`, `"result"`)
				b.want(t, `"id":2`, `"result"`)
			}
			a.wantEnd(t)
			b.wantEnd(t)
			w.listen(t, `3`, `{"toolsListChanged":true}`, http.StatusServiceUnavailable)
			w.post(t, "/admin/cut", url.Values{}, &cut) // open again
			if got := w.board.listens.subscriptions(1); len(got.Streams) != 0 {
				t.Errorf("subscriptions = %+v, want none", got)
			}
		})
	}
	w.wantLedger(t)
}

// wantLedger looks for what the first round of TestListen leaves.
func (w *world) wantLedger(t *testing.T) {
	t.Helper()
	var got []string
	for _, e := range w.board.ledger.after(0) {
		if e.Stream == "stream 1" {
			got = append(got, strings.TrimSpace(strings.Join([]string{e.What, e.Method, e.URI, e.Kind}, " ")))
		}
	}
	want := []string{
		"listen", "refuse  res://item/001", "sent notifications/subscriptions/acknowledged",
		"sent notifications/resources/updated res://item/000", "sent notifications/tools/list_changed", "ended   graceful",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the ledger of stream 1 is %q, want %q", got, want)
	}
}

// TestVersions proves that versions survive the server, and are news only once.
func TestVersions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger")
	const uri = "res://item/002"
	for i := range 2 {
		w := newWorld(t, flags{ledger: file})
		if _, err := w.board.touch(t.Context(), []string{uri}, 2); err != nil {
			t.Fatal(err)
		}
		res, err := w.connect(t, nil).ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := res.Contents[0].Text, fmt.Sprintf("version %d", 3+2*i); got != want {
			t.Errorf("%s after start %d = %q, want %q", uri, i+1, got, want)
		}
	}
	if _, err := newWorld(t, flags{}).board.touch(t.Context(), []string{"res://nowhere"}, 1); err == nil {
		t.Error("touched what is not there")
	}
}
