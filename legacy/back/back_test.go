package back

import (
	"net/http"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func TestServeOverPipe(t *testing.T) {
	b, peers := pipeBack(t, Options{})
	go func() {
		p := <-peers
		p.Handshake(legacytest.Everything)
		m := p.Want("tools/call")
		p.Result(m.ID, `{"content":[{"type":"text","text":"hi"}]}`)
	}()
	res, err := b.Serve(t.Context(), ask("tools/call", `{"name":"greet"}`), &backtest.Caller{})
	if err != nil {
		t.Fatal(err)
	}
	if string(res.ServerInfo) != legacytest.ServerInfo {
		t.Errorf("ServerInfo = %s, want %s", res.ServerInfo, legacytest.ServerInfo)
	}
	if got, _ := body(res, nil); got != `{"content":[{"type":"text","text":"hi"}]}` {
		t.Errorf("Serve = %s", got)
	}
	d, err := b.Describe(t.Context(), ask("server/discover", ""))
	if err != nil {
		t.Fatal(err)
	}
	if string(d.Instructions) != `"be kind"` {
		t.Errorf("Instructions = %s", d.Instructions)
	}
}

func TestServeOverHTTP(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.On["tools/call"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		legacytest.AnswerJSON(w, m.ID, `{"content":[]}`)
	}
	p.On["prompts/get"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		legacytest.StartSSE(w)(`{"jsonrpc":"2.0","id":%s,"result":{"messages":[]}}`, m.ID)
	}
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	for method, want := range map[string]string{"tools/call": `{"content":[]}`, "prompts/get": `{"messages":[]}`} {
		got, err := body(b.Serve(t.Context(), ask(method, `{"name":"x"}`), &backtest.Caller{}))
		if err != nil || got != want {
			t.Errorf("Serve(%s) = %s, %v, want %s", method, got, err, want)
		}
	}
}
