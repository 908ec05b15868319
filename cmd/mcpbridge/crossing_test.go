package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/report"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// schemas are those that tools have, by a name for the tool.
var schemas = map[string]string{
	"object":  `"inputSchema":{"type":"object"}`,
	"array":   `"inputSchema":{"type":"array"}`,
	"either":  `"inputSchema":{"type":["object","null"]}`,
	"neither": `"inputSchema":{"type":["string","null"]}`,
	"untyped": `"inputSchema":{"properties":{}}`,
	"null":    `"inputSchema":null`,
	"none":    `"title":"t"`,
	"boolean": `"inputSchema":true`,
	"list":    `"inputSchema":{"type":"object"},"outputSchema":{"type":"array"}`,
	"anyOf":   `"inputSchema":{"type":"object"},"outputSchema":{"anyOf":[]}`,
	"true":    `"inputSchema":{"type":"object"},"outputSchema":true`,
	"record":  `"inputSchema":{"type":"object"},"outputSchema":{"type":"object"}`,
	"header":  `"inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}`,
	"twice":   `"inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`,
}

func schemaTools() string {
	var list []string
	for name, rest := range schemas {
		list = append(list, fmt.Sprintf(`{"name":%q,%s}`, name, rest))
	}
	slices.Sort(list)
	return "[" + strings.Join(list, ",") + "]"
}

func toolNames(list []byte) (names []string) {
	for tool := range wire.Elements(list) {
		name, _ := wire.GetString(tool, "name")
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// itemsOf returns what a report says of a feature, in order.
func itemsOf(r *report.Report, feature string) []string {
	for _, c := range r.Crossings {
		if c.Feature == feature {
			return slices.Sorted(slices.Values(c.Items))
		}
	}
	return nil
}

// What the report says is left out is what clients don't get, and nothing else is.
func TestCrossingsLeaveOutWhatTheGatewayDoes(t *testing.T) {
	all := slices.Sorted(maps.Keys(schemas))
	without := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(n string) bool { return slices.Contains(names, n) })
	}
	t.Run("to 2026-07-28", func(t *testing.T) {
		srv := httptest.NewServer(&featured{capabilities: `{"tools":{}}`, list: schemaTools(), headers: make(chan http.Header, 1)})
		defer srv.Close()
		r, _ := probeJSON(t, srv.URL)
		got := runCommand(t.Context(), nil, "call", serve(t, nil, srv.URL).Endpoints[0].URL, "--json")
		left := itemsOf(r, "tools whose input schema is no object")
		if names := toolNames([]byte(got.out)); !slices.Equal(names, without(left)) || len(left) == 0 {
			t.Errorf("left out by the report: %q; clients get %q", left, names)
		}
	})
	t.Run("to 2025-11-25", func(t *testing.T) {
		srv := httptest.NewServer(&featured{modern: true, capabilities: `{"tools":{}}`, list: schemaTools(), headers: make(chan http.Header, 1)})
		defer srv.Close()
		r, _ := probeJSON(t, srv.URL)
		bridge := newServer(t, serve(t, nil, srv.URL).Endpoints[0].URL)
		client, err := bridge.Initialize(t.Context(), 10*time.Second, mcp.Probing{Lists: true})
		if err != nil || len(client.Lists) != 1 {
			t.Fatalf("as a client of the older era: %+v, %v", client, err)
		}
		left := itemsOf(r, "tools whose input schema is no object")
		misplaced := itemsOf(r, "tools whose x-mcp-header can't be a header")
		wrapped := itemsOf(r, "tools whose output schema is no object")
		var names []string
		for _, tool := range client.Lists[0].Items {
			name, _ := wire.GetString(tool, "name")
			names = append(names, name)
			isWrapped := wire.Get(wire.Get(wire.Get(tool, "outputSchema"), "properties"), "result") != nil
			if isWrapped != slices.Contains(wrapped, name) {
				t.Errorf("%s: wrapped %v, by the report %q", name, isWrapped, wrapped)
			}
		}
		slices.Sort(names)
		if !slices.Equal(names, without(append(left, misplaced...))) || len(left) == 0 || !slices.Equal(misplaced, []string{"twice"}) {
			t.Errorf("left out by the report: %q and %q; clients get %q", left, misplaced, names)
		}
		if got := itemsOf(r, "tools with parameters in headers (x-mcp-header)"); !slices.Equal(got, []string{"header"}) {
			t.Errorf("with headers: %q, want header", got)
		}
	})
}

// What is told of a transport is true of it: HTTP+SSE has one stream for all that a
// server says, and resumes nothing.
func TestCrossingsGoByTheTransport(t *testing.T) {
	srv := httptest.NewServer(&featured{capabilities: `{"tools":{}}`, list: schemaTools(), headers: make(chan http.Header, 1)})
	defer srv.Close()
	gateway := serve(t, nil, srv.URL).Endpoints[0].URL
	for _, tt := range []struct{ url, transport, lanes, resumes string }{
		{srv.URL, "Streamable HTTP", "", "changes"},
		{strings.Replace(gateway, "/mcp/", "/sse/", 1), "HTTP+SSE", "lanes.http", ""},
	} {
		r, _ := probeJSON(t, tt.url)
		lanes, resumes := "", ""
		for _, c := range r.Crossings {
			switch c.Feature {
			case "calls at the same time that may be asked back":
				lanes = c.Why
			case "responses that broke off":
				resumes = c.Outcome
			}
		}
		if r.Transport != tt.transport || !strings.Contains(lanes, tt.lanes) || (tt.lanes == "") != (lanes == "") || resumes != tt.resumes {
			t.Errorf("%s: transport %s; of calls %q, of what broke off %q", tt.url, r.Transport, lanes, resumes)
		}
	}
}
