package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/report"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// steering is a list of texts of others: sequences that rename a window, write its
// clipboard, move, erase, color, answer, or turn the direction of a text. Each of the ways to
// begin one is there, and all that may follow the two that begin most; in full, all pairs.
func steering() []string {
	begins := []string{"\x1b[", "\u009b", "\x1b]", "\u009d", "\x1bP", "\u0090", "\x1b_", "\u009f", "\x1b^", "\u009e", "\x1bX", "\u0098", "\x1b#", "\x1b(", "\x1b ",
		"\x1b", "\r", "\b\b\b", "\x0e", "\x05", "\u202e", "\u2066", "\u0085", "\x7f", "\u2028"}
	rests := []string{"2J", "1;1H", "31m", "?1049h", "6n", "0;owned\x07", "52;c;b3duZWQ=\x1b\\", "8;;http://evil.example\u009cx", "1337;File=:AA\x07", "c", "8", "0", "K", "99A", "?1000h", "5i", "21t", "$q\"p\x1b\\", "+q544e\x1b\\", "G0"}
	var all []string
	for i, r := range rests {
		first := begins
		if i > 0 {
			first = begins[:bridgetest.Numbers(2, len(begins))]
		}
		for _, b := range first {
			all = append(all, "t"+b+r)
		}
	}
	return all
}

var ours = regexp.MustCompile("\x1b\\[(0|2|91|92|93|2;91)m|\r\x1b\\[\\d+A\x1b\\[J|\x1b\\[H\x1b\\[J|\r\n")

// A typescript is what a program wrote to its terminal.
type typescript struct {
	tty  *os.File
	mu   sync.Mutex // guards text
	text strings.Builder
}

func record(t *testing.T) *typescript {
	t.Helper()
	near, far := terminals(t)
	s := &typescript{tty: far}
	go func() { // ends with the terminal
		buf := make([]byte, 1<<16)
		for {
			n, err := near.Read(buf)
			s.mu.Lock()
			s.text.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

// check fails if anything but the program's own sequences is there, or nothing is.
func (s *typescript) check(t *testing.T, what, want string) {
	t.Helper()
	_, _ = s.tty.WriteString("the end")
	bridgetest.Eventually(t, "the end of what was written", func() bool { return strings.HasSuffix(s.String(), "the end") })
	text := ours.ReplaceAllString(s.String(), "\n")
	for line := range strings.Lines(text) {
		if i := strings.IndexFunc(strings.TrimRight(line, "\n"), func(r rune) bool {
			return r < ' ' && r != '\t' || r >= 0x7f && r <= 0x9f || r == '\u202e' || r == '\u2066' || r == '\u2028' || r == '\ufffd'
		}); i >= 0 {
			t.Errorf("%s lets %q steer the terminal", what, line)
			return
		}
	}
	if !strings.Contains(text, want) {
		t.Errorf("%s shows no %q: %q", what, want, text[:min(len(text), 2000)])
	}
}

// endOnceShown ends a program a second after it has shown a text. It ends with that, or with ctx.
func (s *typescript) endOnceShown(ctx context.Context, end func(), text string) {
	defer end()
	for ctx.Err() == nil {
		shown := strings.Contains(s.String(), text)
		if time.Sleep(time.Second); shown {
			return
		}
	}
}

func (s *typescript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// hostile serves MCP of 2025-11-25 with the list in whatever a server says of itself.
func hostile(t *testing.T) string {
	t.Helper()
	list := steering()
	all := strings.Join(list, "\n")
	item := func(member string) (items []map[string]any) {
		for _, s := range list {
			items = append(items, map[string]any{member: s, "name": s, "title": s, "description": s, "inputSchema": map[string]any{"type": "object", "properties": map[string]any{s: map[string]any{"type": "string", "description": s}}}})
		}
		return append(items, map[string]any{member: "good", "name": "good", "inputSchema": map[string]any{"type": "object"}})
	}
	results := map[string]any{
		"initialize": map[string]any{"protocolVersion": "2025-11-25", "serverInfo": map[string]any{"name": all, "title": all, "version": all}, "instructions": all,
			"capabilities": map[string]any{"tools": map[string]any{list[0]: true}, "prompts": map[string]any{}, "resources": map[string]any{}, "experimental": map[string]any{list[0]: map[string]any{}}}},
		"tools/list":               map[string]any{"tools": item("name")},
		"prompts/list":             map[string]any{"prompts": item("name")},
		"resources/list":           map[string]any{"resources": item("uri")},
		"resources/templates/list": map[string]any{"resourceTemplates": item("uriTemplate")},
		"tools/call":               map[string]any{"content": []any{map[string]any{"type": "text", "text": all}, map[string]any{"type": all, "mimeType": all}}},
		"resources/read":           map[string]any{"contents": []any{map[string]any{"uri": "good", "text": all}, map[string]any{"uri": all, "mimeType": all, "blob": ""}}},
		"prompts/get":              map[string]any{"messages": []any{map[string]any{"role": all, "content": map[string]any{"type": "text", "text": all}}}},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if r.Method != "POST" || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		result, ok := results[m.Method]
		reply := map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result}
		if !ok {
			reply = map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": -32601, "message": all}}
		}
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(reply)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// hostileFile is a configuration of a desktop client, as a repository may hold one.
func hostileFile(t *testing.T, url string) string {
	t.Helper()
	servers := map[string]any{"docs": map[string]any{"url": url}}
	for i, s := range steering() {
		servers[fmt.Sprintf("s%d", i)] = map[string]any{"command": "true", "args": []string{s}, "env": map[string]string{"A": s}, "disabled": i%2 == 0, s: 1}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": servers})
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Nothing that a server, a client, a repository's file or an argument says steers the
// terminal of whoever runs a command, in any form of output.
func TestCommandsTakeTerminalControl(t *testing.T) {
	url := hostile(t)
	file := hostileFile(t, url)
	all := strings.Join(steering(), "\n")
	state := "MCPBRIDGE_STATE_DIR=" + t.TempDir()
	pinned := filepath.Join(t.TempDir(), "pin.yaml")
	if err := os.WriteFile(pinned, []byte("servers:\n  docs: {url: "+url+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const escaped = `\x1b[2J`
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"check", file}, escaped},
		{[]string{"check", file, "--json"}, "x1b"},
		{[]string{"check", all}, escaped},
		{[]string{all}, escaped},
		{[]string{"serve", "--name", all, url}, escaped},
		{[]string{"ls", file}, escaped},
		{[]string{"ls", url}, escaped},
		{[]string{"ls", url, "--json"}, `001b[2J`},
		{[]string{"call", url}, escaped},
		{[]string{"call", url, "--json"}, `001b[2J`},
		{[]string{"call", url, "good"}, escaped},
		{[]string{"call", url, "good", "--json"}, `001b[2J`},
		{[]string{"call", url, "bad"}, escaped},
		{[]string{"call", url, all}, escaped},
		{[]string{"read", url, "good"}, escaped},
		{[]string{"read", url, "good", "--json"}, `001b[2J`},
		{[]string{"prompt", url, "good"}, escaped},
		{[]string{"listen", url, "--resource", all}, escaped},
		{[]string{"probe", url}, "Works"},
		{[]string{"probe", url, "--json"}, `001b[2J`},
		{[]string{"pin", "docs", "-c", pinned}, escaped},
		{[]string{"pin", "docs", "-c", pinned, "--json"}, `001b[2J`},
		{[]string{"wrap", "--install", "cursor", "--binary", "/bin/true", "--file", file, "--dry-run"}, `001b[2J`},
		{[]string{"wrap", "--install", "cursor", "--binary", "/bin/true", "--file", file}, "changed"},
		{[]string{"wrap", "--uninstall", "cursor", "--binary", "/bin/true", "--file", file}, "changed"},
		{[]string{"import", "cursor", file}, "servers"},
		{[]string{"login", url, all}, escaped},
		{[]string{"token", all}, escaped},
		{[]string{"healthcheck", all}, escaped},
		{[]string{"top", "--admin", all}, `x1b`},
	} {
		s := record(t)
		args := append([]string{"mcpbridge"}, tt.args...)
		p := process{args: args, environ: []string{state, "HOME=" + t.TempDir()}, stdout: s.tty, stderr: s.tty}
		ctx, cancel := context.WithTimeout(t.Context(), bridgetest.Patience)
		if tt.args[0] == "listen" { // which has no end of its own
			go s.endOnceShown(ctx, cancel, tt.want)
		}
		exitCode(p.run(ctx), s.tty)
		cancel()
		s.check(t, strings.ReplaceAll(fmt.Sprintf("%.60q", tt.args), url, "URL"), tt.want)
	}
}

// What is no terminal gets results and JSON byte for byte.
func TestResultsOfPipesStay(t *testing.T) {
	url, all := hostile(t), strings.Join(steering(), "\n")
	if got := runCommand(t.Context(), nil, "call", url, "good"); !strings.HasPrefix(got.out, all) {
		t.Errorf("call prints %.200q", got.out)
	}
	if got := runCommand(t.Context(), nil, "read", url, "good"); !strings.HasPrefix(got.out, all+"\n") {
		t.Errorf("read prints %.200q", got.out)
	}
	if got := runCommand(t.Context(), nil, "call", url, "--json"); !strings.Contains(got.out, "\u009b2J") {
		t.Errorf("call --json prints %.200q", got.out)
	}
}

// Nor do clients, a command's standard error and a server's errors steer it, in any form of
// the log.
func TestLogsTakeTerminalControl(t *testing.T) {
	url, list := hostile(t), steering()
	noise := noisy(t, list)
	for _, format := range []string{"auto", "text", "json"} {
		for _, access := range []string{"text", "json"} {
			file := filepath.Join(t.TempDir(), "c.yaml")
			text := fmt.Sprintf("log: {level: debug, format: %s, access: %s}\nservers:\n  docs: {url: %s}\n  loud: {command: sh, args: [-c, '%s exec cat']}\n", format, access, url, noise)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s := record(t)
			ctx, cancel := context.WithCancel(t.Context())
			r, w := io.Pipe()
			p := process{args: []string{"mcpbridge", "serve", file, "--json", "--listen", "127.0.0.1:0", "--admin", "off"}, environ: []string{"PATH=" + os.Getenv("PATH")}, stdout: w, stderr: s.tty}
			ended := make(chan int, 1)
			go func() { ended <- exitCode(p.run(ctx), s.tty); _ = w.Close() }() // ends with ctx
			var a report.Announcement
			if err := json.NewDecoder(r).Decode(&a); err != nil {
				t.Fatal(err, s)
			}
			for _, bad := range list {
				sendAs(t, a.Endpoints[0].URL, bad)
			}
			bridgetest.Eventually(t, "the last texts in the log", func() bool {
				return strings.Contains(s.String(), "G0") && strings.Contains(s.String(), noiseEnds)
			})
			cancel()
			<-ended
			s.check(t, "log "+format+", access "+access, "1b[2J")
		}
	}
}

// noiseEnds is the last line of what a noisy command writes.
const noiseEnds = "the noise has ended"

// noisy returns shell commands that write a list to standard error, and then noiseEnds: not
// more at once than the log has of a command's standard error in a second.
func noisy(t *testing.T, list []string) (commands string) {
	t.Helper()
	var all strings.Builder
	for lines := range slices.Chunk(append(slices.Clone(list), noiseEnds), 150) {
		file := filepath.Join(t.TempDir(), "noise")
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if all.Len() > 0 {
			all.WriteString("sleep 1.1; ")
		}
		fmt.Fprintf(&all, "cat %s >&2; ", file)
	}
	return all.String()
}

// sendAs calls a tool with a text in every place that a client has.
func sendAs(t *testing.T, url, bad string) {
	t.Helper()
	q, _ := json.Marshal(bad)
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%[1]s,"method":"tools/call","params":{"name":%[1]s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":%[1]s,"version":%[1]s},"io.modelcontextprotocol/clientCapabilities":{}}}}`, q)
	req, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call",
		"Mcp-Name": "=?base64?" + base64.StdEncoding.EncodeToString([]byte(bad)) + "?="} {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}
