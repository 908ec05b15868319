package hosts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// hosts are programs that people use, which say whether they could connect to the servers in their
// configuration.
var hosts = []struct {
	name, binary string
	file         string // in the home
	text         string // of it, with %s for its servers
	modern       bool   // it can use a modern server itself
}{
	{"claude-code", "../../hosts/node_modules/.bin/claude", ".claude.json", "{\n  \"mcpServers\": %s\n}\n", true},
	{"gemini", "../../hosts/node_modules/.bin/gemini", ".gemini/settings.json", "{\n  // trusts this folder\n  \"security\": {\"folderTrust\": {\"enabled\": false}},\n  \"mcpServers\": %s\n}\n", false},
}

const node = "../../node"

// binaries is what TestMain built.
var binaries rig.Binaries

func TestMain(m *testing.M) { os.Exit(rig.Main(m, "", &binaries)) }

func absolute(paths ...string) ([]string, error) {
	for i, p := range paths {
		var err error
		if paths[i], err = filepath.Abs(p); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// TestHosts has hosts connect to a server of each era as their configuration has them, under
// mcpbridge as wrap --install writes it there, and as members of one entry. Those that know no modern
// server can't use it without. Uninstalled, the file has its servers as they were.
func TestHosts(t *testing.T) {
	paths, err := absolute(binaries.Bridge, node+"/node_modules/.bin/node", node+"/node_modules/@modelcontextprotocol/server-everything/dist/index.js", node+"/modern-server.mjs")
	if err != nil {
		t.Fatal(err)
	}
	entry := func(args ...string) string {
		return fmt.Sprintf(`{"command": %q, "args": [%s]}`, paths[1], `"`+strings.Join(args, `", "`)+`"`)
	}
	servers := "{\"old\": " + entry(paths[2], "stdio") + ",\n    \"new\": " + entry(paths[3]) + "}"
	for _, h := range hosts {
		t.Run(h.name, func(t *testing.T) {
			home := t.TempDir()
			file, before := filepath.Join(home, h.file), fmt.Sprintf(h.text, servers)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			env := append(os.Environ(), "HOME="+home, "MCPBRIDGE_STATE_DIR="+filepath.Join(home, "state"))
			binary, err := filepath.Abs(h.binary)
			if err != nil {
				t.Fatal(err)
			}
			run := func(argv ...string) string {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
				cmd.Env, cmd.Dir, cmd.WaitDelay = env, home, 5*time.Second
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%q: %v\n%s", argv, err, out)
				}
				return string(out)
			}
			connects := func(want map[string]bool) {
				t.Helper()
				out := run(append(process.WithCache(binary), "mcp", "list")...)
				for name, connected := range want {
					line := regexp.MustCompile(`(?m)^.*\b` + name + `: .*$`).FindString(out)
					if line == "" || strings.HasSuffix(line, "Connected") != connected {
						t.Errorf("%s connects to %s: %v, want %v:\n%s", h.name, name, !connected, connected, out)
					}
				}
			}
			write := func() {
				if err := os.WriteFile(file, []byte(before), 0o600); err != nil { // as some hosts add to it
					t.Fatal(err)
				}
			}
			undone := func() {
				t.Helper()
				run(paths[0], "wrap", "--uninstall", h.name)
				if now, err := os.ReadFile(file); err != nil || !strings.Contains(string(now), servers) {
					t.Errorf("uninstalled, the file has\n%s\n%v, want that it has\n%s", now, err, servers)
				}
			}
			write()
			connects(map[string]bool{"old": true, "new": h.modern})
			write()
			run(paths[0], "wrap", "--install", h.name)
			if now, err := os.ReadFile(file); err != nil || strings.Count(string(now), paths[0]) != 2 {
				t.Fatalf("installed, the file has\n%s\n%v", now, err)
			}
			undone()
			run(paths[0], "wrap", "--install", h.name)
			connects(map[string]bool{"old": true, "new": true})
			write()
			run(paths[0], "wrap", "--install", h.name, "--all")
			connects(map[string]bool{"mcpbridge": true})
		})
	}
}
