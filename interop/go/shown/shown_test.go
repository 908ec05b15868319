package shown

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
	"github.com/mcpbridge/mcpbridge/interop/internal/steer"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

var programs rig.Binaries

func TestMain(m *testing.M) { os.Exit(rig.Main(m, "", &programs)) }

// peer returns the absolute path of a file of interop/.
func peer(path string) string {
	abs, err := filepath.Abs("../../" + path)
	if err != nil {
		panic(err) // there is no working directory
	}
	return abs
}

const everything = "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js"

// clients are those of SDKs, by the revision that they settle on with mcpbridge.
var clients = []struct {
	name, revision string
	argv           []string
}{
	{"typescript-1.32.2", "2025-11-25", []string{"node/node_modules/.bin/node", "node/remote.mjs"}},
	{"typescript-2.4.0", "2026-07-28", []string{"node/node_modules/.bin/node", "node/remote-2.mjs"}},
}

// choice is what is shown of server-everything.
const choice = `
    tools: {deny: ["get-e*", "toggle-*"], rename: {echo: say, get-sum: echo}, describe: {say: "Says it again."}}
    prompts: {allow: ["*-prompt"], rename: {completable-prompt: team}}
    resources: {deny: ["demo://resource/static/*"]}
`

// TestG03Everything takes clients of both eras to server-everything, over HTTP and as a command,
// and to a server of 2026-07-28 that compares Mcp-Name with its body: they see what is chosen, by
// its new names, and nothing else.
func TestG03Everything(t *testing.T) {
	at, modern, admin, listen := rig.FreeAddr(t), rig.FreeAddr(t), rig.FreeAddr(t), rig.FreeAddr(t)
	_, port, _ := strings.Cut(at, ":")
	nodeBinary := peer("node/node_modules/.bin/node")
	start(t, at, []string{"PORT=" + port}, nodeBinary, peer(everything), "streamableHttp")
	start(t, modern, nil, nodeBinary, peer("node/modern-server.mjs"), "--http", modern)
	config := fmt.Sprintf(`
listen: %s
admin: %s
servers:
  http:
    url: http://%s/mcp%s
  stdio:
    command: %q
    args: [%q, stdio]%s
  modern:
    url: http://%s/
    tools: {rename: {test_simple_text: "simple.text"}, deny: [test_image_content]}
`, listen, admin, at, choice, nodeBinary, peer(everything), choice, modern)
	bridge := programs.StartBridge(t, config, admin)
	defer func() {
		if err := bridge.Stop(time.Minute); err != nil {
			t.Errorf("%v\n%s", err, bridge.Log())
		}
	}()
	for _, c := range clients {
		for _, server := range []string{"http", "stdio"} {
			t.Run(c.name+" "+server, func(t *testing.T) {
				s := begin(t, c.argv, c.revision, "http://"+listen+"/mcp/"+server)
				seesChosen(t, s)
			})
		}
		t.Run(c.name+" modern", func(t *testing.T) {
			s := begin(t, c.argv, c.revision, "http://"+listen+"/mcp/modern")
			if names := list(t, s, "tools", "name"); !slices.Contains(names, "simple.text") || slices.Contains(names, "test_simple_text") || slices.Contains(names, "test_image_content") {
				t.Errorf("the tools are %q", names)
			}
			var result struct{ Content []struct{ Text string } }
			if err := ask(t, s, "tools/call", map[string]any{"name": "simple.text", "arguments": map[string]any{}}, &result); err != nil || len(result.Content) != 1 {
				t.Errorf("simple.text = %+v, %v", result, err)
			}
			unknown(t, s, "tools/call", "test_image_content", "Unknown tool: ")
		})
	}
}

// seesChosen proves what a client sees of server-everything.
func seesChosen(t *testing.T, s *steer.Client) {
	tools := list(t, s, "tools", "name")
	if slices.Contains(tools, "get-env") || slices.Contains(tools, "toggle-simulated-logging") || slices.Contains(tools, "get-sum") || !slices.Contains(tools, "say") || !slices.Contains(tools, "echo") || len(tools) < 8 {
		t.Errorf("the tools are %q", tools)
	}
	if texts := list(t, s, "tools", "description"); !slices.Contains(texts, "Says it again.") || slices.Contains(texts, "Echoes back the input string") {
		t.Errorf("the descriptions of tools are %q", texts)
	}
	if prompts := list(t, s, "prompts", "name"); !slices.Contains(prompts, "team") || slices.Contains(prompts, "completable-prompt") || len(prompts) != 4 {
		t.Errorf("the prompts are %q", prompts)
	}
	if resources := list(t, s, "resources", "uri"); len(resources) != 0 {
		t.Errorf("the resources are %q, want none of the static ones", resources)
	}
	var result struct{ Content []struct{ Text string } }
	for name, args := range map[string]map[string]any{"say": {"message": "hello"}, "echo": {"a": 2, "b": 3}} {
		err := ask(t, s, "tools/call", map[string]any{"name": name, "arguments": args}, &result)
		if want := map[string]string{"say": "Echo: hello", "echo": "The sum of 2 and 3 is 5."}[name]; err != nil || len(result.Content) != 1 || result.Content[0].Text != want {
			t.Errorf("%s = %+v, %v, want %q", name, result, err, want)
		}
	}
	var completed struct{ Completion struct{ Values []string } }
	err := ask(t, s, "completion/complete", map[string]any{"ref": map[string]any{"type": "ref/prompt", "name": "team"}, "argument": map[string]any{"name": "department", "value": "E"}}, &completed)
	if err != nil || !slices.Equal(completed.Completion.Values, []string{"Engineering"}) {
		t.Errorf("the completion is %+v, %v", completed, err)
	}
	unknown(t, s, "tools/call", "get-env", "Unknown tool: ")
	unknown(t, s, "tools/call", "Get-Sum", "Unknown tool: ")
	unknown(t, s, "prompts/get", "completable-prompt", "Unknown prompt: ")
	if err := ask(t, s, "resources/read", map[string]any{"uri": "demo://resource/static/document/features.md"}, nil); err == nil || !strings.Contains(err.Error(), "Resource not found") {
		t.Errorf("a hidden resource: %v", err)
	}
	var read struct{ Contents []struct{ URI string } }
	if err := ask(t, s, "resources/read", map[string]any{"uri": "demo://resource/dynamic/text/1"}, &read); err != nil || len(read.Contents) != 1 {
		t.Errorf("a resource that is shown: %+v, %v", read, err)
	}
}

// unknown proves that there is nothing of a name.
func unknown(t *testing.T, s *steer.Client, method, name, want string) {
	t.Helper()
	err := ask(t, s, method, map[string]any{"name": name, "arguments": map[string]any{}}, nil)
	e := (*remote.Error)(nil)
	if !errors.As(err, &e) || e.Code != -32602 || !strings.Contains(e.Message, want+name) {
		t.Errorf("%s of %s: %v, want -32602 with %q", method, name, err, want+name)
	}
}

// begin starts a client, which connects.
func begin(t *testing.T, argv []string, revision, url string) *steer.Client {
	t.Helper()
	words := []string{peer(argv[0]), peer(argv[1])}
	if strings.HasSuffix(argv[1], "remote.mjs") {
		words = append(words, "sdk-1.32.2")
	}
	s, err := steer.Start(words...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.End(); err != nil || t.Failed() {
			t.Logf("%v; the client wrote:\n%s", err, s.Log())
		}
	})
	var met struct{ ProtocolVersion string }
	err = ask(t, s, "initialize", &remote.Target{Transport: "http", URL: url, Capabilities: json.RawMessage("{}")}, &met)
	if err != nil || met.ProtocolVersion != "" && met.ProtocolVersion != revision {
		t.Fatalf("initialize = %+v, %v, want %s", met, err, revision)
	}
	return s
}

// list returns a member of all items of a list.
func list(t *testing.T, s *steer.Client, of, member string) (all []string) {
	t.Helper()
	var found map[string]json.RawMessage
	var items []map[string]any
	err := ask(t, s, of+"/list", map[string]any{}, &found)
	if err == nil {
		err = json.Unmarshal(found[of], &items)
	}
	if err != nil {
		t.Fatalf("%s/list: %v", of, err)
	}
	for _, item := range items {
		text, _ := item[member].(string)
		all = append(all, text)
	}
	return all
}

// ask asks and decodes what came.
func ask(t *testing.T, s *steer.Client, method string, params, into any) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	got, err := s.Request(ctx, method, params)
	if err != nil || into == nil {
		return err
	}
	text, err := json.Marshal(got)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// start starts a program that listens at addr, and waits for it.
func start(t *testing.T, addr string, env []string, argv ...string) {
	t.Helper()
	p, err := process.Start(filepath.Base(argv[1]), env, argv...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(10 * time.Second); err != nil || t.Failed() {
			t.Logf("%v; %s wrote:\n%s", err, argv[1], p.Log())
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), process.StartTime)
	defer cancel()
	if err := p.Ready(ctx, "http://"+addr+"/", 0); err != nil {
		t.Fatal(err)
	}
}
