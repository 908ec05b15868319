package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A script is a modern server on the wire. It answers each method with the bytes it is given,
// and keeps what it received.
type script struct {
	answers map[string]string // method to body; SSE if it begins with "data:"
	status  int               // 0 means 200
	hold    bool              // keep streams open until the client leaves

	mu   sync.Mutex
	got  []*http.Request
	body []string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
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

const info = `{"name":"a person"}`

// A typewriter is a Printer that prints into memory, at half past twelve.
type typewriter struct {
	Printer
	out, progress bytes.Buffer
}

// start returns a Printer for the server.
func (s *script) start(t *testing.T) *typewriter {
	t.Helper()
	srv := httptest.NewServer(s)
	w := &typewriter{Printer: Printer{Server: New(srv.URL, Options{Info: []byte(info)}), Name: srv.URL}}
	w.Out, w.Progress = &w.out, &w.progress
	w.Now = func() time.Time { return time.Date(2026, time.July, 28, 12, 30, 0, 0, time.UTC) }
	t.Cleanup(func() {
		w.Server.Close()
		srv.Close()
	})
	return w
}

// printed returns what was printed, and what of progress.
func (w *typewriter) printed() (out, progress string) { return w.out.String(), w.progress.String() }

const noteSchema = `{"type":"object","required":["name"],"properties":{
	"name":{"type":"string","description":"Of the note."},"count":{"type":"integer"},"region":{"type":"string","x-mcp-header":"Region"}}}`

const listing = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[{"name":"édit","description":"Edits.\nMore.","inputSchema":` + noteSchema + `}]}}`

func TestCall(t *testing.T) {
	s := &script{answers: map[string]string{
		"tools/list": listing,
		"tools/call": "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":2,\"progress\":1,\"total\":4,\"message\":\"half\"}}\n\n" +
			"data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"saved\"}]}}\n\n",
	}}
	p := s.start(t)
	if err := p.Call(t.Context(), "édit", []string{"name=x", "region=eu"}); err != nil {
		t.Fatal(err)
	}
	if out, progress := p.printed(); out != "saved\n" || progress != "progress 1/4 half\n" {
		t.Errorf("Call prints %q, and %q of its progress", out, progress)
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
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":` + info + `,` +
		`"io.modelcontextprotocol/clientCapabilities":{},"progressToken":2}}}`
	if s.body[1] != want {
		t.Errorf("body = %s, want %s", s.body[1], want)
	}
}

func TestCallJSON(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":2,"result":{"content":[],"n":9007199254740993}}`
	p := (&script{answers: map[string]string{"tools/list": listing, "tools/call": answer}}).start(t)
	p.AsJSON = true
	err := p.Call(t.Context(), "édit", []string{"name=x"})
	if out, _ := p.printed(); err != nil || out != answer+"\n" {
		t.Errorf("Call = %v and prints %q, want the answer", err, out)
	}
}

func TestCallWithoutToolLists(t *testing.T) {
	p := (&script{answers: map[string]string{"tools/list": listing}}).start(t)
	err := p.ListTools(t.Context())
	if out, _ := p.printed(); err != nil || !strings.HasPrefix(out, "édit                     Edits.\n    name: string. Of the note.\n    count: integer, optional\n") {
		t.Errorf("ListTools = %v and prints %q", err, out)
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
			p := s.start(t)
			err := p.Call(t.Context(), "édit", []string{"name=x"})
			if want := strings.ReplaceAll(tt.want, "URL", p.Name); err == nil || err.Error() != want {
				t.Errorf("Call = %v, want %s", err, want)
			}
		})
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
	p := s.start(t)
	err := p.Follow(t.Context(), wire.NumberID(7), mcp.Filter{Tools: true, Prompts: true, URIs: []string{"note://todo", "note://no"}})
	want := []string{
		"acknowledged: tools, note://todo; the server does not report prompts, note://no",
		"changed: note://todo", "changed: the list of tools", "the server ended the stream; listen again to go on following",
	}
	out, _ := p.printed()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if err != nil || len(lines) != len(want) {
		t.Fatalf("Follow = %v and prints %q, want the lines %q", err, out, want)
	}
	for i, line := range lines {
		if line != "12:30:00 "+want[i] {
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
	p := (&script{answers: map[string]string{"subscriptions/listen": frames(ack, updated, ended)}}).start(t)
	p.AsJSON = true
	err := p.Follow(t.Context(), wire.NumberID(7), mcp.Filter{Tools: true})
	if out, _ := p.printed(); err != nil || out != ack+"\n"+updated+"\n"+ended+"\n" {
		t.Errorf("Follow = %v and prints %q, want the frames", err, out)
	}
}

// A stream that was refused is told from one that a person, or the server, has ended.
func TestListenEndings(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		p := (&script{status: 400, answers: map[string]string{"subscriptions/listen": `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"too many"}}`}}).start(t)
		err := p.Follow(t.Context(), wire.NumberID(1), mcp.Filter{Tools: true})
		if out, _ := p.printed(); err == nil || err.Error() != "listening to "+p.Name+": too many (code -32603)" || out != "" {
			t.Errorf("Follow = %v, and prints %q", err, out)
		}
	})
	for _, asJSON := range []bool{false, true} {
		t.Run(fmt.Sprintf("interrupted, as JSON %v", asJSON), func(t *testing.T) {
			out, err := followUntil(t, nil, asJSON)
			want := "12:30:00 acknowledged: tools, note://todo\n12:30:00 stopped listening\n"
			if asJSON {
				want = ack + "\n"
			}
			if err != nil || out != want {
				t.Errorf("Follow = %v, and prints %q, want it to stop in peace with %q", err, out, want)
			}
		})
	}
	t.Run("can't go on", func(t *testing.T) {
		cause := &RefusedError{Server: "docs", Err: io.EOF, Step: "renew it"}
		if out, err := followUntil(t, cause, false); err != cause || strings.Contains(out, "stopped") {
			t.Errorf("Follow = %v, and prints %q, want %v", err, out, cause)
		}
	})
}

// followUntil follows a stream until it is acknowledged, and ends that with a cause.
func followUntil(t *testing.T, cause error, asJSON bool) (out string, err error) {
	p := (&script{hold: true, answers: map[string]string{"subscriptions/listen": frames(ack)}}).start(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	p.AsJSON, p.Out = asJSON, written(func(b []byte) (int, error) {
		defer cancel(cause)
		return p.out.Write(b)
	})
	err = p.Follow(ctx, wire.NumberID(7), mcp.Filter{Tools: true})
	out, _ = p.printed()
	return out, err
}

type written func([]byte) (int, error)

func (w written) Write(b []byte) (int, error) { return w(b) }

// What is no mistake for certain is sent, and told of.
func TestCallNotesWhatLooksMistaken(t *testing.T) {
	s := &script{answers: map[string]string{"tools/list": listing, "tools/call": `{"jsonrpc":"2.0","id":2,"result":{"content":[]}}`}}
	p := s.start(t)
	err := p.Call(t.Context(), "édit", []string{"name=x", "cuont=1", "colour=2"})
	const note = "It is sent all the same, since the schema does not refuse it.\n"
	want := "mcpbridge: édit: unknown argument \"cuont\"; did you mean \"count\"? " + note + "mcpbridge: édit: unknown argument \"colour\"; known here: name, count, region. " + note
	if _, progress := p.printed(); err != nil || progress != want || !strings.Contains(s.body[1], `"arguments":{"name":"x","cuont":"1","colour":"2"}`) {
		t.Errorf("Call = %v, notes\n%s\nand sends %s, want\n%s", err, progress, s.body[1], want)
	}
}

// A server that went away after it was found is named, with what to do.
func TestCallUnreachable(t *testing.T) {
	const gone = "http://127.0.0.1:1/mcp"
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer secure.Close()
	for url, want := range map[string]string{
		gone:       "connect: connection refused; is mcpbridge serve running there?",
		secure.URL: "trust who issued its certificate: name the authority's file with --cacert",
	} {
		p := Printer{Server: New(url, Options{Info: []byte(info)}), Name: url}
		if err := p.ListTools(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "listing the tools of "+url+": reaching "+url+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("ListTools = %v, want %s", err, want)
		}
		p.Close()
	}
}

// A person who completes a line sees one line for each item, as it may be printed; none if the server
// lists nothing.
func TestItems(t *testing.T) {
	for listed, want := range map[string][]string{
		listing: {"édit: Edits."},
		`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[{"name":"a\u202eb","description":" \n First \u001b[2J.\nSecond."},{"name":"c"}]}}`: {`a\u202eb: First \x1b[2J.`, "c: "},
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}`:                                                                                      nil,
	} {
		p := (&script{answers: map[string]string{"tools/list": listed}}).start(t)
		var got []string
		for name, line := range p.Items(t.Context(), "tools/list", "name") {
			got = append(got, name+": "+line)
		}
		if !slices.Equal(got, want) {
			t.Errorf("items of %s = %q, want %q", listed, got, want)
		}
	}
}
