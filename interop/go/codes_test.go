package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/mcpbridge/mcpbridge/interop/internal/match"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// TestL2M09ServersOwnCodes has a server on the Python SDK 2.x fail with codes of the
// range that the specification keeps for itself. A legacy client on either SDK gets
// those to which no revision gives a meaning as they are, as a modern client does.
func TestL2M09ServersOwnCodes(t *testing.T) {
	argv, err := absolute("../bin/python-2/bin/python", "../python/refuse2.py")
	if err != nil {
		t.Fatal(err)
	}
	base := startBridgeOn(t, fmt.Sprintf("  refuse: {command: %q, args: [%q]}\n", argv[0], argv[1]))
	own := map[string]any{"until": "noon"}
	kept := func(code float64) any { return map[string]any{"code": code, "data": own} }
	for _, client := range []string{"python-1", "python-2-legacy", "python-2"} {
		t.Run(client, func(t *testing.T) {
			c := startRemote(t, client, remote.Target{Transport: "http", URL: base + "/mcp/refuse", Capabilities: []byte(`{}`)})
			ctx, cancel := context.WithTimeout(t.Context(), answerTime)
			defer cancel()
			for _, tt := range []struct {
				code, legacy float64
				data         any
			}{{-32050, -32050, own}, {-32099, -32099, own}, {-32000, -32000, own}, {-32042, -32603, kept(-32042)}, {-32021, -32603, kept(-32021)}} {
				want, data := tt.legacy, tt.data
				if client == "python-2" {
					want, data = tt.code, any(own)
				}
				params := json.RawMessage(fmt.Sprintf(`{"name":"refuse","arguments":{"code":%v}}`, tt.code))
				_, err := c.Request(ctx, "tools/call", params)
				var e *remote.Error
				if !errors.As(err, &e) || float64(e.Code) != want {
					t.Errorf("%v: the client got %v, want code %v", tt.code, err, want)
					continue
				}
				var got any
				if err := json.Unmarshal(e.Data, &got); err != nil {
					t.Errorf("%v: data %s: %v", tt.code, e.Data, err)
				}
				if problem := match.Mismatch("", data, got); problem != "" {
					t.Errorf("%v: data: %s", tt.code, problem)
				}
			}
		})
	}
}
