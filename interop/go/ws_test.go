package interop

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/mcpbridge/interop/remote"
)

const supergatewayNode = "../node/node_modules/supergateway/dist/index.js"

// startSockets starts supergateway before server-everything, and an mcpbridge that
// reaches it over WebSocket and has a notebook. It returns the address of mcpbridge.
func startSockets(t *testing.T) (addr string) {
	t.Helper()
	far, listen, admin := freeAddr(t), freeAddr(t), freeAddr(t)
	paths, err := absolute(nodeBinary, everythingNode)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(far)
	run(t, "http://"+far+"/healthz", 200, nil, nodeBinary, supergatewayNode, "--stdio", strings.Join(append(paths, "stdio"), " "),
		"--logLevel", "none", "--outputTransport", "ws", "--port", port, "--messagePath", "/socket", "--healthEndpoint", "/healthz")
	config := filepath.Join(t.TempDir(), "mcpbridge.yaml")
	text := fmt.Sprintf("listen: %s\nadmin: %s\nservers:\n  notebook: {builtin: notebook}\n  supergateway: {url: %q, type: ws}\n", listen, admin, "ws://"+far+"/socket")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "http://"+admin+"/readyz", 200, nil, bridgeBinary, "serve", "-c", config)
	return listen
}

// TestWebSocket takes the TypeScript SDK's client through the notebook's column over a
// WebSocket of mcpbridge's, and go-sdk's through that of server-everything, which
// mcpbridge reaches over one of supergateway's.
func TestWebSocket(t *testing.T) {
	addr := startSockets(t)
	m, err := loadMatrix()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("front", func(t *testing.T) { socketFront(t, m, addr) })
	t.Run("back", func(t *testing.T) { socketBack(t, m, addr) })
}

// socketCells are those of the notebook that a legacy client sees otherwise.
const socketCells = `{
	"tool progress": [],
	"tool log": [
		{"op": "request", "method": "logging/setLevel", "params": {"level": "info"}, "want": {}},
		{"op": "call", "params": {"name": "edit_note", "arguments": {"name": "journal", "text": "day two"}},
			"messages": [{"level": "info", "logger": "notebook", "data": "saved note journal"}], "want": {"content": [{"text": "saved"}]}},
		{"op": "request", "method": "logging/setLevel", "params": {"level": "warning"}, "want": {}},
		{"op": "call", "params": {"name": "edit_note", "arguments": {"name": "journal", "text": "day four"}}, "messages": [], "want": {"content": [{"text": "saved"}]}}
	],
	"resource missing": [{"op": "read", "params": {"uri": "note://nowhere"}, "error": {"code": -32002, "data": {"uri": "note://nowhere"}}}]
}`

// socketFront leaves progress out: frames that come in one packet are one event to the
// SDK, which has forgotten the call by the time it looks at what came before the answer.
func socketFront(t *testing.T, m *Matrix, addr string) {
	const client = "sdk-1.32.2"
	var own map[string][]Step
	if err := json.Unmarshal([]byte(socketCells), &own); err != nil {
		t.Fatal(err)
	}
	maps.Copy(m.Servers["notebook"].Cells, own)
	target := remote.Target{Transport: "ws", URL: "ws://" + addr + "/mcp/notebook", Capabilities: []byte(`{}`)}
	r := &legacyRound{remoteClient: startRemote(t, client, target), client: &Client{Revision: "2025-11-25"}}
	for _, f := range m.Features {
		steps, err := m.Servers["notebook"].steps(f, client, "")
		if err != nil {
			t.Fatal(err)
		}
		if len(steps) == 0 {
			continue
		}
		t.Run(f, func(t *testing.T) {
			if err := r.cell(t.Context(), steps); err != nil {
				t.Error(err)
			}
		})
	}
}

func socketBack(t *testing.T, m *Matrix, addr string) {
	c, err := newGoClient(t.Context(), &mcp.StreamableClientTransport{Endpoint: "http://" + addr + "/mcp/supergateway"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.cs.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	}()
	for _, f := range m.Features {
		steps, err := m.Servers["everything-stdio"].steps(f, "go", "")
		if err != nil {
			t.Fatal(err)
		}
		if len(steps) == 0 {
			continue
		}
		t.Run(f, func(t *testing.T) {
			if problem := c.cell(t.Context(), steps); problem != "" {
				t.Error(problem)
			}
		})
	}
}
