package reload

import (
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
)

// The keys that have changed are named, and none of their values.
func TestChanged(t *testing.T) {
	const secret = "s3cret-of-16-characters"
	was := &config.Config{Drain: 1, Auth: &config.Auth{Tokens: []config.Token{{Name: "ada", Token: secret}}}}
	is := &config.Config{Drain: 2, AdminToken: secret, Auth: &config.Auth{Tokens: []config.Token{{Name: "ada", Token: secret + "2"}}}}
	is.Limits.Body, is.Log.Level, is.Audit.Required = 7, "debug", true
	was.Servers = []config.Server{{Name: "same"}, {Name: "gone"}, {Name: "other", URL: "http://a/" + secret}}
	is.Servers = []config.Server{{Name: "added"}, {Name: "other", URL: "http://b/" + secret, Headers: map[string]string{"X": secret}}, {Name: "same"}}
	is.Servers[1].Linger = 3
	was.Groups = []config.Group{{Name: "former"}, {Name: "team", Servers: []string{"same"}, Members: []string{"same"}}}
	is.Groups = []config.Group{{Name: "new"}, {Name: "team", Servers: []string{"same", "added"}, Members: []string{"same", "added"}}}
	const want = "admin_token audit.required auth.tokens drain groups.former groups.new groups.team.servers limits.body log.level servers.added servers.gone servers.other.headers servers.other.linger servers.other.url"
	if got := strings.Join(Changed(was, is), " "); got != want {
		t.Errorf("Changed = %s, want %s", got, want)
	}
	if got := Changed(was, was); got != nil {
		t.Errorf("of the same: %q", got)
	}
}
