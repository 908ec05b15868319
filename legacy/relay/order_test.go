package relay_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/back"
)

// What a server on a pipe sends in one burst reaches the client in the server's order: progress,
// log messages and the result.
func TestS02OrderOfAPipe(t *testing.T) {
	b, peers := pipeBack(t, back.Options{})
	l, p := welcomed(t, linkedTo(t, b), peers)
	l.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","_meta":{"progressToken":"t"}}}`)
	call := p.Want("tools/call")
	token := wire.Get(wire.Get(call.Params, "_meta"), "progressToken")
	var want []string
	const burst = 200
	go func() {
		for i := range burst {
			if i%2 == 0 {
				p.Write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, token, i)
			} else {
				p.Write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%d}}`, i)
			}
		}
		p.Write(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, call.ID)
	}()
	for i := range burst {
		want = append(want, fmt.Sprint([]string{"progress", "data"}[i%2], `":`, i, "}"))
	}
	want = append(want, `"result"`)
	for i, part := range want {
		if got := l.Next(); !strings.Contains(got, part) {
			t.Fatalf("message %d is %s, want the server's, with %s", i, got, part)
		}
	}
}
