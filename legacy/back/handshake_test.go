package back

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// listOnce is the least a server does for one request.
func listOnce(w http.ResponseWriter, _ *http.Request, m wire.Message) {
	legacytest.AnswerJSON(w, m.ID, `{"tools":[]}`)
}

func TestM2L01Handshake(t *testing.T) {
	for _, tt := range []struct{ name, capabilities, clientInfo, want string }{
		{
			name:         "own client info",
			capabilities: `{}`,
			want:         `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":` + testInfo + `}`,
		},
		{
			name:         "the client's info",
			capabilities: `{}`,
			clientInfo:   `{"name":"ada","version":"7"}`,
			want:         `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"ada","version":"7"}}`,
		},
		{
			name:         "what the client declared, but for tasks",
			capabilities: `{"elicitation":{},"experimental":{"x":{"n":1.50}},"extensions":{"io.modelcontextprotocol/tasks":{},"e/y":{}},"roots":{"listChanged":true},"sampling":{"tools":{}}}`,
			want:         `{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"experimental":{"x":{"n":1.50}},"extensions":{"e/y":{}},"roots":{"listChanged":true},"sampling":{"tools":{}}},"clientInfo":` + testInfo + `}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, peers := pipeBack(t, Options{})
			got := make(chan string, 1)
			go func() {
				p := <-peers
				got <- p.Handshake(legacytest.Everything)
				p.Result(p.Want("tools/list").ID, `{"tools":[]}`)
			}()
			req := ask("tools/list", "")
			req.Profile.Capabilities = json.RawMessage(tt.capabilities)
			if tt.clientInfo != "" {
				req.Profile.ClientInfo = json.RawMessage(tt.clientInfo)
			}
			if _, err := body(b.Serve(t.Context(), req, &backtest.Caller{})); err != nil {
				t.Fatal(err)
			}
			if params := <-got; params != tt.want {
				t.Errorf("initialize params = %s, want %s", params, tt.want)
			}
		})
	}
}

func TestM2L01Revisions(t *testing.T) {
	for _, tt := range []struct{ revision, wantErr string }{
		{"2025-11-25", ""},
		{"2025-06-18", ""},
		{"2025-03-26", ""},
		{"2024-11-05", ""},
		{"2024-10-07", `server "scripted" answered initialize with revision "2024-10-07"`},
		{"2099-01-01", `server "scripted" answered initialize with revision "2099-01-01"`},
		{"latest", `server "scripted" answered initialize with revision "latest"`},
	} {
		t.Run(tt.revision, func(t *testing.T) {
			p := legacytest.NewHTTPServer(t)
			p.Revision = tt.revision
			p.On["tools/list"] = listOnce
			b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
			_, err := body(b.Serve(t.Context(), ask("tools/list", ""), &backtest.Caller{}))
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("Serve = %v, want %q", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Requests("tools/list")[0].Header.Get("Mcp-Protocol-Version"); got != tt.revision {
				t.Errorf("MCP-Protocol-Version = %q, want %q", got, tt.revision)
			}
		})
	}
}

func TestM2L01OneProfilePerSession(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.On["tools/list"] = listOnce
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	for _, scope := range []string{"ada", "bob", "ada"} {
		req := ask("tools/list", "")
		req.Profile.Scope = scope
		if _, err := body(b.Serve(t.Context(), req, &backtest.Caller{})); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(p.Requests("initialize")); n != 2 {
		t.Errorf("%d sessions for two profiles, want 2", n)
	}
}

// A dial shared by many does not end with the caller that began it.
func TestM2L01DialOutlivesItsFirstCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{})
		first, leave := context.WithCancel(t.Context())
		var err1, err2 error
		var got string
		go func() { _, err1 = body(b.Serve(first, ask("tools/list", ""), &backtest.Caller{})) }()
		p := <-peers
		synctest.Wait()
		go func() { got, err2 = body(b.Serve(t.Context(), ask("tools/list", ""), &backtest.Caller{})) }()
		synctest.Wait()
		leave()
		synctest.Wait()
		if err1 != context.Canceled {
			t.Errorf("first Serve = %v, want %v", err1, context.Canceled)
		}
		p.Handshake(legacytest.Everything)
		p.Result(p.Want("tools/list").ID, `{"tools":[]}`)
		synctest.Wait()
		if err2 != nil || got != `{"tools":[]}` {
			t.Errorf("second Serve = %s, %v", got, err2)
		}
		if len(peers) != 0 {
			t.Error("a second connection was dialled")
		}
	})
}

func TestM2L01HandshakeTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{Options: upstream.Options{Settings: settings.Server{Timeouts: settings.Timeouts{Connect: 3 * time.Second}}}})
		start := time.Now()
		_, err := body(b.Serve(t.Context(), ask("tools/list", ""), &backtest.Caller{}))
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("Serve returned after %v, want 3s", took)
		}
		if err == nil || !strings.Contains(err.Error(), `server "scripted"`) || !strings.Contains(err.Error(), "timeouts.connect") {
			t.Errorf("Serve = %v, want one that names the server and timeouts.connect", err)
		}
		p := <-peers
		p.Want("initialize")
		// Nothing follows: initialize is never cancelled, the connection just ends.
		if text, err := p.Conn.Read(); err == nil {
			t.Errorf("after initialize the back wrote %s", text)
		}
	})
}

// M2L-23's core: some servers serve nothing until roots/list is answered, even
// if the client declared none.
func TestM2L15QuestionsAreAnsweredAtOnce(t *testing.T) {
	b, peers := pipeBack(t, Options{})
	go func() {
		p := <-peers
		m := p.Want("initialize")
		p.Write(`{"jsonrpc":"2.0","id":1,"method":"ping"}`) // our own id, the other direction
		if pong := p.Read(); string(pong.Result) != `{}` || pong.ID.String() != "1" {
			p.T.Errorf("ping was answered %+v", pong)
		}
		p.Result(m.ID, legacytest.InitializeResult("2025-11-25", legacytest.Everything))
		p.Want("notifications/initialized")
		list := p.Want("tools/list")
		for _, q := range []struct{ id, method, want string }{
			{`0`, "roots/list", `{"roots":[]} 0`},
			{`"x"`, "ping", `{} 0`},
			{`9007199254740993`, "elicitation/create", ` -32600`},
			{`3`, "sampling/createMessage", ` -32600`},
			{`4`, "no/such", ` -32601`},
		} {
			p.Write(`{"jsonrpc":"2.0","id":%s,"method":%q}`, q.id, q.method)
			a := p.Read()
			code := int64(0)
			if a.Error != nil {
				code = a.Error.Code
			}
			if got := string(a.Result) + " " + json.Number(wire.NumberID(code).String()).String(); got != q.want || a.ID.String() != q.id {
				p.T.Errorf("%s was answered %s with id %s, want %s with id %s", q.method, got, a.ID, q.want, q.id)
			}
		}
		p.Result(list.ID, `{"tools":[]}`)
	}()
	if _, err := body(b.Serve(t.Context(), ask("tools/list", ""), &backtest.Caller{})); err != nil {
		t.Fatal(err)
	}
}

// A ping on any stream is answered by a POST of the session.
func TestM2L15PingOverHTTP(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	pong := make(chan legacytest.Seen, 4)
	p.On["prompts/get"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		send := legacytest.StartSSE(w)
		send(`{"jsonrpc":"2.0","id":7,"method":"ping"}`)
		<-pong
		send(`{"jsonrpc":"2.0","id":%s,"result":{"messages":[]}}`, m.ID)
	}
	p.Get = func(w http.ResponseWriter, r *http.Request) {
		legacytest.StartSSE(w)(`{"jsonrpc":"2.0","id":8,"method":"ping"}`)
		<-r.Context().Done()
	}
	p.On[""] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		w.WriteHeader(http.StatusAccepted)
		if m.ID.String() == "7" {
			pong <- p.Last()
		}
	}
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	if _, err := body(b.Serve(t.Context(), ask("prompts/get", `{"name":"x"}`), &backtest.Caller{})); err != nil {
		t.Fatal(err)
	}
	bridgetest.Eventually(t, "the answer to the ping on the GET stream", func() bool { return strings.Contains(p.Order(), `{"jsonrpc":"2.0","id":8,"result":{}}`) })
	for _, s := range p.Requests("POST") {
		if strings.Contains(s.Body, `"result":{}`) && s.Header.Get("Mcp-Session-Id") != "sess-1" {
			t.Errorf("%s was sent without the session", s.Body)
		}
	}
}

var _ mcp.Caller = (*backtest.Caller)(nil)
