package interop

//lint:file-ignore SA1019 roots and sampling are deprecated in 2026-07-28, and still to be carried over

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/mcpbridge/interop/internal/match"
	"github.com/mcpbridge/mcpbridge/interop/internal/process"
)

const answersNode = "../node/answers.mjs"

// An errand is what node/answers.mjs reads, and outcome a line that it prints.
type (
	errand struct {
		URL, Revision string
		Root          clientRoot
		Calls         []errandCall
	}
	errandCall struct {
		Tool      string
		Arguments map[string]any
		Answers   map[string]json.RawMessage // by method; no others are expected

		want  []string // lines of the text of the result
		asked string   // what the client is shown: a pattern of matrix.json for the questions, roots/list aside
	}
	clientRoot struct {
		URI  string `json:"uri"`
		Name string `json:"name"`
	}
	errandOutcome struct {
		Text    string
		IsError bool
		Asked   []any
	}
)

// A runner takes a client through an errand.
type runner func(*testing.T, errand) []errandOutcome

var runners = map[string]runner{"go": goErrand, "typescript": nodeErrand}

func compare(t *testing.T, calls []errandCall, got []errandOutcome) {
	t.Helper()
	if len(got) != len(calls) {
		t.Fatalf("%d calls were answered, want %d", len(got), len(calls))
	}
	for i, c := range calls {
		g := got[i]
		if g.IsError {
			t.Errorf("call %d, %s, failed: %s", i, c.Tool, g.Text)
			continue
		}
		for _, want := range c.want {
			if !hasLine(g.Text, want) {
				t.Errorf("call %d, %s: no line %q in\n%s", i, c.Tool, want, g.Text)
			}
		}
		if c.asked == "" {
			continue
		}
		var want any
		if err := json.Unmarshal([]byte(c.asked), &want); err != nil {
			t.Fatal(err)
		}
		if why := match.Mismatch("asked", want, any(g.Asked)); why != "" {
			t.Errorf("call %d, %s: %s", i, c.Tool, why)
		}
	}
}

// hasLine reports whether text has the line, indentation and a comma at its end
// aside: in JSON they depend on the order of members.
func hasLine(text, line string) bool {
	for l := range strings.Lines(text) {
		if strings.TrimSuffix(strings.TrimSpace(l), ",") == line {
			return true
		}
	}
	return false
}

// errandBridge starts an mcpbridge for one client, and makes a root of its own
// for it: clients with the same capabilities and principal share sessions, and
// so roots.
func errandBridge(t *testing.T, client string) (*bridge, clientRoot) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mine.txt"), []byte("the client's own\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), process.StartTime)
	defer cancel()
	b, err := startBridge(ctx, t.TempDir(), w.urls)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
	uri := url.URL{Scheme: "file", Path: dir}
	return b, clientRoot{URI: uri.String(), Name: "root of " + client}
}

// goErrand runs an errand with go-sdk's client.
func goErrand(t *testing.T, e errand) []errandOutcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	a := &answerer{}
	c := mcp.NewClient(&mcp.Implementation{Name: "interop-answers", Version: "1"}, a.options())
	c.AddRoots(&mcp.Root{URI: e.Root.URI, Name: e.Root.Name})
	cs, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: e.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	if got := cs.InitializeResult().ProtocolVersion; got != e.Revision {
		t.Fatalf("the client negotiated %s, want %s", got, e.Revision)
	}
	var got []errandOutcome
	for _, call := range e.Calls {
		a.begin(call)
		p := &mcp.CallToolParams{Name: call.Tool}
		if call.Arguments != nil { // else the SDK would write null
			p.Arguments = call.Arguments
		}
		res, err := cs.CallTool(ctx, p)
		got = append(got, a.outcome(res, err))
	}
	return got
}

// An answerer is the user and the model of go-sdk's client, which asks about one
// call at a time, but several questions at once.
type answerer struct {
	mu    sync.Mutex // guards the fields below
	call  errandCall
	asked []any
}

func (a *answerer) begin(c errandCall) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.call, a.asked = c, []any{}
}

func (a *answerer) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{
			RootsV2:     &mcp.RootCapabilities{ListChanged: true},
			Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
		},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return reply[mcp.ElicitResult](a, "elicitation/create", r.Params)
		},
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return reply[mcp.CreateMessageResult](a, "sampling/createMessage", r.Params)
		},
	}
}

// reply notes what was asked, and answers as the call wants it.
func reply[R any](a *answerer, method string, params any) (*R, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, map[string]any{"Method": method, "Params": match.Wire(params)})
	text, ok := a.call.Answers[method]
	if !ok {
		return nil, fmt.Errorf("%s asked %s, which nobody expects", a.call.Tool, method)
	}
	res := new(R)
	return res, json.Unmarshal(text, res)
}

func (a *answerer) outcome(res *mcp.CallToolResult, err error) errandOutcome {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		return errandOutcome{Text: err.Error(), IsError: true, Asked: a.asked}
	}
	var texts []string
	for _, c := range res.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, c.Text)
		}
	}
	return errandOutcome{Text: strings.Join(texts, "\n"), IsError: res.IsError, Asked: a.asked}
}

// nodeErrand runs an errand with the TypeScript client, in a process of its own.
func nodeErrand(t *testing.T, e errand) []errandOutcome {
	t.Helper()
	in, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, nodeBinary, answersNode)
	var log process.Tail
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &log
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("the client ended with %v; it wrote:\n%s", err, log.String())
	}
	var got []errandOutcome
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var o errandOutcome
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			t.Errorf("the client printed %q: %v", lines.Text(), err)
			continue
		}
		got = append(got, o)
	}
	return got
}
