package router

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/gateway/internal/profile"
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
	scope := func(o profile.Options, req mcp.Request) string {
		o.Scope, o.Era = "files@2", func() spec.Era { return spec.Unknown }
		p, err := profile.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Assign(&req); err != nil {
			t.Fatal(err)
		}
		return mcp.PlainScope(req.Profile.Scope)
	}
	forwarded := profile.Options{Settings: settings.Server{ClientInfo: "client"}}
	ada := mcp.Request{Principal: "ada", Capabilities: []byte(`{"sampling":{},"elicitation":{"url":{},"form":{}}}`), ClientInfo: []byte(`{"version":"1","name":"c"}`)}
	forms.Want("scope", scope(forwarded, ada))
	forms.Want("scope/anonymous", scope(profile.Options{}, mcp.Request{Principal: mcp.Anonymous, Capabilities: []byte("{}")}))
	forms.Want("scope/shared", scope(profile.Options{Shared: true, Settings: settings.Server{Isolation: settings.IsolateNothing}}, ada))
	ada.Session, ada.Revision = "its name", "2025-11-25"
	forms.Want("scope/session", scope(forwarded, ada))

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
