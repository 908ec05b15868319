package patience

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

const (
	legacyEra = "legacy"
	modernEra = "modern"
)

// revisions are what clients of the eras ask for.
var revisions = map[string]string{legacyEra: "2025-11-25", modernEra: "2026-07-28"}

// A world is one mcpbridge with all servers behind it. Servers are named ERA-TRANSPORT.
type world struct {
	base     string              // of mcpbridge, host:port
	commands map[string][]string // of servers on pipes
	urls     map[string]string   // of the others
	dir      string
	config   strings.Builder
}

// newWorld starts everything.
func newWorld(t *testing.T) *world {
	w := &world{base: rig.FreeAddr(t), commands: map[string][]string{}, urls: map[string]string{}, dir: t.TempDir()}
	servers := map[string]string{legacyEra: binaries.Server, modernEra: rig.Build(t, "modern-go").Server}
	for era, program := range servers {
		w.pipe(era+"-stdio", program, "-ledger", w.ledger(era+"-stdio"))
		w.listening(t, era+"-http", program)
		for _, of := range []string{legacyEra, modernEra} { // each is killed under its own client
			w.pipe(era+"-killed-"+of, program, "-ledger", w.ledger(era+"-killed-"+of))
			w.listening(t, era+"-reset-"+of, program)
		}
		s := httptest.NewServer(onSocket(t, program, "-ledger", w.ledger(era+"-ws")))
		t.Cleanup(s.CloseClientConnections)
		w.add(era+"-ws", "ws"+strings.TrimPrefix(s.URL, "http"), "ws")
		for _, c := range clients() {
			w.pipe(era+"-block-"+c.String(), os.Args[0], "block", era)
		}
	}
	sse := httptest.NewServer(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return waiting() }, nil))
	t.Cleanup(sse.CloseClientConnections)
	w.add("legacy-sse", sse.URL, "sse")
	admin := rig.FreeAddr(t)
	config := fmt.Sprintf("listen: %s\nadmin: %s\nservers:\n%s", w.base, admin, w.config.String())
	bridge := binaries.StartBridge(t, config, admin)
	t.Cleanup(func() {
		bridge.Kill()
		if t.Failed() {
			t.Logf("mcpbridge wrote:\n%s", bridge.Log())
		}
	})
	return w
}

// listening starts a server over HTTP.
func (w *world) listening(t *testing.T, name, program string) {
	addr := rig.FreeAddr(t)
	p, err := process.Start(name, nil, program, "-http", addr, "-ledger", w.ledger(name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	url := "http://" + addr + "/mcp"
	if err := p.Ready(t.Context(), url, 0); err != nil { // else clients are refused, as they would be directly
		t.Fatal(err)
	}
	w.add(name, url, "http")
}

func (w *world) pipe(name string, argv ...string) {
	args, _ := json.Marshal(argv[1:]) // no error: they are strings
	w.commands[name] = argv
	fmt.Fprintf(&w.config, "  %s: {command: %q, args: %s}\n", name, argv[0], args)
}

func (w *world) add(name, url, kind string) {
	w.urls[name] = url
	fmt.Fprintf(&w.config, "  %s: {url: %q, type: %s}\n", name, url, kind)
}

// ledger returns the file in which a server writes down what it was asked.
func (w *world) ledger(name string) string { return filepath.Join(w.dir, name+".jsonl") }

// An entry is a line of a ledger.
type entry struct {
	At    int64
	What  string
	PID   int
	Nonce string
}

// entries returns what a server wrote down.
func (w *world) entries(t *testing.T, server string) (all []entry) {
	text, err := os.ReadFile(w.ledger(server))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var e entry
		if json.Unmarshal([]byte(line), &e) == nil { // else it is being written
			all = append(all, e)
		}
	}
	return all
}

// waiting returns a server with a tool that only waits, for HTTP+SSE.
func waiting() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "waiting", Version: "0"}, nil)
	type args struct {
		Nonce string `json:"nonce"`
		MS    int    `json:"ms"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, a args) (*mcp.CallToolResult, any, error) {
		select {
		case <-time.After(time.Duration(a.MS) * time.Millisecond):
		case <-ctx.Done():
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "waited"}}}, nil, nil
	})
	return s
}

// A client is how a client reaches servers.
type client struct{ era, over string }

func (c client) String() string { return c.era + "-" + c.over }

// clients returns all clients of mcpbridge. stdio is a wrap of their own.
func clients() (all []client) {
	for _, era := range []string{legacyEra, modernEra} {
		for _, over := range []string{"stdio", "http", "ws"} {
			all = append(all, client{era, over})
		}
	}
	return append(all, client{legacyEra, "sse"})
}

// transport returns the client's way to a server.
func (c client) transport(ctx context.Context, w *world, server string) (mcp.Transport, error) {
	switch c.over {
	case "stdio":
		return &mcp.CommandTransport{Command: exec.Command(binaries.Bridge, append([]string{"wrap", "--"}, w.commands[server]...)...)}, nil
	case "sse":
		return &mcp.SSEClientTransport{Endpoint: "http://" + w.base + "/sse/" + server}, nil
	case "ws":
		return dialSocket(ctx, "ws://"+w.base+"/mcp/"+server)
	}
	return &mcp.StreamableClientTransport{Endpoint: "http://" + w.base + "/mcp/" + server}, nil
}

// direct returns a client's way to a server with nothing in between.
func (w *world) direct(ctx context.Context, server string) (mcp.Transport, error) {
	url := w.urls[server]
	switch {
	case url == "":
		argv := w.commands[server]
		return &mcp.CommandTransport{Command: exec.Command(argv[0], argv[1:]...)}, nil
	case strings.HasSuffix(server, "-ws"):
		return dialSocket(ctx, url)
	case strings.HasSuffix(server, "-sse"):
		return &mcp.SSEClientTransport{Endpoint: url}, nil
	}
	return &mcp.StreamableClientTransport{Endpoint: url}, nil
}

// connect connects a client of an era.
func connect(t *testing.T, era string, tr mcp.Transport, err error) *mcp.ClientSession {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	c := mcp.NewClient(&mcp.Implementation{Name: t.Name(), Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	// Over HTTP+SSE the session ends with the context.
	cs, err := c.Connect(t.Context(), tr, &mcp.ClientSessionOptions{ProtocolVersion: revisions[era]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() }) // a killed server's fails
	return cs
}

// wait has a tool wait for d.
func wait(ctx context.Context, cs *mcp.ClientSession, nonce string, d time.Duration, progress bool) error {
	p := &mcp.CallToolParams{Name: "wait", Arguments: map[string]any{"nonce": nonce, "ms": d.Milliseconds()}}
	if progress {
		p.SetProgressToken(nonce)
	}
	res, err := cs.CallTool(ctx, p)
	switch {
	case err != nil:
		return err
	case res.IsError, len(res.Content) != 1:
		text, _ := json.Marshal(res)
		return fmt.Errorf("the tool returned %s", text)
	}
	return nil
}
