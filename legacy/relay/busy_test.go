package relay_test

import (
	"fmt"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/back"
)

// What waits for a server that reads nothing, because it works on a call, holds up nothing else of
// its client: a call of which nothing was written is withdrawn when the client cancels it, the
// rest arrives in order, and the client can leave.
func TestS02BusyServer(t *testing.T) {
	b, peers := pipeBack(t, back.Options{})
	l, p := welcomed(t, linkedTo(t, b), peers)
	l.Send(`{"jsonrpc":"2.0","id":"first","method":"tools/call","params":{}}`)
	first := p.Want("tools/call")
	const full = 64 // of the pipe
	for i := range full {
		l.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/vendor","params":{"n":%d}}`, i))
	}
	l.Send(`{"jsonrpc":"2.0","id":"withdrawn","method":"tools/call","params":{}}`)
	l.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"withdrawn"}}`)
	l.Send(`{"jsonrpc":"2.0","id":"next","method":"ping"}`)
	l.Send(`{"jsonrpc":"2.0","method":"notifications/vendor","params":{"n":64}}`)
	for i := range full {
		if n := string(wire.Get(p.Want("notifications/vendor").Params, "n")); n != fmt.Sprint(i) {
			t.Fatalf("notification %s came when %d was due", n, i)
		}
	}
	p.Result(p.Want("ping").ID, `{}`)
	p.Want("notifications/vendor")
	p.Result(first.ID, `{"content":[]}`)
	l.Want(`{"jsonrpc":"2.0","id":"next","result":{}}`, `{"jsonrpc":"2.0","id":"first","result":{"content":[]}}`)

	for i := range full + 1 {
		l.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/vendor","params":{"n":%d}}`, i))
	}
	l.Send(`{"jsonrpc":"2.0","id":"never","method":"tools/call","params":{}}`)
	l.Close()
	for range full {
		p.Want("notifications/vendor")
	}
	if text, err := p.Conn.Read(); err == nil {
		t.Errorf("the server got %s of a client that has left", text)
	}
}
