package auth

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// An example is a protected server that an SDK brings as an example of one, with a tool that
// needs no more than a login.
type example struct {
	name  string
	start func(t *testing.T) (url string)
	call  map[string]any
	want  string // text of the result; any if ""

	// Clients that can't log in with nothing in between, and why.
	not map[string]string
}

var examples = []example{
	{"go-sdk", exampleGo, map[string]any{"name": "echo", "arguments": map[string]any{"input": "hello"}}, "hello", nil},
	{"typescript", exampleTypeScript, map[string]any{"name": "greet", "arguments": map[string]any{"name": "Ann"}}, "Hello, Ann!", nil},
	{"python", examplePython, map[string]any{"name": "get_time", "arguments": map[string]any{}}, "", map[string]string{
		"go-1.8.0": "for an issuer that ends in a slash it asks for metadata at an address that ends in one, and doesn't follow the redirect",
	}},
}

// exampleGo builds go-sdk's examples/auth/server, which takes its settings from the
// source, with an issuer of opaque tokens.
func exampleGo(t *testing.T) string { return exampleOf(t, newIssuer(t)) }

func exampleOf(t *testing.T, as *issuer) string {
	t.Helper()
	_, port, _ := net.SplitHostPort(rig.FreeAddr(t))
	url := "http://localhost:" + port + "/mcp"
	as.set(t, map[string]any{"opaque": []string{url}})
	binary := filepath.Join(t.TempDir(), "example")
	flags := fmt.Sprintf("-X main.authorizationServer=%s -X main.introspectionEndpoint=%s/token/introspection -X main.clientID=introspector -X main.clientSecret=introspector-secret", as.url, as.url)
	out, err := exec.Command("go", "-C", peer("everything-v1.8.0"), "build", "-o", binary, "-ldflags", flags, "github.com/modelcontextprotocol/go-sdk/examples/auth/server").CombinedOutput()
	if err != nil {
		t.Fatalf("building go-sdk's example: %v\n%s", err, out)
	}
	start(t, "localhost:"+port, nil, binary, "-port", port)
	return url
}

// exampleTypeScript starts the example of the TypeScript SDK, which is its own authorization server.
func exampleTypeScript(t *testing.T) string {
	_, port, _ := net.SplitHostPort(rig.FreeAddr(t))
	_, issuer, _ := net.SplitHostPort(rig.FreeAddr(t))
	argv := node("node/node_modules/sdk-1.32.2/dist/esm/examples/server/simpleStreamableHttp.js", "--oauth", "--oauth-strict")
	start(t, "localhost:"+port, []string{"MCP_PORT=" + port, "MCP_AUTH_PORT=" + issuer}, argv...)
	return "http://localhost:" + port + "/mcp"
}

// examplePython starts the two programs of the example of the Python SDK, from its source distribution.
func examplePython(t *testing.T) string {
	_, port, _ := net.SplitHostPort(rig.FreeAddr(t))
	_, issuer, _ := net.SplitHostPort(rig.FreeAddr(t))
	env := []string{"PYTHONPATH=" + peer("bin/python-2-examples/examples/servers/simple-auth")}
	python := peer("bin/python-2/bin/python")
	start(t, "localhost:"+issuer, env, python, "-m", "mcp_simple_auth.auth_server", "--port", issuer)
	start(t, "localhost:"+port, env, python, "-m", "mcp_simple_auth.server", "--auth-server", "http://localhost:"+issuer, "--port", port)
	return "http://localhost:" + port + "/mcp"
}

// called is a result of tools/call, as far as it is looked at here.
type called struct {
	IsError bool
	Content []struct{ Text string }
}

func (e *example) judge(t *testing.T, got *called) {
	t.Helper()
	if got.IsError || len(got.Content) != 1 || e.want != "" && got.Content[0].Text != e.want {
		t.Errorf("%s answered %+v, want the text %q", e.call["name"], got, e.want)
	}
}

// TestExamplesDirectly proves that the harness is right: each client logs in to each
// example with nothing in between.
func TestExamplesDirectly(t *testing.T) {
	takeTurn(t)
	b := newBrowser(t)
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			url := e.start(t)
			for _, c := range clients {
				t.Run(c.name, func(t *testing.T) {
					if why := e.not[c.name]; why != "" {
						t.Skip(why)
					}
					s := c.begin(t)
					request(t, s, "initialize", to(url, &remote.Login{Browser: b.as("alice"), Redirect: redirect}), nil)
					var got called
					request(t, s, "tools/call", e.call, &got)
					e.judge(t, &got)
				})
			}
		})
	}
}
