package day

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// playwright is the published server with the system's Chromium, and a profile in dir.
func playwright(t *testing.T, dir string) []string {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	node, err := filepath.Abs("../../node/node_modules/.bin/node")
	if err != nil {
		t.Fatal(err)
	}
	cli, err := filepath.Abs("../../node/node_modules/@playwright/mcp/cli.js")
	if err != nil {
		t.Fatal(err)
	}
	return []string{node, cli, "--headless", "--no-sandbox", "--executable-path", chromium, "--user-data-dir", filepath.Join(dir, "profile"), "--output-dir", filepath.Join(dir, "output")}
}

// title is what Playwright's server says of account's page.
const title = "Page Title: Account"

// account serves a page, and returns its URL.
func account(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<title>Account</title>") // the browser is gone if this fails
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// A tab is a client of Playwright's server.
type tab struct {
	*user
	page string // URL
}

// newTab opens a client of an era at to, and has it shown a page.
func newTab(t *testing.T, era string, to remote.Target) *tab {
	t.Helper()
	b := &tab{user: &user{pair: &pair{client: era}, t: t}, page: account(t)}
	t.Cleanup(func() {
		b.close()
		if err := b.c.End(); err != nil {
			t.Error(err)
		}
	})
	b.visit(to)
	return b
}

func (b *tab) visit(to remote.Target) {
	b.start()
	to.Capabilities = json.RawMessage(`{}`)
	if _, err := b.request("initialize", to); err != nil {
		b.fail("connecting: %v", err)
	}
}

// shows calls a tool, and holds that the answer speaks of the page.
func (b *tab) shows(tool string, args map[string]string) {
	b.t.Helper()
	got, err := b.request("tools/call", call(tool, args))
	if all, _ := json.Marshal(got); err != nil || !strings.Contains(string(all), title) {
		b.fail("%s: %v, %s; want the page", tool, err, brief(got))
	}
}

// TestPlaywright has a modern client think for longer than idle, and come back to its page.
// It listens for nothing: a listen stream would keep the process.
func TestPlaywright(t *testing.T) {
	t.Run("wrap", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		cmd := exec.Command(bridge, append([]string{"wrap", "--name", "s", "--"}, playwright(t, dir)...)...)
		cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+dir, "MCPBRIDGE_SERVERS__S__IDLE=1s")
		think(t, &mcp.CommandTransport{Command: cmd})
	})
	t.Run("serve", func(t *testing.T) {
		t.Parallel()
		think(t, &mcp.StreamableClientTransport{Endpoint: servePlaywright(t).URL})
	})
}

func think(t *testing.T, to mcp.Transport) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "day", Version: "1"}, nil).Connect(ctx, to, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	page := account(t)
	for _, p := range []*mcp.CallToolParams{
		{Name: "browser_navigate", Arguments: map[string]string{"url": page}},
		{Name: "browser_snapshot", Arguments: map[string]string{}},
	} {
		got, err := cs.CallTool(ctx, p)
		if all, _ := json.Marshal(got); err != nil || !strings.Contains(string(all), title) {
			t.Fatalf("%s: %v, %s; want the page", p.Name, err, all)
		}
		time.Sleep(3 * time.Second)
	}
}

// TestPlaywrightReconnects has a legacy client over HTTP come back at once to a server that
// locks its profile with the first page: after it has ended its session, and after it has
// been killed.
func TestPlaywrightReconnects(t *testing.T) {
	t.Parallel()
	to := servePlaywright(t)
	b := newTab(t, "legacy", to)
	for i := range 4 {
		b.shows("browser_navigate", map[string]string{"url": b.page})
		if i%2 == 0 {
			b.close()
		} else {
			b.c.Kill()
			b.c = nil
			time.Sleep(1500 * time.Millisecond)
		}
		b.visit(to)
	}
	b.shows("browser_navigate", map[string]string{"url": b.page})
}

// servePlaywright runs it behind mcpbridge serve.
func servePlaywright(t *testing.T) remote.Target {
	t.Helper()
	dir := t.TempDir()
	return serveCommand(t, dir, playwright(t, dir), "1s")
}

// serveCommand runs a command behind mcpbridge serve, which keeps its files in dir.
func serveCommand(t *testing.T, dir string, argv []string, idle string) remote.Target {
	t.Helper()
	listen := rig.FreeAddr(t)
	text, err := json.Marshal(map[string]any{"listen": listen, "admin": "off", "servers": map[string]any{
		"s": map[string]any{"command": argv[0], "args": argv[1:], "idle": idle},
	}})
	file := filepath.Join(dir, "mcpbridge.json")
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := process.Start("mcpbridge", []string{"XDG_CACHE_HOME=" + dir}, bridge, "serve", "-c", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(time.Minute); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(p.Log())
		}
	})
	if err := p.Ready(t.Context(), "http://"+listen, 0); err != nil {
		t.Fatal(err)
	}
	return remote.Target{Transport: "http", URL: "http://" + listen + "/mcp/s"}
}
