package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A script is a modern server on the wire, by what it answers to server/discover. It
// answers each other method with the bytes it is given, and keeps what it received.
type script struct {
	answers map[string]string // method to body; SSE if it begins with "data:" or ":"
	status  int               // 0 means 200
	hold    bool              // keep streams open until the client leaves

	mu   sync.Mutex
	got  []*http.Request
	body []string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if m, _ := wire.Parse(body, wire.Options{}); m.Method == spec.MethodDiscover {
		reply(w, http.StatusOK, "", saysModern, m.ID)
		return
	}
	s.mu.Lock()
	s.got, s.body = append(s.got, r), append(s.body, string(body))
	s.mu.Unlock()
	answer := s.answers[r.Header.Get("Mcp-Method")]
	typ := "application/json"
	switch {
	case strings.HasPrefix(answer, "data:"):
		typ = "text/event-stream"
	case !strings.HasPrefix(answer, "{"):
		typ = "text/plain"
	}
	w.Header().Set("Content-Type", typ)
	w.WriteHeader(max(s.status, 200))
	_, _ = io.WriteString(w, answer)
	if s.hold {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

func (s *script) start(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return srv.URL
}

const schema = `{"type":"object","required":["name"],"properties":{
	"name":{"type":"string","description":"Of the note."},"count":{"type":"integer"},"region":{"type":"string","x-mcp-header":"Region"}}}`

const listing = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[{"name":"édit","description":"Edits.\nMore.","inputSchema":` + schema + `}]}}`

func TestCall(t *testing.T) {
	s := &script{answers: map[string]string{
		"tools/list": listing,
		"tools/call": "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":2,\"progress\":1,\"total\":4,\"message\":\"half\"}}\n\n" +
			"data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"saved\"}]}}\n\n",
	}}
	url := s.start(t)
	got := runCommand(t.Context(), nil, "call", url, "édit", "name=x", "region=eu")
	if want := (ran{"saved\n", "progress 1/4 half\n", 0}); got != want {
		t.Errorf("call = %+v, want %+v", got, want)
	}
	h := s.got[1].Header
	for name, want := range map[string]string{
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "=?base64?w6lkaXQ=?=", "Mcp-Param-Region": "eu",
		"Accept": "application/json, text/event-stream", "Content-Type": "application/json",
	} {
		if h.Get(name) != want {
			t.Errorf("%s = %q, want %q", name, h.Get(name), want)
		}
	}
	want := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"édit","arguments":{"name":"x","region":"eu"},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":` + string(implementation()) + `,` +
		`"io.modelcontextprotocol/clientCapabilities":{},"progressToken":2}}}`
	if s.body[1] != want {
		t.Errorf("body = %s, want %s", s.body[1], want)
	}
}

func TestCallJSON(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":2,"result":{"content":[],"n":9007199254740993}}`
	url := (&script{answers: map[string]string{"tools/list": listing, "tools/call": answer}}).start(t)
	if got, want := runCommand(t.Context(), nil, "call", url, "édit", "--json"), (ran{answer + "\n", "", 0}); got != want {
		t.Errorf("call --json = %+v, want %+v", got, want)
	}
}

func TestCallWithoutToolLists(t *testing.T) {
	pages := &script{answers: map[string]string{"tools/list": listing}}
	got := runCommand(t.Context(), nil, "call", pages.start(t))
	if !strings.HasPrefix(got.out, "édit                     Edits.\n    name: string. Of the note.\n    count: integer, optional\n") || got.code != 0 {
		t.Errorf("call URL = %+v", got)
	}
}

// Errors name the endpoint, the cause and the next step.
func TestCallErrors(t *testing.T) {
	reply := func(result string) string { return `{"jsonrpc":"2.0","id":2,` + result + `}` }
	for _, tt := range []struct {
		name   string
		status int
		list   string
		call   string
		want   string
	}{
		{"unknown tool", 0, strings.ReplaceAll(listing, "édit", "other"), "", `URL has no tool "édit"; there are: other`},
		{"no tools", 0, `{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`, "", "URL has no tools"},
		{"tool failed", 0, listing, reply(`"result":{"isError":true,"content":[{"type":"text","text":"disk full"}]}`), "édit failed: disk full"},
		{"questions", 0, listing, reply(`"result":{"resultType":"input_required","inputRequests":{}}`), "édit asks questions, which call can't answer; use a client that can"},
		{"error", 0, listing, reply(`"error":{"code":-32602,"message":"no such note"}`), "calling édit at URL: no such note (code -32602)"},
		{"error on a status", 400, `{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"header"}}`, "", "listing the tools of URL: header (code -32020)"},
		{"not MCP", 502, "Bad Gateway\nfrom somewhere", "", `listing the tools of URL: URL answered 502 Bad Gateway "Bad Gateway", which is not MCP; is the path right, as in /mcp/NAME?`},
		{"JSON that is not MCP", 404, `{"error":"no such page"}`, "", `listing the tools of URL: URL answered 404 Not Found "{\"error\":\"no such page\"}", which is not MCP; is the path right, as in /mcp/NAME?`},
		{"no credentials", 401, `{"error":"invalid_token"}`, "", `listing the tools of URL: URL answered 401 Unauthorized "{\"error\":\"invalid_token\"}", which is not MCP; give it credentials: --header 'Authorization: Bearer …'`},
		{"cut off", 0, listing, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\n", "calling édit at URL: URL: the connection was lost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &script{status: tt.status, answers: map[string]string{"tools/list": tt.list, "tools/call": tt.call}}
			url := s.start(t)
			got := runCommand(t.Context(), nil, "call", url, "édit", "name=x")
			want := "mcpbridge: " + strings.ReplaceAll(tt.want, "URL", url) + "\n"
			if got.code != exitFailure || !strings.HasSuffix(got.err, want) {
				t.Errorf("call = %d, %q, want %d, %q", got.code, got.err, exitFailure, want)
			}
		})
	}
}

func TestCallUnreachable(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	got := runCommand(t.Context(), nil, "call", srv.URL, "x")
	if !strings.HasPrefix(got.err, "mcpbridge: "+srv.URL+" can't be reached: ") || !strings.Contains(got.err, "nothing listens there") {
		t.Errorf("call = %q, want an error that names the endpoint and the next step", got.err)
	}
}

// What prevents the connection has a next step of its own.
func TestCallUntrusted(t *testing.T) {
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	got := runCommand(t.Context(), nil, "call", srv.URL, "x")
	if !strings.HasPrefix(got.err, "mcpbridge: "+srv.URL+" can't be reached: ") || !strings.Contains(got.err, "SSL_CERT_FILE") {
		t.Errorf("call = %q, want it to say how the certificate is trusted", got.err)
	}
}

const (
	ack     = `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["note://todo"]},"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`
	updated = `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"note://todo","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`
	changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`
	ended   = `{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`
)

func frames(messages ...string) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "data: %s\n\n", m)
	}
	return b.String()
}

func TestListen(t *testing.T) {
	s := &script{answers: map[string]string{"subscriptions/listen": frames(ack, updated, changed, ended)}}
	url := s.start(t)
	got := runCommand(t.Context(), nil, "listen", url, "--id", "7", "--tools", "--prompts", "--resource", "note://todo", "--resource", "note://no")
	want := []string{
		"acknowledged: tools, note://todo; the server does not report prompts, note://no",
		"changed: note://todo", "changed: the list of tools", "the server ended the stream; listen again to go on following",
	}
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	if got.code != 0 || got.err != "" || len(lines) != len(want) {
		t.Fatalf("listen = %+v, want the lines %q", got, want)
	}
	for i, line := range lines {
		if _, text, _ := strings.Cut(line, " "); text != want[i] {
			t.Errorf("line %d = %q, want %q after the time", i, line, want[i])
		}
	}
	if want := `"params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["note://todo","note://no"]},"_meta":{`; !strings.Contains(s.body[0], want) || !strings.Contains(s.body[0], `"id":7,`) {
		t.Errorf("body = %s, want %s in it, and the id 7", s.body[0], want)
	}
	if h := s.got[0].Header; h.Get("Mcp-Method") != "subscriptions/listen" || h.Get("MCP-Protocol-Version") != "2026-07-28" || h.Get("Mcp-Name") != "" {
		t.Errorf("headers = %v", h)
	}
}

// --json prints the frames exactly as they came, so that scripts see the wire.
func TestListenJSON(t *testing.T) {
	url := (&script{answers: map[string]string{"subscriptions/listen": frames(ack, updated, ended)}}).start(t)
	got := runCommand(t.Context(), nil, "listen", url, "--id", "7", "--tools", "--json")
	if want := (ran{ack + "\n" + updated + "\n" + ended + "\n", "", 0}); got != want {
		t.Errorf("listen --json = %+v, want %+v", got, want)
	}
}

// A stream that breaks off is told from one that the server ended.
func TestListenEndings(t *testing.T) {
	t.Run("lost", func(t *testing.T) {
		url := (&script{answers: map[string]string{"subscriptions/listen": frames(ack)}}).start(t)
		got := runCommand(t.Context(), nil, "listen", url, "--id", "7", "--tools")
		if want := "mcpbridge: " + url + ": the connection was lost; listen again, and read again what you follow\n"; got.code != exitLost || got.err != want {
			t.Errorf("listen = %d, %q, want %d, %q", got.code, got.err, exitLost, want)
		}
	})
	t.Run("refused", func(t *testing.T) {
		url := (&script{status: 400, answers: map[string]string{"subscriptions/listen": `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"too many"}}`}}).start(t)
		got := runCommand(t.Context(), nil, "listen", url, "--tools")
		if want := "mcpbridge: listening to " + url + ": too many (code -32603)\n"; got.code != exitFailure || got.err != want {
			t.Errorf("listen = %d, %q, want %d, %q", got.code, got.err, exitFailure, want)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		url := (&script{hold: true, answers: map[string]string{"subscriptions/listen": frames(ack)}}).start(t)
		ctx, cancel := context.WithCancel(t.Context())
		out := &cancelling{cancel: cancel, at: "acknowledged"}
		p := process{args: []string{"mcpbridge", "listen", url, "--tools"}, stdout: out, stderr: io.Discard}
		if err := p.run(ctx); err != nil || !strings.HasSuffix(out.String(), " stopped listening\n") {
			t.Errorf("listen = %v, %q, want it to stop in peace", err, out.String())
		}
	})
}

// cancelling ends the command when it prints a word.
type cancelling struct {
	bridgetest.Log
	cancel context.CancelFunc
	at     string
}

func (c *cancelling) Write(p []byte) (int, error) {
	n, err := c.Log.Write(p)
	if strings.Contains(string(p), c.at) {
		c.cancel()
	}
	return n, err
}
