package front

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

var twoQuestions = []mcp.InputRequest{
	{Method: "elicitation/create", Params: []byte(`{"message":"who?","requestedSchema":{"type":"object","properties":{}}}`)},
	{Method: "roots/list"},
}

func TestL2M13QuestionsOnTheCallsStream(t *testing.T) {
	st := newRig(t, nil)
	st.handle = func(ctx context.Context, req *mcp.Request, x mcp.Caller) (string, error) {
		answers, err := x.RequestInput(ctx, twoQuestions)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf(`{"content":[{"type":"text","text":"x"}],"a":%s,"b":%q}`, answers[0].Result, answers[1].Err.Message), nil
	}
	g := st.Enter(t, "2025-11-25")
	f := legacytest.Read(t, st.Open(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, "Mcp-Session-Id", g.ID))
	// Both at once, before any answer; 1 is a live id in both directions.
	var ids []string
	for range 2 {
		data, _ := f.Next()
		m, err := wire.Parse([]byte(data), wire.Options{})
		if err != nil || m.Kind() != wire.Request {
			t.Fatalf("event = %s, want a question", data)
		}
		ids = append(ids, m.ID.String())
	}
	if ids[0] == ids[1] {
		t.Errorf("ids %v, want two", ids)
	}
	if r := g.Post(t, `{"jsonrpc":"2.0","id":`+ids[1]+`,"error":{"code":-1,"message":"no roots"}}`); r.Status != 202 || r.Body != "" {
		t.Errorf("posted answer = %d %q, want 202", r.Status, r.Body)
	}
	g.Post(t, `{"jsonrpc":"2.0","id":`+ids[0]+`,"result":{"action":"accept","content":{"n":1}}}`)
	f.Want(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"}],"a":{"action":"accept","content":{"n":1}},"b":"no roots"}}`)
	f.Ends()
	g.Post(t, `{"jsonrpc":"2.0","id":`+ids[0]+`,"result":{}}`)
	if n := st.Count("late answer"); n != 1 {
		t.Errorf("%d late answers counted, want 1", n)
	}
}

func TestL2M13OpenQuestionsAreWithdrawn(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *legacytest.Session){
		"L2M-13 cancelled": func(t *testing.T, g *legacytest.Session) {
			g.Post(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		},
		"L2M-13 timed out": func(*testing.T, *legacytest.Session) {},
	} {
		t.Run(name, func(t *testing.T) {
			st := newRig(t, func(o *Options) {
				if strings.HasSuffix(name, "out") {
					o.AskTimeout = 50 * time.Millisecond
				}
			})
			st.handle = func(ctx context.Context, req *mcp.Request, x mcp.Caller) (string, error) {
				_, err := x.RequestInput(ctx, twoQuestions[:1])
				return "", err
			}
			g := st.Enter(t, "2025-11-25")
			f := legacytest.Read(t, st.Open(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, "Mcp-Session-Id", g.ID))
			f.Next()
			end(t, g)
			if got, _ := f.Next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,`) {
				t.Errorf("event = %s, want the question withdrawn", got)
			}
			d := st.front.sessions.byID[SessionID(g.ID)]
			bridgetest.Eventually(t, "no question left", func() bool { d.inputs.mu.Lock(); defer d.inputs.mu.Unlock(); return len(d.inputs.pending) == 0 })
		})
	}
}

func TestL2M13AnsweredAfterReconnecting(t *testing.T) {
	st := newRig(t, nil)
	st.handle = func(ctx context.Context, req *mcp.Request, x mcp.Caller) (string, error) {
		answers, err := x.RequestInput(ctx, twoQuestions[:1])
		if err != nil {
			return "", err
		}
		return string(answers[0].Result), nil
	}
	g := st.Enter(t, "2025-11-25")
	f := legacytest.Read(t, st.Open(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, "Mcp-Session-Id", g.ID))
	f.Next()
	f.Response.Body.Close()
	g.Post(t, `{"jsonrpc":"2.0","id":1,"result":{"action":"decline"}}`)
	again := legacytest.Read(t, st.Open(t, "GET", "", "Mcp-Session-Id", g.ID, "Last-Event-ID", f.Last))
	if got, _ := again.Next(); !strings.Contains(got, `"action":"decline"`) {
		t.Errorf("event = %s, want the result", got)
	}
	again.Ends()
}

func TestPipe(t *testing.T) {
	st := newRig(t, nil)
	st.handle = func(ctx context.Context, req *mcp.Request, x mcp.Caller) (string, error) {
		answers, err := x.RequestInput(ctx, twoQuestions[:1])
		if err != nil {
			return "", err
		}
		return string(answers[0].Result), nil
	}
	l := legacytest.NewLine(t, st.front.OpenConn)
	l.Send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	l.Want(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	l.Send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	l.Want(`{"jsonrpc":"2.0","id":2,"error":{"code":-32600`)
	l.Send(`{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"0"}}}`)
	l.Want(`{"jsonrpc":"2.0","id":3,"result":{"protocolVersion":"2025-03-26"`)
	l.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	st.subscription(t).change("note://a")
	l.Want(changed("note://a"))
	l.Pipe.(*Conn).ServeBatch([]byte(`[{"jsonrpc":"2.0","id":4,"method":"ping"},{"jsonrpc":"2.0","id":5,"method":"ping"}]`))
	l.Want(`[{"jsonrpc":"2.0","id":`)
	l.Send(`{"jsonrpc":"2.0","id":6,"method":"initialize","params":{}}`)
	l.Want(`{"jsonrpc":"2.0","id":6,"error":{"code":-32600`)
	sub := st.subscription(t)
	l.Close()
	l.Close()
	if !sub.closed {
		t.Error("the session's topics are held after Close")
	}
}

// Who has read an answer may use its id again at once.
func TestPipeFreesTheIDBeforeItAnswers(t *testing.T) {
	st := newRig(t, nil)
	sent := make(chan string, 16)
	ping, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var p *Conn
	left := 3
	p = st.front.OpenConn(func(msg []byte) error { // of one answer at a time, since each is the cause of the next
		if left--; left > 0 && strings.HasPrefix(string(msg), `{"jsonrpc":"2.0","id":1,`) {
			p.Serve(&ping)
		}
		sent <- string(msg)
		return nil
	}, mcp.Sender{Share: mcp.Share{Principal: "ada"}})
	hello, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`), wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p.Serve(&hello)
	<-sent
	p.Serve(&ping)
	for range 2 {
		if got := <-sent; got != `{"jsonrpc":"2.0","id":1,"result":{}}` {
			t.Errorf("sent %s, want the pings answered", got)
		}
	}
	p.Close()
}

// What a server of a group asks names it.
func TestG15QuestionsNameTheServerThatAsks(t *testing.T) {
	st := newRig(t, nil)
	qs := []mcp.InputRequest{
		{Method: "elicitation/create", Params: []byte(`{"message":"who?","requestedSchema":{"type":"object","properties":{}},"_meta":{"x":1}}`), Server: "files"},
		{Method: "roots/list", Server: "files"},
	}
	st.handle = func(ctx context.Context, _ *mcp.Request, x mcp.Caller) (string, error) {
		_, err := x.RequestInput(ctx, qs)
		return `{}`, err
	}
	g := st.Enter(t, "2025-11-25")
	f := legacytest.Read(t, st.Open(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, "Mcp-Session-Id", g.ID))
	for _, want := range []string{
		`"method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}},"_meta":{"x":1,"dev.mcpbridge/server":"files"}}}`,
		`"method":"roots/list","params":{"_meta":{"dev.mcpbridge/server":"files"}}}`,
	} {
		if got, _ := f.Next(); !strings.HasSuffix(got, want) {
			t.Errorf("the client was asked %s, want %s", got, want)
		}
	}
}
