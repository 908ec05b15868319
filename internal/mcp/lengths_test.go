package mcp

import (
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Each part of a message that is stored or repeated has a limit, and the error names both.
func TestBoundedLengths(t *testing.T) {
	l := Lengths{ID: 10, ProgressToken: 10, Method: 30, URI: 10, Filter: 50, ClientInfo: 20, Capabilities: 20}
	long := `"` + strings.Repeat("x", 60) + `"`
	for _, tt := range []struct{ message, what string }{
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, ""},
		{`{"jsonrpc":"2.0","id":` + long + `,"method":"tools/list"}`, "the id"},
		{`{"jsonrpc":"2.0","id":1,"method":` + long + `}`, "the method"},
		{`{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"progressToken":` + long + `}}}`, "the progress token"},
		{`{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":` + long + `}}}}`, "clientInfo"},
		{`{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"a":` + long + `}}}}`, "the client's capabilities"},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":` + long + `}}}`, "clientInfo"},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{"a":` + long + `}}}`, "the client's capabilities"},
		{`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":` + long + `}}`, "the URI"},
		{`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"0123456789"}}`, ""},
		{`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"uri":` + long + `}}}`, "the URI"},
		{`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"x":` + long + `}}}`, "the filter"},
		{`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["a:","0123456789A"]}}}`, "the URI"},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"uri":` + long + `}}`, ""},
	} {
		m, err := wire.Parse([]byte(tt.message), wire.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := l.Check(&m)
		switch {
		case tt.what == "" && got != nil:
			t.Errorf("Check(%s) = %v, want nil", tt.message, got)
		case tt.what != "" && (got == nil || got.What != tt.what || !strings.Contains(got.Wire().Message, "limits.")):
			t.Errorf("Check(%s) = %v, want an error about %s that names the limit", tt.message, got, tt.what)
		}
		if tt.what == "the id" && m.ID.Len() > l.ID {
			t.Error("an id that is too long stays in the message")
		}
	}
}
