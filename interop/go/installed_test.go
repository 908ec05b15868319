package interop

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
)

// TestG18InstalledAsOne starts the very entry that wrap --install --all writes into a host's file,
// as the host does, and uses two servers that stood there before. Uninstalling leaves the file as
// it was.
func TestG18InstalledAsOne(t *testing.T) {
	paths, err := absolute(bridgeBinary, nodeBinary, everythingNode, filesNode)
	dir := t.TempDir()
	if err == nil {
		err = testFiles(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) string {
		quoted, _ := json.Marshal(s) // a string can be
		return string(quoted)
	}
	file := filepath.Join(t.TempDir(), "mcp.json")
	before := "{\n  \"mcpServers\": {\n    \"everything\": {\"command\": " + text(paths[1]) + ", \"args\": [" + text(paths[2]) + ", \"stdio\"]}, // all there is\n" +
		"    \"files\": {\n      \"command\": " + text(paths[1]) + ",\n      \"args\": [" + text(paths[3]) + ", " + text(dir) + "],\n    },\n  },\n}\n"
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	bridge := func(args ...string) {
		t.Helper()
		cmd := exec.Command(paths[0], append(args, "--file", file)...)
		cmd.Env = append(os.Environ(), "MCPBRIDGE_STATE_DIR="+home)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	bridge("wrap", "--install", "cursor", "--all")
	usesEntry(t, file, dir)
	bridge("wrap", "--uninstall", "cursor")
	if got, err := os.ReadFile(file); err != nil || string(got) != before {
		t.Errorf("uninstalled, the file has\n%s, %v, want\n%s", got, err, before)
	}
}

// usesEntry starts the only server of a host's file, which has commas at its ends, and calls a tool
// of each of two servers behind it.
func usesEntry(t *testing.T, file, dir string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var host struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	plain := strings.NewReplacer(",\n    }", "\n    }", ",\n  }", "\n  }", ",\n}", "\n}").Replace(string(data))
	if err := json.Unmarshal([]byte(plain), &host); err != nil || len(host.Servers) != 1 {
		t.Fatalf("installed, the file has\n%s, %v", data, err)
	}
	entry := host.Servers["mcpbridge"]
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	argv := process.WithCache(append([]string{entry.Command}, entry.Args...)...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var log process.Tail
	cmd.Stderr = &log
	c, err := newGoClient(ctx, &mcp.CommandTransport{Command: cmd})
	if err != nil {
		t.Fatalf("connecting: %v; it wrote:\n%s", err, log.String())
	}
	want := []string{"everything__echo", "files__list_directory"}
	var names []string
	lacks := func(name string) bool { return !slices.Contains(names, name) }
	for late := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Second) { // a list lacks a server that takes long to start
		names = nil
		for tool, err := range c.cs.Tools(ctx, nil) {
			if err != nil {
				t.Fatalf("listing: %v; it wrote:\n%s", err, log.String())
			}
			names = append(names, tool.Name)
		}
		if !slices.ContainsFunc(want, lacks) || time.Now().After(late) {
			break
		}
	}
	for _, name := range want {
		if lacks(name) {
			t.Errorf("tools %q, want %s", names, name)
		}
	}
	for name, args := range map[string]map[string]any{"everything__echo": {"message": "hello"}, "files__list_directory": {"path": dir}} {
		if r, err := c.cs.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args}); err != nil || r.IsError {
			t.Errorf("%s: %+v, %v; it wrote:\n%s", name, r, err, log.String())
		}
	}
	if err := c.cs.Close(); err != nil {
		t.Errorf("closing: %v; it wrote:\n%s", err, log.String())
	}
}
