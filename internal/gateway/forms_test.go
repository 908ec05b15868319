package gateway

import (
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Replicas of all versions call the profiles of the same clients the same, and find each other's
// endpoints: paths are added, and never removed.
func TestForms(t *testing.T) {
	forms := bridgetest.ReadForms(t)
	p, err := newProfiler(ServerOptions{}, "files@2")
	if err != nil {
		t.Fatal(err)
	}
	shared, err := newProfiler(ServerOptions{Command: true, Isolation: IsolateNothing}, "files@2")
	if err != nil {
		t.Fatal(err)
	}
	capable := []byte(`{"sampling":{},"elicitation":{"url":{},"form":{}}}`)
	parts := profileParts{principal: "ada", capabilities: capable, info: []byte(`{"version":"1","name":"c"}`)}
	forms.Want("scope", mcp.PlainScope(p.profile(&parts).Scope))
	forms.Want("scope/anonymous", mcp.PlainScope(p.profile(&profileParts{principal: mcp.Anonymous, capabilities: []byte("{}")}).Scope))
	forms.Want("scope/shared", mcp.PlainScope(shared.profile(&parts).Scope))
	parts.session, parts.revision = "its name", spec.Revision("2025-11-25")
	forms.Want("scope/session", mcp.PlainScope(p.profile(&parts).Scope))

	paths := make(map[string]bool)
	for _, route := range peerRoutes() {
		paths[route.path] = true
	}
	for path := range strings.FieldsSeq(forms.Text("paths")) {
		if !paths[path] {
			t.Errorf("other replicas are not served at %s, which an earlier version asks", path)
		}
	}
}
