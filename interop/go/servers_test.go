package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
)

var clients = []string{"go", "typescript"}

// TestServers takes both clients through the whole table on every server, and
// leaves what came of it in bin/matrix.txt. The clients take turns on a server: what one toggles
// would reach the other.
func TestServers(t *testing.T) {
	m, err := loadMatrix()
	if err != nil {
		t.Fatal(err)
	}
	var o outcomes
	t.Run("on", func(t *testing.T) {
		for _, name := range m.names() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				t.Run("go", func(t *testing.T) { goRound(t, m, name, &o) })
				t.Run("typescript", func(t *testing.T) { nodeRound(t, m, name, &o) })
			})
		}
	})
	text, untried := o.table(m, m.by(clients))
	if err := os.WriteFile("../bin/matrix.txt", []byte(text), 0o600); err != nil {
		t.Error(err)
	}
	if len(untried) > 0 {
		t.Errorf("nobody tried: %q", untried)
	}
}

// check records what a client found and makes a test of it.
func (o *outcomes) check(t *testing.T, client, server, feature, problem string) {
	outcome := "ok"
	if problem != "" {
		outcome = problem
	}
	o.set(client, server, feature, outcome)
	t.Run(feature, func(t *testing.T) {
		if problem != "" {
			t.Error(problem)
		}
	})
}

// goRound takes go-sdk's client through one column.
func goRound(t *testing.T, m *Matrix, server string, o *outcomes) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	at := m.Servers[server].at(server, "go")
	c, err := newGoClient(ctx, &mcp.StreamableClientTransport{Endpoint: w.bridge.endpoint(at)})
	if err != nil {
		t.Fatalf("connecting to %s: %v", server, err)
	}
	defer c.cs.Close()
	if got := c.cs.InitializeResult().ProtocolVersion; got != revision {
		t.Fatalf("the client negotiated %s, want %s", got, revision)
	}
	for _, feature := range m.Features {
		steps, err := m.Servers[server].steps(feature, "go", w.bridge.dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(steps) > 0 {
			o.check(t, "go", server, feature, c.cell(ctx, steps))
		}
	}
}

// cell takes the steps of a cell, to the first that goes wrong.
func (c *goClient) cell(ctx context.Context, steps []Step) string {
	for i := range steps {
		if err := c.do(ctx, &steps[i]); err != nil {
			return steps[i].Op + " " + string(steps[i].Params) + ": " + err.Error()
		}
	}
	return ""
}

// round is what node/round.mjs reads; check is a line that it prints.
type (
	round struct {
		URL              string
		Command          []string // instead of URL: the client starts it, and is served over its pipes
		Server, Revision string
		Cells            []cell

		dir string // of the server's files
	}
	cell struct {
		Feature string
		Steps   []Step
	}
	check struct {
		Client, Server, Check string
		OK                    bool
		Detail                string
	}
)

// nodeRound takes the TypeScript client through one column, in a process of
// its own that prints a line per cell.
func nodeRound(t *testing.T, m *Matrix, server string, o *outcomes) {
	at := m.Servers[server].at(server, "typescript")
	r := round{URL: w.bridge.endpoint(at), Server: server, Revision: revision, dir: w.bridge.dir}
	r.run(t, m, o)
}

// run fills in the cells and has them tried.
func (r *round) run(t *testing.T, m *Matrix, o *outcomes) {
	server := r.Server
	for _, f := range m.Features {
		steps, err := m.Servers[server].steps(f, "typescript", r.dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(steps) > 0 {
			r.Cells = append(r.Cells, cell{f, steps})
		}
	}
	in, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, nodeBinary, roundNode)
	var log process.Tail
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c check
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Errorf("the round printed %q: %v", lines.Text(), err)
			continue
		}
		if c.OK {
			c.Detail = ""
		}
		o.check(t, c.Client, c.Server, c.Check, c.Detail)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the round ended with %v; it wrote:\n%s", err, log.String())
	}
}
