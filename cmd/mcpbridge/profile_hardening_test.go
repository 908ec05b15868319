package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func init() { children["counted"] = countedCommand }

// countedCommand is a server that adds a line to a file for each session, and never answers
// a call of the tool hang.
func countedCommand(args []string) int {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		m, _ := wire.Parse(in.Bytes(), wire.Options{})
		switch name, _ := wire.GetString(m.Params, "name"); {
		case m.Method == spec.MethodInitialize:
			f, err := os.OpenFile(args[0], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return 1
			}
			fmt.Fprintln(f, "started")
			_ = f.Close()
			fmt.Println(strings.ReplaceAll(backtest.SaysWelcome, "%s", m.ID.String()))
		case !m.ID.IsZero() && name != "hang":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`+"\n", m.ID)
		}
	}
	return 0
}

// callAs calls a tool from an address of loopback, as a client of some capabilities.
func callAs(t *testing.T, url, addr, tool, capabilities string) string {
	t.Helper()
	body := strings.Replace(modernRequest("1", "tools/call", `,"name":"`+tool+`"`), `clientCapabilities":{}`, `clientCapabilities":`+capabilities, 1)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool} {
		req.Header.Set(name, value)
	}
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: from.DialContext}}
	resp, err := c.Do(req)
	if err != nil {
		return err.Error() // the test is over, for calls that hang
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}

// Whoever invents capabilities would have a command start a process for each, or have all
// that may run (CWE-770).
func TestM2L07InventedCapabilitiesOfRealChildren(t *testing.T) {
	t.Parallel() // it waits for places
	starts := filepath.Join(t.TempDir(), "starts")
	file := fmt.Sprintf("limits: {command_sessions_each: 3, command_sessions: 5}\nservers: {counted: {timeouts: {connect: 15s}, command: %q, args: [counted, %q], era: legacy, env: {GORACE: atexit_sleep_ms=0}}}", os.Args[0], starts)
	s := serve(t, nil, "-c", configFile(t, file))
	url := s.Endpoints[0].URL
	for n := range 40 {
		if got := callAs(t, url, "127.0.0.2", "x", fmt.Sprintf(`{"experimental":{"x%d":{}},"invented":%d}`, n, n)); !strings.Contains(got, `"content":[]`) {
			t.Fatalf("call %d = %s", n, got)
		}
	}
	if text, err := os.ReadFile(starts); err != nil || strings.Count(string(text), "\n") != 1 {
		t.Errorf("40 clients of invented capabilities had %d processes started, %v; want one", strings.Count(string(text), "\n"), err)
	}
	refused := make(chan string, 10)
	for n := range 10 {
		go func() { refused <- callAs(t, url, "127.0.0.2", "hang", fmt.Sprintf(`{"extensions":{"x/%d":{}}}`, n)) }()
	}
	for range 10 - 3 {
		if got := <-refused; !strings.Contains(got, "raise limits.command_sessions_each") {
			t.Errorf("one of 10 calls that hang = %s, want an error that names limits.command_sessions_each", got)
		}
	}
	if got := callAs(t, url, "127.0.0.3", "x", `{"extensions":{"x/own":{}}}`); !strings.Contains(got, `"content":[]`) {
		t.Errorf("a call of another address = %s, want its answer", got)
	}
	_, metrics := get(t, s.Admin+"/metrics")
	wantParts(t, "/metrics", metrics, `limit="command_sessions_each"`)
}
