package extensions

import (
	"encoding/json"
	"fmt"
	"testing"
)

// startSkills starts a server of 2026-07-28 with skills and a page.
func startSkills(t *testing.T) string {
	return start(t, func(addr, _ string) (env, argv []string) {
		return nil, node("node/modern-server.mjs", "--http", addr, "./skills-features.mjs")
	})
}

// An app is what a client gets of one tool with a page.
type app struct {
	extension                   json.RawMessage // of the server's capabilities; nil if it declares none
	tool, listed, page, outcome json.RawMessage // _meta of the tool and of its result; entries of the resource
}

func readApp(t *testing.T, c *wireClient, tool string) *app {
	t.Helper()
	a := new(app)
	var declared struct {
		Extensions map[string]json.RawMessage
	}
	if err := json.Unmarshal(c.capabilities(), &declared); err != nil {
		t.Fatal(err)
	}
	a.extension = declared.Extensions["io.modelcontextprotocol/ui"]
	a.tool = member(t, c.result("tools/list", "", ""), "tools", 0, "_meta")
	var uri string
	if err := json.Unmarshal(member(t, a.tool, "ui", "resourceUri"), &uri); err != nil {
		t.Fatal(err)
	}
	a.listed = member(t, c.result("resources/list", "", ""), "resources", 0)
	a.page = member(t, c.result("resources/read", fmt.Sprintf(`"uri": %q`, uri), uri), "contents")
	a.outcome = member(t, c.result("tools/call", fmt.Sprintf(`"name": %q, "arguments": {}`, tool), tool), "content", 0, "type")
	return a
}

// TestM2L07AppsByteForByte takes clients of both eras to servers of both eras with a tool
// that has a page: what the extension io.modelcontextprotocol/ui says is the server's.
func TestM2L07AppsByteForByte(t *testing.T) {
	vanilla := start(t, func(_, port string) (env, argv []string) {
		return []string{"PORT=" + port}, node("node/node_modules/@modelcontextprotocol/server-basic-vanillajs/dist/index.js")
	})
	skills := startSkills(t)
	bridge := serve(t, atURL("vanilla", vanilla), atURL("skills", skills),
		atCommand("piped", node("node/node_modules/@modelcontextprotocol/server-basic-vanillajs/dist/index.js", "--stdio")))
	for _, tt := range []struct {
		server, tool, direct string
		legacy               bool // the server's era
	}{
		{"vanilla", "get-time", vanilla, true},
		{"piped", "get-time", vanilla, true},
		{"skills", "paint", skills, false},
	} {
		want := readApp(t, newWireClient(t, tt.direct, tt.legacy), tt.tool)
		if len(want.page) < 80 {
			t.Errorf("the page of %s is %s, which proves nothing", tt.server, want.page)
		}
		for era, legacy := range map[string]bool{"legacy": true, "modern": false} {
			t.Run(tt.server+" to a client of the "+era+" era", func(t *testing.T) {
				got := readApp(t, newWireClient(t, bridge+tt.server, legacy), tt.tool)
				alike(t, "the extension's settings", got.extension, want.extension)
				alike(t, "_meta of the tool", got.tool, want.tool)
				alike(t, "the resource in the list", got.listed, want.listed)
				alike(t, "the page", got.page, want.page)
				alike(t, "the result", got.outcome, want.outcome)
			})
		}
	}
}
