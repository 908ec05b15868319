package gateway

import (
	"net/http"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// Replicas of all versions call a server the same that is configured the same.
func TestFormOfDefinition(t *testing.T) {
	forms := bridgetest.ReadForms(t)
	for name, s := range map[string]ServerOptions{
		"definition": {URL: "https://a.example/mcp"},
		"definition/url": {URL: "https://u:p@a.example/mcp?key=k", Transport: TransportSSE, Header: http.Header{"x-key": {"one"}},
			UpstreamAuth: &UpstreamAuth{ClientCredentials: &IssuerClient{Issuer: "https://issuer", ClientID: "c", Resource: "r", Audience: "a", Scopes: []string{"read"}}},
			Era:          Modern, Isolation: IsolateRequest, ForwardClientInfo: true, Experimental: true, HideExtensions: []string{"x"}, Subresources: SubresourcesOff,
			Synthesize: Synthesize{Tools: time.Second, Prompts: 2 * time.Second, Resources: 3 * time.Second, Updates: 4 * time.Second}},
		"definition/command":     {Command: []string{"x", "-a", "b", "--token", "t"}, Dir: "/d", Env: map[string]string{"KEY": "one"}, Roots: []string{"file:///r"}},
		"definition/login":       {URL: "https://a.example/mcp", UpstreamAuth: &UpstreamAuth{Login: &StoredLogin{Principal: "ada", Issuer: "https://issuer", ClientID: "c", Scopes: []string{"read"}}}},
		"definition/passthrough": {URL: "https://a.example/mcp", UpstreamAuth: &UpstreamAuth{Passthrough: true}},
	} {
		forms.Want(name, digestOf(&s))
	}
}
