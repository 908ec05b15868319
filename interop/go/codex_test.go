package interop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
)

const codexBinary = "../programs/node_modules/.bin/codex"

// A codexHome is the home of a person who uses Codex, whose configuration has MCP servers.
type codexHome struct {
	dir, file string
	bridge    string
}

// newCodexHome returns a home with a server called everything.
func newCodexHome(t *testing.T) *codexHome {
	paths, err := absolute(bridgeBinary, nodeBinary, everythingNode)
	if err != nil {
		t.Fatal(err)
	}
	h := &codexHome{dir: t.TempDir(), bridge: paths[0]}
	h.file = filepath.Join(h.dir, ".codex", "config.toml")
	if err := os.Mkdir(filepath.Dir(h.file), 0o700); err != nil {
		t.Fatal(err)
	}
	h.write(t, fmt.Sprintf("# mine\n[mcp_servers.everything]\ncommand = %q # node\nargs = [%q, 'stdio']\nstartup_timeout_sec = 120\n", paths[1], paths[2]))
	return h
}

func (h *codexHome) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(h.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (h *codexHome) read(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(h.file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (h *codexHome) env() []string {
	return append(os.Environ(), "HOME="+h.dir, "CODEX_HOME="+filepath.Dir(h.file), "MCPBRIDGE_STATE_DIR="+filepath.Join(h.dir, "state"))
}

// wrap runs mcpbridge wrap.
func (h *codexHome) wrap(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(h.bridge, append([]string{"wrap"}, args...)...)
	cmd.Env = h.env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
}

// A codex is Codex, used over its app server.
type codex struct {
	t      *testing.T
	in     io.Writer
	out    *bufio.Scanner
	log    process.Tail
	id     int
	thread string
	asked  []string // by servers
}

// start starts Codex, and a conversation in it.
func (h *codexHome) start(t *testing.T) *codex {
	t.Helper()
	argv := process.WithCache(codexBinary, "app-server")
	cmd := exec.Command(argv[0], argv[1:]...)
	c := &codex{t: t}
	cmd.Env, cmd.Stderr = h.env(), &c.log
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.in, c.out = in, bufio.NewScanner(out)
	c.out.Buffer(nil, 16<<20)
	late := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // it was killed if it did not end
		late.Stop()
	})
	c.ask("initialize", `{"clientInfo":{"name":"test","version":"1"},"capabilities":{"experimentalApi":true}}`, nil)
	c.send(`{"method":"initialized"}`)
	var begun struct{ Thread struct{ ID string } }
	c.ask("thread/start", `{"cwd":"`+h.dir+`"}`, &begun)
	c.thread = begun.Thread.ID
	return c
}

func (c *codex) send(text string) {
	if _, err := io.WriteString(c.in, text+"\n"); err != nil {
		c.t.Fatalf("writing to Codex: %v; it wrote:\n%s", err, c.log.String())
	}
}

// ask sends a request, and reads its result. Whatever a server asks meanwhile is accepted, with a name.
func (c *codex) ask(method, params string, result any) {
	c.t.Helper()
	c.id++
	c.send(fmt.Sprintf(`{"id":%d,"method":%q,"params":%s}`, c.id, method, params))
	for c.out.Scan() {
		var m struct {
			ID            *int
			Method        string
			Params        json.RawMessage
			Result, Error json.RawMessage
		}
		if err := json.Unmarshal(c.out.Bytes(), &m); err != nil {
			c.t.Fatalf("Codex wrote %s: %v", c.out.Text(), err)
		}
		switch {
		case m.Method == "mcpServer/elicitation/request" && m.ID != nil:
			var q struct{ ServerName, Message string }
			if err := json.Unmarshal(m.Params, &q); err != nil {
				c.t.Fatal(err)
			}
			c.asked = append(c.asked, q.ServerName+": "+q.Message)
			c.send(fmt.Sprintf(`{"id":%d,"result":{"action":"accept","content":{"name":"Ann"}}}`, *m.ID))
		case m.Method != "" || m.ID == nil || *m.ID != c.id:
		case m.Error != nil:
			c.t.Fatalf("%s = %s; Codex wrote:\n%s", method, m.Error, c.log.String())
		case result != nil:
			if err := json.Unmarshal(m.Result, result); err != nil {
				c.t.Fatal(err)
			}
			return
		default:
			return
		}
	}
	c.t.Fatalf("Codex ended during %s: %v; it wrote:\n%s", method, c.out.Err(), c.log.String())
}

// A codexServer is what Codex knows of a server.
type codexServer struct {
	Name       string
	Tools      map[string]json.RawMessage
	ToolsError string
}

// servers returns what Codex knows of its servers.
func (c *codex) servers() (all map[string]codexServer) {
	c.t.Helper()
	var got struct{ Data []codexServer }
	c.ask("mcpServerStatus/list", `{}`, &got)
	all = make(map[string]codexServer)
	for _, s := range got.Data {
		all[s.Name] = s
	}
	return all
}

// call calls a tool, and returns its content.
func (c *codex) call(server, tool, arguments string) string {
	c.t.Helper()
	var got struct{ Content json.RawMessage }
	c.ask("mcpServer/tool/call", fmt.Sprintf(`{"server":%q,"threadId":%q,"tool":%q,"arguments":%s}`, server, c.thread, tool, arguments), &got)
	return string(got.Content)
}

// TestCodex has Codex itself use a server as its configuration has it, under mcpbridge as wrap
// --install writes it there, and as one of a group: it sees the same tools, gets the same answers, and
// is asked the same. Uninstalled, the file is what it was.
func TestCodex(t *testing.T) {
	h := newCodexHome(t)
	before := h.read(t)
	const server, question = "everything", "trigger-elicitation-request"
	direct := h.start(t)
	want := direct.servers()[server]
	if len(want.Tools) < 10 || want.Tools[question] == nil {
		t.Fatalf("without mcpbridge Codex knows %d tools: %+v", len(want.Tools), want)
	}
	answer, told := direct.call(server, "echo", `{"message":"a \" b"}`), direct.call(server, question, `{}`)
	if !strings.Contains(answer, `Echo: a \" b`) || !strings.Contains(told, "Name: Ann") || len(direct.asked) != 1 {
		t.Fatalf("without mcpbridge: %s, %s, %q", answer, told, direct.asked)
	}
	for _, way := range []struct {
		what, server, prefix string
		install              []string
	}{
		{"one", server, "", []string{"--install", "codex", server}},
		{"all", "mcpbridge", server + "__", []string{"--install", "codex", "--all"}},
	} {
		t.Run(way.what, func(t *testing.T) {
			h.wrap(t, way.install...)
			if now := h.read(t); now == before || !strings.Contains(now, h.bridge) {
				t.Fatalf("installed, the file has\n%s", now)
			}
			c := h.start(t)
			got := c.servers()[way.server]
			if len(got.Tools) != len(want.Tools) {
				t.Fatalf("Codex knows %d tools, want %d: %+v", len(got.Tools), len(want.Tools), got)
			}
			for name, tool := range want.Tools {
				if text := strings.ReplaceAll(string(got.Tools[way.prefix+name]), `"name":"`+way.prefix, `"name":"`); text != string(tool) {
					t.Errorf("%s = %s, want %s", name, text, tool)
				}
			}
			if text := c.call(way.server, way.prefix+"echo", `{"message":"a \" b"}`); text != answer {
				t.Errorf("a call = %s, want %s", text, answer)
			}
			if text := c.call(way.server, way.prefix+question, `{}`); text != told {
				t.Errorf("a call that asks = %s, want %s", text, told)
			}
			if len(c.asked) != 1 || !strings.HasSuffix(c.asked[0], strings.TrimPrefix(direct.asked[0], server+": ")) {
				t.Errorf("the user was asked %q, want %q", c.asked, direct.asked)
			}
			h.wrap(t, "--uninstall", "codex")
			if now := h.read(t); now != before {
				t.Errorf("uninstalled, the file has\n%s\nwant\n%s", now, before)
			}
		})
	}
}

// TestCodexAndAModernServer has Codex, which can't use a server of 2026-07-28, use it through
// mcpbridge.
func TestCodexAndAModernServer(t *testing.T) {
	h := newCodexHome(t)
	paths, err := absolute(nodeBinary, modernNode)
	if err != nil {
		t.Fatal(err)
	}
	h.write(t, fmt.Sprintf("[mcp_servers.notes]\ncommand = %q\nargs = [%q]\nstartup_timeout_sec = 120\n", paths[0], paths[1]))
	if got := h.start(t).servers()["notes"]; len(got.Tools) != 0 || got.ToolsError == "" {
		t.Fatalf("Codex itself knows %+v of a modern server, want an error: the test shows nothing then", got)
	}
	h.wrap(t, "--install", "codex", "notes")
	c := h.start(t)
	got := c.servers()["notes"]
	if len(got.Tools) == 0 || got.ToolsError != "" {
		t.Fatalf("Codex knows %+v", got)
	}
	if text := c.call("notes", "test_simple_text", `{}`); text != `[{"type":"text","text":"a simple text"}]` {
		t.Errorf("a call = %s", text)
	}
}
