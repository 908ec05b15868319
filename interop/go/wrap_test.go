package interop

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
)

// TestM2L40Wrap takes both clients through the columns of the servers behind stdio,
// each with an mcpbridge wrap of its own that the client starts: all its listen
// streams share one output. Nothing may be left when the client has closed.
func TestM2L40Wrap(t *testing.T) {
	m, err := loadMatrix()
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range []string{"everything-stdio", "files"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			t.Run("go", func(t *testing.T) { goWrapped(t, m, server) })
			t.Run("typescript", func(t *testing.T) {
				dir := t.TempDir()
				r := round{Command: wrapped(t, server, dir), Server: server, Revision: revision, dir: dir}
				r.run(t, m, new(outcomes))
				nothingLeft(t, dir)
			})
		})
	}
}

// wrapped returns the command that serves a server of the matrix on its pipes. dir
// holds its files, and marks the command lines of what it starts.
func wrapped(t *testing.T, server, dir string) []string {
	t.Helper()
	paths, err := absolute(bridgeBinary, nodeBinary, everythingNode, filesNode)
	if err == nil {
		err = testFiles(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	argv := process.WithCache(paths[0], "wrap", "--", paths[1])
	if server == "files" {
		return append(argv, paths[3], dir)
	}
	return append(argv, paths[2], "stdio", dir)
}

func goWrapped(t *testing.T, m *Matrix, server string) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	dir := t.TempDir()
	argv := wrapped(t, server, dir)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var log process.Tail
	cmd.Stderr = &log
	c, err := newGoClient(ctx, &mcp.CommandTransport{Command: cmd})
	if err != nil {
		t.Fatalf("connecting to %s: %v; it wrote:\n%s", server, err, log.String())
	}
	if got := c.cs.InitializeResult().ProtocolVersion; got != revision {
		t.Errorf("the client negotiated %s, want %s", got, revision)
	}
	// server-everything asks for the client's roots 350 ms after the handshake. On stdio
	// that question rides on whatever call runs then, which waits for its answer: a
	// call that is to be watched is not the one for it.
	if server == "everything-stdio" {
		first := Step{Op: "call", Params: []byte(`{"name":"trigger-long-running-operation","arguments":{"duration":1,"steps":1}}`),
			Want: map[string]any{"content": []any{map[string]any{"type": "text", "text": "Long running operation completed. Duration: 1 seconds, Steps: 1."}}}}
		if err := c.do(ctx, &first); err != nil {
			t.Fatal(err)
		}
	}
	var o outcomes
	for _, feature := range m.Features {
		steps, err := m.Servers[server].steps(feature, "go", dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(steps) > 0 {
			o.check(t, "go", server, feature, c.cell(ctx, steps))
		}
	}
	if err := c.cs.Close(); err != nil {
		t.Errorf("closing: %v; it wrote:\n%s", err, log.String())
	}
	nothingLeft(t, dir)
}

func nothingLeft(t *testing.T, mark string) {
	t.Helper()
	if left, err := process.WithMark(mark); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}
