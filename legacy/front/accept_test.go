package front

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

const callWithProgress = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":7}}}`

// Without streams the response waits for the result, and what would come before it is dropped.
func TestQ04JSONAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newScripted()
		st.open(t, func(o *Options) { o.KeepAlive = time.Second })
		st.handle = func(ctx context.Context, _ *mcp.Request, x mcp.Caller) (string, error) {
			if err := x.Notify(ctx, mcp.Notification{Method: "notifications/progress", Params: []byte(`{"progressToken":7,"progress":1}`)}); err != nil {
				return "", err
			}
			time.Sleep(time.Hour)
			return `{"content":[]}`, nil
		}
		defer func() { _ = st.front.Close(context.Background()) }()
		c := newAbsentClient(t, st.front, "2025-11-25")
		c.accept = "application/json"
		w := c.post(t.Context(), callWithProgress)
		if typ := w.Header().Get("Content-Type"); w.Code != 200 || typ != "application/json" || !strings.HasPrefix(w.Body.String(), `{"jsonrpc":"2.0","id":1,"result":{"content":[]`) {
			t.Errorf("= %d %s %s, want the result as JSON", w.Code, typ, w.Body)
		}
		if n := st.Count("no stream accepted"); n != 1 {
			t.Errorf("%d dropped messages are counted, want 1", n)
		}
	})
}

// Without streams a question goes to the session's GET stream.
func TestQ04QuestionsOnTheGetStream(t *testing.T) {
	st := newRig(t, nil)
	st.handle = func(ctx context.Context, _ *mcp.Request, x mcp.Caller) (string, error) {
		answers, err := x.RequestInput(ctx, twoQuestions[:1])
		if err != nil {
			return "", err
		}
		return `{"content":[],"a":` + string(answers[0].Result) + `}`, nil
	}
	g := st.Enter(t, "2025-11-25")
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`
	if r := st.Send(t, "POST", call, "Mcp-Session-Id", g.ID, "Accept", "application/json"); r.Code() != -32603 || !strings.Contains(r.Body, "text/event-stream") {
		t.Errorf("= %s, want an error that says what to accept", r.Body)
	}
	get := g.Listen(t)
	done := make(chan legacytest.Reply)
	go func() { done <- st.Send(t, "POST", call, "Mcp-Session-Id", g.ID, "Accept", "application/json") }()
	if got, _ := get.Next(); !strings.Contains(got, `"id":2,"method":"elicitation/create"`) {
		t.Errorf("the GET stream has %s, want the question", got)
	}
	g.Post(t, `{"jsonrpc":"2.0","id":2,"result":{"action":"decline"}}`)
	if r := <-done; !strings.Contains(r.Body, `"a":{"action":"decline"}`) {
		t.Errorf("= %s, want the answer in the result", r.Body)
	}
	get.Response.Body.Close()
}
