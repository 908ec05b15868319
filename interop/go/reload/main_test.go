//go:build linux

package reload

import (
	"context"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// binaries is what TestMain built.
var binaries rig.Binaries

// TestMain runs the tests, or where mcpbridge has started this program a server.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "server" {
		_ = newServer().Run(context.Background(), &mcp.StdioTransport{}) // it ends with its input
		return
	}
	os.Exit(rig.Main(m, "", &binaries))
}
