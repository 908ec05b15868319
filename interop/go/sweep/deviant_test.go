package sweep

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/interop/internal/record"
)

const (
	both     = "application/json, text/event-stream"
	envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"deviant","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	hello    = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"deviant","version":"1"}}}`
)

// TestDeviants proves that the sweep sees what it looks for: requests that deviate in a known way,
// to servers of which one deviates, show on the wire, and are counted, exactly as often as they were sent.
func TestDeviants(t *testing.T) {
	s := servers()[2] // on mcp-go
	st := newStage(t, &s)
	start, _ := st.counted(t, nil)
	post := func(body string, headers ...string) (session string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, st.front.URL+"/mcp/swept", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {both}}
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			req.Header.Set(name, value)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil || res.StatusCode >= 300 || strings.Contains(string(text), `"error"`) {
			t.Fatalf("%s with %q = %s %s, %v", body, headers, res.Status, text, err)
		}
		return res.Header.Get("Mcp-Session-Id")
	}
	id := "Mcp-Session-Id: " + post(hello)
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`
	post(list, id)
	post(list, id, "Mcp-Protocol-Version: 2025-06-18")
	post(list, id, "Mcp-Protocol-Version: 2026-07-28")
	post(list, id, "Accept: application/json")
	post(hello, "Mcp-Protocol-Version: 2026-07-28")
	const modernList = `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{` + envelope + `}}`
	post(modernList, "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list")
	post(modernList, "Mcp-Protocol-Version: 2025-11-25", "Mcp-Method: tools/list")
	post(modernList, "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list", "Accept: application/json")

	want := map[string]int{"header-revision": 2, "accept": 1, "initialize-under-modern-header": 1, "envelope-under-legacy-header": 1, "modern-accept": 1}
	if shown := record.ByClients(st.front.Exchanges()); !maps.Equal(shown, want) {
		t.Errorf("on the wire there are %v, want %v", shown, want)
	}
	if _, since := st.counted(t, start); !maps.Equal(since, want) {
		t.Errorf("mcpbridge counted %v, want %v", since, want)
	}

	// A tool of mcp-go that has nothing to say.
	before, _ := st.counted(t, nil)
	post(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"nothing","arguments":{},`+envelope+`}}`,
		"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: nothing")
	_, since := st.counted(t, before)
	if shown := record.ByServers(st.back.Exchanges()); !slices.Equal(slices.Sorted(maps.Keys(since)), shown) {
		t.Errorf("mcpbridge counted %v, want %q as the server shows on the wire", since, shown)
	} else {
		t.Logf("a tool of mcp-go that says nothing: %q", shown)
	}
}
