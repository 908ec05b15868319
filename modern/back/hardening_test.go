package back

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A server, or a proxy before it, that once wrote one answer too many answers each
// request on the connection with the answer to the one before.
func TestForeignAnswerEndsItsConnection(t *testing.T) {
	for _, stream := range []bool{false, true} {
		p := newUpPeer(t)
		var conns []string
		p.on["tools/call"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
			if conns = append(conns, r.RemoteAddr); len(conns) == 1 {
				m.ID = wire.NumberID(99_999)
			}
			if stream {
				upStream(w)(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, said("x"))
				return
			}
			upAnswer(w, m.ID, said("x"))
		}
		b := p.back(Options{})
		call := func() error {
			_, err := upBody(b.Serve(t.Context(), upRequest("tools/call", `{"name":"t"}`), &backtest.Caller{}))
			return err
		}
		if err := call(); err == nil || !strings.Contains(err.Error(), "answered another request") {
			t.Errorf("stream %v: %v, want an error that says so", stream, err)
		}
		if err := call(); err != nil {
			t.Errorf("stream %v: the call after it: %v", stream, err)
		}
		if len(conns) != 2 || conns[0] == conns[1] {
			t.Errorf("stream %v: calls came over %v, want a fresh connection after a foreign answer", stream, conns)
		}
	}
}

// What a client could not read is an error that tells so.
func TestF07BadEscapeOfServerIsAnError(t *testing.T) {
	p := newUpPeer(t)
	b := p.back(Options{})
	const bad = `{"resultType":"complete","content":[{"type":"text","text":"\q"}]}`
	for name, answer := range map[string]func(w http.ResponseWriter, id wire.ID){
		"body": func(w http.ResponseWriter, id wire.ID) { upAnswer(w, id, bad) },
		"stream": func(w http.ResponseWriter, id wire.ID) {
			upStream(w)(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, bad)
		},
	} {
		p.on["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) { answer(w, m.ID) }
		body, err := upBody(b.Serve(t.Context(), upRequest("tools/call", `{"name":"t"}`), &backtest.Caller{}))
		if err == nil || !strings.Contains(err.Error(), "can't be read") {
			t.Errorf("%s: %s, %v, want an error that says why", name, body, err)
		}
	}
	lines, peers := upLines(t, Options{})
	done := upServe(t.Context(), lines, upRequest("tools/call", `{"name":"t"}`), &backtest.Caller{})
	peer := <-peers
	peer.Result(peer.Want("tools/call").ID, bad)
	if got := <-done; got.err == nil || !strings.Contains(got.err.Error(), "can't be read") {
		t.Errorf("connection: %s, %v, want an error that says why", got.body, got.err)
	}
}
