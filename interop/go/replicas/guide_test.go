package replicas

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
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
	found map[cell]transcript
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
	ctx, cancel := context.WithTimeout(t.Context(), process.StartTime)
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
func (g *guide) take(t *testing.T, plan map[string][]cell) map[cell]transcript {
	t.Helper()
	g.found = make(map[cell]transcript)
	var tours sync.WaitGroup
	slots := make(chan struct{}, 4)
	for n, client := range slices.Sorted(maps.Keys(g.clients)) {
		if len(plan[client]) == 0 {
			continue // it would take a processor for seconds, for nothing
		}
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
		saw := g.visit(ctx, c, at, words).without(g.dir)
		g.mu.Lock()
		g.found[at] = saw
		g.mu.Unlock()
	}
	if err := c.End(); err != nil {
		return fmt.Errorf("%w; it wrote:\n%s", err, c.Log())
	}
	return nil
}

// visit takes one client through the steps on a server.
func (g *guide) visit(ctx context.Context, c *steer.Client, at cell, words *strings.Replacer) (saw transcript) {
	to := remote.Target{Transport: at.front, URL: g.front(at.front, at.server), Capabilities: json.RawMessage(`{"elicitation":{},"sampling":{}}`)}
	c.Expect(answersGiven)
	hello, err := request(ctx, c, "initialize", to, false)
	saw = append(saw, moment{what: said("initialize", hello, err)})
	if err != nil {
		return saw
	}
	for _, s := range tours[at.server] {
		saw[len(saw)-1].take(c, at) // what came late, or twice
		saw = append(saw, walk(ctx, c, at, s, words, g.hears(at, s)))
	}
	saw[len(saw)-1].take(c, at)
	over, err := request(ctx, c, remote.Close, nil, false)
	last := moment{what: said("close", over, err)}
	last.take(c, at) // no more can come
	return append(saw, last)
}

// hears returns what a client is sure to hear with a step.
func (g *guide) hears(at cell, s step) tally {
	want := s.tells
	if inJavaScript(at.client) {
		want.progress = 0 // mayMiss
	}
	if g.clients[at.client].Revisions[at.front] >= "2026" {
		want.messages = 0 // it would have to ask for them
	}
	return want
}

// walk makes a step. What has to be heard is made to happen again and again: some clients
// begin to listen only sometime.
func walk(ctx context.Context, c *steer.Client, at cell, s step, words *strings.Replacer, want tally) moment {
	params := json.RawMessage(words.Replace(s.params))
	c.Changed.Clear()
	result, err := request(ctx, c, s.method, params, true)
	m := moment{what: said(s.method+" "+string(params), result, err), want: want}
	if s.hear == "" {
		m.gather(c, at)
		return m
	}
	hear := words.Replace(s.hear)
	for end := time.Now().Add(recovery); time.Now().Before(end); {
		for got, ok := c.Changed.Take(500 * time.Millisecond); ok; got, ok = c.Changed.Take(500 * time.Millisecond) {
			if got == hear {
				m.with = []string{"heard " + hear}
				return m
			}
		}
		_, _ = request(ctx, c, s.method, params, false) // the first is in the transcript
	}
	m.with = []string{deaf + hear}
	return m
}

// request waits as long as a client may take to start beside many others: Python takes seconds
// of a processor for its imports.
func request(ctx context.Context, c *steer.Client, method string, params any, progress bool) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	r, err := c.Begin(method, params, progress)
	if err != nil {
		return nil, err
	}
	result, err := c.Wait(ctx, r)
	return match.Wire(result), err
}
