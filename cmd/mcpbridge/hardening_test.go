package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func init() { children["tattler"] = tattlerCommand }

// tattlerCommand is a server that tells its secrets to whoever calls, and ends. With an
// argument it does so at once.
func tattlerCommand(args []string) int {
	words := "cannot reach db at 10.1.2.3:5432 with " + os.Getenv("PLAIN") + " and " + os.Getenv("API_TOKEN") + "/end"
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		m, _ := wire.Parse(in.Bytes(), wire.Options{})
		switch {
		case m.Method == spec.MethodInitialize && len(args) == 0:
			fmt.Println(strings.ReplaceAll(backtest.SaysWelcome, "%s", m.ID.String()))
		case !m.ID.IsZero():
			fmt.Fprintln(os.Stderr, words)
			return 3
		}
	}
	return 0
}

// echoing is a server that repeats in its errors what it was asked with.
func echoing(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m, _ := wire.Parse(body, wire.Options{})
	got := r.Header.Get("Authorization") + " and " + r.URL.RawQuery
	switch {
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case m.ID.IsZero():
		w.WriteHeader(http.StatusAccepted)
	case m.Method == spec.MethodInitialize && r.URL.Path == "/mcp":
		backtest.Reply(w, 200, "application/json", backtest.SaysWelcome, m.ID)
	case r.URL.Path == "/mcp":
		backtest.Reply(w, 200, "application/json", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no such token: `+got+`","data":{"got":"`+got+`"}}}`, m.ID)
	default:
		backtest.Reply(w, 500, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no such token: `+got+`"}}`, m.ID)
	}
}

// askEras puts a call to an endpoint as a client of each era does, and returns all that
// it was told.
func askEras(t *testing.T, url string) string {
	t.Helper()
	_, all := post(t, url, modernRequest("1", "tools/call", `,"name":"x"`), "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: x")
	header, text := post(t, url, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"0"}}}`)
	all += text
	if id := header.Get("Mcp-Session-Id"); id != "" {
		_, text = post(t, url, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}`, "Mcp-Session-Id: "+id)
		all += text
	}
	return all
}

func post(t *testing.T, url, body string, headers ...string) (http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Header, string(text)
}

// wantNone fails for each of secrets that stands in text.
func wantNone(t *testing.T, what, text string, secrets ...string) {
	t.Helper()
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			t.Errorf("%s holds %q:\n%.3000s", what, secret, text)
		}
	}
}

func wantParts(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%.3000s", what, part, text)
		}
	}
}

// What a server repeats of our credentials reaches neither its clients, nor the log, nor
// /readyz, nor who probes it.
func TestHardeningEchoedCredentials(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(echoing))
	t.Cleanup(up.Close)
	secrets := []string{"hdr-s3cret", "qry+s3cret", "qry%2Bs3cret", "var-s3cret"}
	file := fmt.Sprintf(`servers:
  up: {url: '%[1]s/mcp?k=qry%%2Bs3cret', headers: {Authorization: 'Bearer hdr-s3cret-${VAR}'}, era: legacy}
  down: {url: '%[1]s/down?k=qry%%2Bs3cret', headers: {Authorization: 'Bearer hdr-s3cret-${VAR}'}, era: legacy}
`, up.URL)
	s := serve(t, []string{"VAR=var-s3cret"}, "-c", configFile(t, file), "--log-level", "debug")
	var told string
	for _, e := range s.Endpoints {
		told += askEras(t, e.URL)
	}
	_, ready := get(t, s.Admin+"/readyz")
	wantParts(t, "what clients were told", told, "no such token: ", "HTTP 500")
	wantNone(t, "what clients were told", told, secrets...)
	wantParts(t, "/readyz", ready, "no such token: ")
	wantNone(t, "/readyz", ready, secrets...)
	wantParts(t, "the log", s.log.String(), "no such token: ")
	wantNone(t, "the log", s.log.String(), secrets...)

	for _, more := range [][]string{nil, {"--json"}} {
		got := runCommand(t.Context(), []string{"PROXY_TOKEN=hdr-s3cret"}, append([]string{"probe", up.URL + "/down?k=qry%2Bs3cret", "-H", "Authorization: Bearer hdr-s3cret-var-s3cret"}, more...)...)
		wantParts(t, "probe", got.out+got.err, "no such token: ")
		wantNone(t, "probe", got.out+got.err, secrets...)
	}
}

// The last lines of a command are for those who run it. Its clients are told its status
// and where more is, and the words where the configuration says so.
func TestHardeningLastWordsAreNotForClients(t *testing.T) {
	for _, tt := range []struct {
		name, args string
		debug      bool
	}{
		{"a call", "tattler", false}, {"the start", "tattler, now", false},
		{"a call, for all to read", "tattler", true}, {"the start, for all to read", "tattler, now", true},
	} {
		for _, era := range []string{"auto", "legacy", "modern"} {
			if era == "modern" && tt.args == "tattler" {
				continue // it greets
			}
			t.Run(tt.name+"/"+era, func(t *testing.T) {
				t.Parallel()
				debug := map[bool]string{true: "debug_errors: true"}[tt.debug]
				path := configFile(t, fmt.Sprintf("%s\nservers: {tattler: {command: %q, args: [%s], era: %s, env: {PLAIN: plain-value, API_TOKEN: token-value, GORACE: atexit_sleep_ms=0}}}", debug, os.Args[0], tt.args, era))
				s := serve(t, nil, "-c", path)
				told := askEras(t, s.Endpoints[0].URL)
				wantNone(t, "what clients were told", told, "plain-value", "token-value")
				if tt.debug {
					wantParts(t, "what clients were told", told, "cannot reach db at 10.1.2.3:5432")
				} else {
					wantNone(t, "what clients were told", told, "cannot reach", "10.1.2.3", "last lines")
					wantParts(t, "what clients were told", told, "exit status 3", "more is in the log of mcpbridge")
				}
				wantParts(t, "the log", s.log.String(), "cannot reach db at 10.1.2.3:5432")
				wantNone(t, "the log", s.log.String(), "plain-value", "token-value")
			})
		}
	}
}

// Under wrap the client is on this machine, and hears of all but the secrets: what it
// inherits is secret by its name alone.
func TestHardeningWrapTellsLastWords(t *testing.T) {
	w := wrap(t, []string{"PLAIN=plain-value", "API_TOKEN=token-value"}, "--", os.Args[0], "tattler")
	w.send(modernRequest("1", "tools/call", `,"name":"x"`))
	w.want(`"id":1`, `cannot reach db at 10.1.2.3:5432 with plain-value and [hidden]/end`)
	_ = w.in.Close()
	_ = w.end() // its status is not what this is about
	wantNone(t, "the log", w.log.String(), "token-value")
}

// Clients are told neither the addresses nor the paths of this side.
func TestHardeningPlacesAreNotForClients(t *testing.T) {
	const nowhere = "127.0.0.1:1"
	for _, tt := range []struct {
		name, server string
		hidden, said []string
	}{
		{"a port where nobody listens", "url: http://" + nowhere + "/mcp", []string{nowhere, "127.0.0.1"}, []string{"connection refused", "nothing listens there"}},
		{"a WebSocket", "url: ws://" + nowhere + "/mcp", []string{nowhere, "127.0.0.1"}, []string{"connection refused", "nothing listens there"}},
		{"no such program", "command: /opt/inner/server", []string{"/opt", "inner"}, []string{"no such file"}},
		{"no such folder", fmt.Sprintf("command: %q, cwd: /opt/inner", os.Args[0]), []string{"/opt/inner", os.Args[0], "/opt", "inner"}, []string{"no such file"}},
		{"no such host", "url: http://inner.invalid/mcp", []string{"inner"}, []string{"looked up"}},
	} {
		for _, era := range []string{"auto", "legacy", "modern"} {
			t.Run(tt.name+"/"+era, func(t *testing.T) {
				t.Parallel()
				s := serve(t, nil, "-c", configFile(t, fmt.Sprintf("servers: {x: {%s, era: %s, timeouts: {connect: 5s}}}", tt.server, era)))
				told := askEras(t, s.Endpoints[0].URL)
				wantNone(t, "what clients were told", told, tt.hidden...)
				wantParts(t, "what clients were told", told, append(tt.said, "more is in the log of mcpbridge")...)
				wantParts(t, "the log", s.log.String(), tt.hidden[0])
			})
		}
	}
}

// A line of the log is short whatever a client names its method, and a server says.
func TestHardeningLogLinesAreCut(t *testing.T) {
	long := strings.Repeat("ü", 50_000)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch m, _ := wire.Parse(body, wire.Options{}); {
		case m.ID.IsZero():
			w.WriteHeader(http.StatusAccepted)
		case m.Method == spec.MethodInitialize:
			backtest.Reply(w, 200, "application/json", backtest.SaysWelcome, m.ID)
		default:
			backtest.Reply(w, 200, "application/json", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"`+long+`"}}`, m.ID)
		}
	}))
	t.Cleanup(up.Close)
	for _, format := range []string{"json", "text"} {
		s := serve(t, nil, "-c", configFile(t, fmt.Sprintf("log: {format: %s}\nservers: {x: {url: '%s/mcp', era: legacy}}", format, up.URL)))
		askEras(t, s.Endpoints[0].URL)
		post(t, s.Endpoints[0].URL, modernRequest("1", "x/"+long, ""), "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: x/"+long[:1000])
		header, _ := post(t, s.Endpoints[0].URL, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"0"}}}`)
		post(t, s.Endpoints[0].URL, `{"jsonrpc":"2.0","id":2,"method":"x/`+long+`","params":{}}`, "Mcp-Session-Id: "+header.Get("Mcp-Session-Id"))
		name := "y/" + strings.Repeat("ü", 400) // which is short enough to be served
		post(t, s.Endpoints[0].URL, modernRequest("1", name, ""), "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: "+name)
		s.stop()
		wantParts(t, "the log", s.log.String(), "y/üüü")
		for line := range strings.Lines(s.log.String()) {
			if _, rest, _ := strings.Cut(line, "y/"); strings.HasPrefix(rest, strings.Repeat("ü", output.MostLogName/2)) {
				t.Errorf("%s: a name of more than %d bytes: %.1000s", format, output.MostLogName, line)
			}
			if len(line) > mostLine {
				t.Errorf("%s: a line of %d bytes: %.300s", format, len(line), line)
			}
		}
		wantParts(t, "the log", s.log.String(), "ü…")
	}
}

// mostLine is what a line with one error and one name may have.
const mostLine = 2<<10 + 256 + 500

// A panic of a command is told without secrets, with where it was.
func TestHardeningPanicIsTold(t *testing.T) {
	path := configFile(t, "state_keys: [a-state-key-of-32-characters]\nservers: {x: {builtin: notebook}}")
	var errs bridgetest.Log
	p := process{args: []string{"mcpbridge", "check", "-c", path}, stdout: panicking{}, stderr: &errs}
	exitCode(p.run(t.Context()), &errs)
	wantParts(t, "the panic", errs.String(), "writing [hidden]", "hardening_test.go:")
}

type panicking struct{}

func (panicking) Write([]byte) (int, error) { panic("writing a-state-key-of-32-characters") }

// What a proxy before a server answers to the handshake of a WebSocket is a page about the
// inside: it is for the log, and for clients only where errors tell them all.
func TestHardeningRefusedHandshake(t *testing.T) {
	const page = "no route to mcp-7 in rack 12"
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, page)
	}))
	t.Cleanup(up.Close)
	for _, debug := range []bool{false, true} {
		for _, era := range []string{"legacy", "modern", "auto"} {
			file := fmt.Sprintf("debug_errors: %v\nservers:\n  up: {url: 'ws%s/mcp', era: %s}\n", debug, strings.TrimPrefix(up.URL, "http"), era)
			s := serve(t, nil, "-c", configFile(t, file))
			told := askEras(t, s.Endpoints[0].URL)
			wantParts(t, "what clients of a server of era "+era+" were told", told, "HTTP 502")
			if !debug {
				wantNone(t, "what clients of a server of era "+era+" were told", told, page)
			} else {
				wantParts(t, "what clients of a server of era "+era+" were told", told, page)
			}
			wantParts(t, "the log", s.log.String(), page)
		}
	}
}
