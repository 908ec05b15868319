package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// TestU06EachClientReadsItsEra has clients of both eras use a server on the Python SDK 2.x, which
// speaks both, directly and through mcpbridge with era: client, over stdio and over HTTP. What
// they read is the same: results, and errors of which the server says more in its older era.
func TestU06EachClientReadsItsEra(t *testing.T) {
	argv, err := absolute("../bin/python-2/bin/python", "../python/server2.py")
	if err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	url := "http://" + addr + "/mcp"
	run(t, url, 0, nil, argv[0], argv[1], "--transport", "http", "--port", port)
	base := startSides(t, fmt.Sprintf("  command: {command: %q, args: [%q], era: client}\n  url: {url: %q, era: client}\n", argv[0], argv[1], url))
	direct := map[string]remote.Target{
		"command": {Transport: "stdio", Argv: argv, Capabilities: []byte(`{}`)},
		"url":     {Transport: "http", URL: url, Capabilities: []byte(`{}`)},
	}
	for name, to := range direct {
		for _, client := range []string{"python-1", "python-2-legacy", "python-2"} {
			t.Run(name+" "+client, func(t *testing.T) {
				through := remote.Target{Transport: "http", URL: base + "/mcp/" + name, Capabilities: []byte(`{}`)}
				want, got := readEra(t, client, to), readEra(t, client, through)
				for i, step := range eraSteps {
					if got[i] != want[i] {
						t.Errorf("%s %s = %s, want %s as directly", step.method, step.params, got[i], want[i])
					}
				}
				if legacy := client != "python-2"; legacy != (got[0] == "0: Unknown prompt: greet ") {
					t.Errorf("prompts/get = %s: a legacy client: %v", got[0], legacy)
				}
			})
		}
	}
}

// startSides starts mcpbridge on servers, and waits until it is known which eras they speak: a
// command is started once for each.
func startSides(t *testing.T, servers string) (base string) {
	t.Helper()
	listen, admin, config := freeAddr(t), freeAddr(t), filepath.Join(t.TempDir(), "mcpbridge.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "listen: %s\nadmin: %s\nservers:\n%s", listen, admin, servers), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "http://"+admin+"/healthz", 200, nil, bridgeBinary, "serve", "-c", config)
	for late := time.After(5 * time.Minute); ; {
		res, err := http.Get("http://" + admin + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return "http://" + listen
		}
		select {
		case <-late:
			t.Fatalf("/readyz = %s", res.Status)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// eraSteps are requests of which some are answered in another way in the other era.
var eraSteps = []struct{ method, params string }{
	{"prompts/get", `{"name":"greet"}`},
	{"prompts/get", `{"name":"summarize","arguments":{"name":"nothing"}}`},
	{"resources/read", `{"uri":"memo://nothing"}`},
	{"tools/call", `{"name":"echo","arguments":{"text":"hi"}}`},
	{"tools/call", `{"name":"nothing"}`},
}

// readEra returns what a client reads for each of eraSteps.
func readEra(t *testing.T, client string, to remote.Target) (read []string) {
	t.Helper()
	c := startRemote(t, client, to)
	ctx, cancel := context.WithTimeout(t.Context(), answerTime)
	defer cancel()
	for _, step := range eraSteps {
		result, err := c.Request(ctx, step.method, json.RawMessage(step.params))
		var e *remote.Error
		switch {
		case errors.As(err, &e):
			read = append(read, fmt.Sprintf("%v %s", e, e.Data))
		case err != nil:
			t.Fatalf("%s: %v", step.method, err)
		default:
			read = append(read, fmt.Sprint(result))
		}
	}
	return read
}
