package router

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// readMessage reads the message that was posted to a scripted server. It refuses anything
// else.
func readMessage(w http.ResponseWriter, r *http.Request) (wire.Message, bool) {
	body, _ := io.ReadAll(r.Body)
	m, err := wire.Parse(body, wire.Options{})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return m, err == nil
}

// writeAnswer writes the response of a scripted server: a result, or an error, which begins
// with its code.
func writeAnswer(w http.ResponseWriter, id wire.ID, answer string) {
	w.Header().Set("Content-Type", "application/json")
	if strings.HasPrefix(answer, `{"code":`) {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":%s}`, id, answer)
		return
	}
	_, _ = w.Write(wire.AppendResult(nil, id, []byte(answer), nil))
}

// checkStreamsApart opens two listen streams on one connection, whose ids differ in type
// only, and ends one of them.
func checkStreamsApart(t *testing.T, r *rig, l *line) {
	t.Helper()
	for _, id := range []string{"1", `"1"`} {
		l.send(modernBody(id, "subscriptions/listen", `"notifications":{"resourceSubscriptions":["file:///a"]}`))
		l.want("notifications/subscriptions/acknowledged", `"io.modelcontextprotocol/subscriptionId":`+id+`}`)
	}
	if n := len(r.peer.sent("resources/subscribe")); n != 1 {
		t.Errorf("the server was asked %d times to tell, want once", n)
	}
	r.peer.push(updated("file:///a"))
	got := l.next() + l.next()
	for _, id := range []string{"1", `"1"`} {
		if strings.Count(got, `"io.modelcontextprotocol/subscriptionId":`+id+`}`) != 1 {
			t.Errorf("sent = %s, want one update for %s", got, id)
		}
	}
	l.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1"}}`)
	r.eventually(t, "one stream open", func() bool { return r.g.Snapshot().Streams == 1 })
	r.peer.push(updated("file:///a"))
	l.want("resources/updated", `"io.modelcontextprotocol/subscriptionId":1}`)
}
