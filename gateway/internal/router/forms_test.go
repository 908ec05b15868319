package router

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Replicas of all versions call the profiles of the same clients the same, and find each other's
// endpoints: paths are added, and never removed.
func TestForms(t *testing.T) {
	t.Parallel()
	forms := bridgetest.ReadForms(t)
	p, err := newProfiles(ServerOptions{}, "files@2")
	if err != nil {
		t.Fatal(err)
	}
	shared, err := newProfiles(ServerOptions{Command: true, Settings: settings.Server{Isolation: settings.IsolateNothing}}, "files@2")
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

	var paths []string
	for _, route := range peerRoutes() {
		paths = append(paths, route.path)
	}
	slices.Sort(paths)
	forms.Want(fmt.Sprint("paths/", replicas.Revision), strings.Join(paths, " ")) // another path is another revision
	for revision := range replicas.Revision {
		for path := range strings.FieldsSeq(forms.Text(fmt.Sprint("paths/", revision))) {
			if !slices.Contains(paths, path) {
				t.Errorf("other replicas are not served at %s, which one of revision %d asks", path, revision)
			}
		}
	}
}
