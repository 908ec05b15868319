package sweep

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/record"
	"github.com/mcpbridge/mcpbridge/interop/internal/steer"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// TestMCPRemote has mcp-remote 0.15.1, which desktop clients start to reach a URL, in both of its
// protocols before mcpbridge serve, and behind mcpbridge wrap, as `wrap --install` leaves it.
func TestMCPRemote(t *testing.T) {
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, s := range servers()[:2] {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			st := newStage(t, &s)
			start, _ := st.counted(t, nil)
			var want *seen
			if s.legacy {
				want = st.relayed(t, mcpRemote(st.direct.URL+st.path, "http-only"))
				if got := st.relayed(t, mcpRemote(st.sse, "sse-only")); !slices.Equal(got.tools, want.tools) || got.call != want.call {
					t.Errorf("directly, HTTP+SSE: %+v, want %+v", got, want)
				}
			}
			ways := map[string][]string{
				"serve":           mcpRemote(st.front.URL+"/mcp/swept", "http-only"),
				"serve, HTTP+SSE": mcpRemote(st.front.URL+"/sse/swept", "sse-only"),
			}
			if s.legacy {
				ways["wrap"] = append([]string{st.wrap(t), "--"}, mcpRemote(st.direct.URL+st.path, "http-only")...)
			}
			for way, argv := range ways {
				got := st.relayed(t, argv)
				if len(got.tools) < s.tools || want != nil && (!slices.Equal(got.tools, want.tools) || got.call != want.call) {
					t.Errorf("%s: %+v, want %+v as directly", way, got, want)
				}
			}
			if shown := record.ByClients(st.front.Exchanges()); len(shown) > 0 {
				t.Errorf("mcp-remote shows %v on the wire, want nothing", shown)
			}
			if now, since := st.counted(t, start); len(since) > 0 {
				t.Errorf("mcpbridge counted %v, want %v", now, maps.Clone(start))
			}
		})
	}
}

func mcpRemote(url, transport string) []string {
	argv := append([]string{"env", "HOME=" + home, "MCP_REMOTE_CONFIG_DIR=" + home}, node("programs/node_modules/mcp-remote/dist/proxy.js")...)
	return append(argv, url, "--transport", transport, "--allow-http")
}

// relayed has the TypeScript SDK list and call over the pipes of a command.
func (st *stage) relayed(t *testing.T, argv []string) *seen {
	t.Helper()
	c, err := steer.Start(node("node/remote.mjs", "sdk-1.32.2")...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.End(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	ask := func(method string, params any) string {
		result, err := c.Request(ctx, method, params)
		if err != nil {
			t.Fatalf("%q: %s: %v; it wrote:\n%s", argv, method, err, c.Log())
		}
		text, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	ask("initialize", remote.Target{Transport: "stdio", Argv: argv, Capabilities: json.RawMessage("{}")})
	got := new(seen)
	if got.tools, err = toolsIn(ask("tools/list", map[string]any{})); err != nil {
		t.Fatal(err)
	}
	got.call = ask("tools/call", json.RawMessage(`{"name":"`+st.tool+`","arguments":`+st.arguments+`}`))
	if !strings.Contains(got.call, st.says) {
		t.Errorf("%q: the call says %s, want %q in it", argv, got.call, st.says)
	}
	ask(remote.Close, nil)
	return got
}
