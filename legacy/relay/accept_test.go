package relay_test

import (
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/back"
)

// In a session that is passed through, too, a call without a stream drops progress, and has its
// questions asked on the GET stream, or refused.
func TestQ04JSONAlone(t *testing.T) {
	b, peers := pipeBack(t, back.Options{})
	st := linkedTo(t, b)
	answers := make(chan wire.Message, 2)
	go func() {
		p := <-peers
		p.Handshake(legacytest.Everything)
		for range 2 {
			m := p.Want("tools/call")
			p.Write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}`)
			p.Write(`{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{}}`)
			answers <- p.Read()
			p.Write(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, m.ID)
		}
	}()
	g := st.Enter(t, "2025-11-25")
	call := func() legacytest.Reply {
		return st.Send(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":7}}}`, "Mcp-Session-Id", g.ID, "Accept", "application/json")
	}
	const want = `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`
	if r := call(); r.Body != want {
		t.Errorf("= %s, want %s", r.Body, want)
	}
	if m := <-answers; m.Error == nil || m.ID.String() != `"s"` || !strings.Contains(m.Error.Message, "text/event-stream") {
		t.Errorf("the server got %s, want an error that says what the client has to accept", m.Text)
	}
	get := g.Listen(t)
	done := make(chan legacytest.Reply)
	go func() { done <- call() }()
	for { // the former question was withdrawn, or never sent
		text, ok := get.Next()
		m, err := wire.Parse([]byte(text), wire.Options{})
		if !ok || err != nil {
			t.Fatalf("the GET stream has %q, want a question", text)
		}
		if m.Method == "sampling/createMessage" {
			g.Post(t, `{"jsonrpc":"2.0","id":`+m.ID.String()+`,"result":{"said":1}}`)
			break
		}
	}
	if m := <-answers; string(m.Result) != `{"said":1}` {
		t.Errorf("the server got %s, want the answer", m.Text)
	}
	if r := <-done; r.Body != want {
		t.Errorf("= %s, want %s", r.Body, want)
	}
	if n := st.Count("no stream accepted"); n != 2 {
		t.Errorf("%d dropped messages are counted, want 2", n)
	}
	get.Response.Body.Close()
}
