package replicas

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/match"
	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
	"github.com/mcpbridge/mcpbridge/interop/internal/steer"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// A cell is one client of the matrix, the transport that it speaks, and a server.
type cell struct{ client, front, server string }

func (c cell) String() string { return c.client + "-" + c.front + "-" + c.server }

// A step is one request of a client, and what has to be heard for it to be over.
type step struct {
	method string
	params string // JSON, in which {cell}, {dir} and {item} are filled in
	hear   string // a resource, or a list, that changes by it
	tells  bool   // of progress, or in the log
}

// tours say what clients do on each server. What a client can't do is an error, which is
// part of the transcript.
var tours = map[string][]step{
	"everything": {
		{method: "tools/list", params: `{}`},
		{method: "prompts/list", params: `{}`},
		{method: "tools/call", params: `{"name":"echo","arguments":{"message":"grüße \"quoted\" 🦉 {cell}"}}`},
		{method: "tools/call", params: `{"name":"get-sum","arguments":{"a":2,"b":40}}`},
		{method: "tools/call", params: `{"name":"get-structured-content","arguments":{"location":"New York"}}`},
		{method: "tools/call", params: `{"name":"trigger-long-running-operation","arguments":{"duration":0.2,"steps":4}}`, tells: true},
		{method: "resources/read", params: `{"uri":"demo://resource/static/document/startup.md"}`},
		{method: "prompts/get", params: `{"name":"args-prompt","arguments":{"city":"Austin","state":"Texas"}}`},
		{method: "tools/call", params: `{"name":"gzip-file-as-resource","arguments":{"name":"{cell}.gz","data":"data:text/plain,hello","outputType":"resource"}}`, hear: "resources"},
		{method: "resources/read", params: `{"uri":"demo://resource/session/{cell}.gz"}`},
		{method: "tools/call", params: `{"name":"no such tool","arguments":{}}`},
	},
	"modern": {
		{method: "tools/list", params: `{}`},
		{method: "prompts/list", params: `{}`},
		{method: "tools/call", params: `{"name":"test_x_mcp_header","arguments":{"region":"Zürich 東京","urgent":true}}`},
		{method: "tools/call", params: `{"name":"test_tool_with_progress","arguments":{}}`, tells: true},
		{method: "tools/call", params: `{"name":"test_tool_with_logging","arguments":{}}`, tells: true},
		{method: "tools/call", params: `{"name":"test_error_handling","arguments":{}}`},
		{method: "tools/call", params: `{"name":"test_elicitation","arguments":{"message":"who are you?"}}`},
		{method: "tools/call", params: `{"name":"test_input_required_result_multi_round","arguments":{}}`},
		{method: "tools/call", params: `{"name":"test_sampling","arguments":{"prompt":"say something"}}`},
		{method: "resources/read", params: `{"uri":"test://static-text"}`},
		{method: "prompts/get", params: `{"name":"test_prompt_with_arguments","arguments":{"arg1":"hello","arg2":"world"}}`},
		{method: "resources/subscribe", params: `{"uri":"{item}"}`},
		{method: "tools/call", params: `{"name":"text","arguments":{"size":100000}}`},
		{method: "tools/call", params: `{"name":"touch","arguments":{"uris":["{item}"]}}`, hear: "{item}"},
		{method: "resources/unsubscribe", params: `{"uri":"{item}"}`},
	},
	"files": {
		{method: "tools/list", params: `{}`},
		{method: "tools/call", params: `{"name":"read_text_file","arguments":{"path":"{dir}/notes.txt","head":1}}`},
		{method: "tools/call", params: `{"name":"write_file","arguments":{"path":"{dir}/{cell}.txt","content":"one\ntwo\n"}}`},
		{method: "tools/call", params: `{"name":"edit_file","arguments":{"path":"{dir}/{cell}.txt","edits":[{"oldText":"two","newText":"three"}]}}`},
		{method: "tools/call", params: `{"name":"read_text_file","arguments":{"path":"{dir}/{cell}.txt"}}`},
		{method: "tools/call", params: `{"name":"list_allowed_directories","arguments":{}}`},
		{method: "tools/call", params: `{"name":"read_text_file","arguments":{"path":"/etc/passwd"}}`},
	},
}

// answersGiven are what clients say when they are asked.
var answersGiven = map[string]json.RawMessage{
	"elicitation/create":     json.RawMessage(`{"action":"accept","content":{"name":"Ada","username":"ada","email":"ada@example.com","color":"red","ok":true}}`),
	"sampling/createMessage": json.RawMessage(`{"role":"assistant","content":{"type":"text","text":"something"},"model":"none","stopReason":"endTurn"}`),
}

// matrixClients are the rows of the matrix.
type matrixClients map[string]struct {
	Argv      []string
	Revisions map[string]string
}

func loadClients(t *testing.T) matrixClients {
	t.Helper()
	text, err := os.ReadFile("../../matrix/table.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct{ Clients matrixClients }
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	return table.Clients
}

// peerFile is a file of interop/.
func peerFile(path string) string {
	abs, err := filepath.Abs("../../" + path)
	if err != nil {
		panic(err) // there is no working directory
	}
	return abs
}

// cells returns every cell, or one for each client and server, so that each client speaks
// all its transports.
func (c matrixClients) cells(all bool) map[string][]cell {
	plan := make(map[string][]cell)
	for i, client := range slices.Sorted(maps.Keys(c)) {
		var fronts []string
		for _, front := range []string{"http", "sse"} {
			if c[client].Revisions[front] != "" {
				fronts = append(fronts, front)
			}
		}
		for k, server := range slices.Sorted(maps.Keys(tours)) {
			for n, front := range fronts {
				if all || n == (i+k)%len(fronts) {
					plan[client] = append(plan[client], cell{client, front, server})
				}
			}
		}
	}
	return plan
}

// A guide takes clients to the servers of one world.
type guide struct {
	w       *world
	clients matrixClients
	dir     string // of the files server
	front   func(front, server string) string

	mu    sync.Mutex // guards the field below
	found map[cell]string
}

// toured returns the servers of tours, as lines of a configuration, and ends with t what it
// starts. one has mcpbridge treat them as servers with a state of their own.
func toured(t *testing.T, dir string, one bool) string {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	node := peerFile("node/node_modules/.bin/node")
	addr := rig.FreeAddr(t)
	p, err := process.Start("everything", []string{fmt.Sprint("PORT=", port(addr))}, node,
		peerFile("node/node_modules/@modelcontextprotocol/server-everything/dist/index.js"), "streamableHttp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.Ready(ctx, "http://"+addr+"/mcp", 0); err != nil {
		t.Fatal(err)
	}
	only := ""
	if one {
		only = ", replicas: one"
	}
	return fmt.Sprintf("  everything: {url: %q%s}\n  files: {command: %q, args: [%q, %q]}\n", "http://"+addr+"/mcp", only,
		node, peerFile("node/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"), dir)
}

// take takes each client through its cells, and returns what each of them saw.
func (g *guide) take(t *testing.T, plan map[string][]cell) map[cell]string {
	t.Helper()
	g.found = make(map[cell]string)
	var tours sync.WaitGroup
	slots := make(chan struct{}, 4)
	for n, client := range slices.Sorted(maps.Keys(g.clients)) {
		tours.Go(func() { // ends with the cells of the client
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := g.tour(t.Context(), client, n, plan[client]); err != nil {
				t.Errorf("%s: %v", client, err)
			}
		})
	}
	tours.Wait()
	return g.found
}

func (g *guide) tour(ctx context.Context, client string, n int, cells []cell) error {
	fill := strings.NewReplacer("{node}", peerFile("node/node_modules/.bin/node"), "{interop}", peerFile("."), "{bin}", peerFile("bin"))
	var argv []string
	for _, arg := range g.clients[client].Argv {
		argv = append(argv, fill.Replace(arg))
	}
	c, err := steer.Start(argv...)
	if err != nil {
		return err
	}
	for i, at := range cells {
		words := strings.NewReplacer("{cell}", at.String(), "{dir}", g.dir, "{item}", fmt.Sprintf("res://item/%03d", n*10+i))
		text := g.visit(ctx, c, at, words)
		g.mu.Lock()
		g.found[at] = text
		g.mu.Unlock()
	}
	if err := c.End(); err != nil {
		return fmt.Errorf("%w; it wrote:\n%s", err, c.Log())
	}
	return nil
}

// visit takes one client through the steps on a server, and returns the transcript.
func (g *guide) visit(ctx context.Context, c *steer.Client, at cell, words *strings.Replacer) string {
	var out strings.Builder
	to := remote.Target{Transport: at.front, URL: g.front(at.front, at.server), Capabilities: json.RawMessage(`{"elicitation":{},"sampling":{}}`)}
	hello, err := request(ctx, c, "initialize", to, false)
	write(&out, "initialize", hello, err)
	if err != nil {
		return out.String()
	}
	for _, s := range tours[at.server] {
		g.walk(ctx, &out, c, s, words)
	}
	over, err := request(ctx, c, remote.Close, nil, false)
	write(&out, "close", over, err)
	return out.String()
}

// walk makes a step. What has to be heard is made to happen again and again: some clients
// begin to listen only sometime.
func (g *guide) walk(ctx context.Context, out *strings.Builder, c *steer.Client, s step, words *strings.Replacer) {
	params := json.RawMessage(words.Replace(s.params))
	hear := words.Replace(s.hear)
	c.Expect(answersGiven)
	c.Changed.Clear()
	result, err := request(ctx, c, s.method, params, true)
	write(out, s.method+" "+string(params), result, err)
	if hear == "" {
		for _, inbox := range []*steer.Inbox[any]{c.Progress, c.Messages, c.Asked} {
			writeAll(out, inbox, s.tells)
		}
		return
	}
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); {
		for got, ok := c.Changed.Take(500 * time.Millisecond); ok; got, ok = c.Changed.Take(500 * time.Millisecond) {
			if got == hear {
				fmt.Fprintf(out, "  heard %s\n", hear)
				return
			}
		}
		_, _ = request(ctx, c, s.method, params, false) // the first is in the transcript
	}
	fmt.Fprintf(out, "  did not hear %s\n", hear)
}

// writeAll writes what has come with a step: what arrived after its result counts, too.
func writeAll(out *strings.Builder, inbox *steer.Inbox[any], tells bool) {
	patience := 20 * time.Millisecond
	if tells {
		patience = 300 * time.Millisecond
	}
	for {
		item, ok := inbox.Take(patience)
		if !ok {
			return
		}
		write(out, "  with", item, nil)
	}
}

// ofTheLedger is what the server counts for all its clients.
var ofTheLedger = regexp.MustCompile(`\\*"(seq|at)\\*":\d+,?`)

func write(out *strings.Builder, what string, result any, err error) {
	text, err2 := json.Marshal(result)
	switch {
	case err != nil:
		fmt.Fprintf(out, "%s = error %v\n", what, err)
	case err2 != nil:
		fmt.Fprintf(out, "%s = %v\n", what, err2)
	default:
		fmt.Fprintf(out, "%s = %s\n", what, ofTheLedger.ReplaceAll(text, nil))
	}
}

func request(ctx context.Context, c *steer.Client, method string, params any, progress bool) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	r, err := c.Begin(method, params, progress)
	if err != nil {
		return nil, err
	}
	result, err := c.Wait(ctx, r)
	return match.Wire(result), err
}
