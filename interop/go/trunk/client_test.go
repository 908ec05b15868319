package trunk

import (
	"encoding/json"
	"fmt"
	"net/http"
	"syscall"

	"github.com/mcpbridge/mcpbridge/interop/internal/listen"
)

type (
	filter = listen.Filter
	stream = listen.Stream
)

const envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// listening is a request for a stream. id is its JSON.
func (w *world) listening(id string, want filter) listen.Request {
	return listen.Request{Addr: w.listen, Server: "legacy", Meta: envelope, ID: id, Want: want}
}

// open opens a stream.
func (w *world) open(id string, want filter) *stream {
	w.t.Helper()
	s, err := listen.Dial(w.listening(id, want))
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// smallWindow has the kernel take little for a stream that nobody reads.
func smallWindow(_, _ string, c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10)
	}); e != nil {
		return e
	}
	return err
}

// callTool calls a tool without arguments through mcpbridge.
func callTool[T any](w *world, name string) (out T, problem string) {
	w.t.Helper()
	header := http.Header{
		"Content-Type":         {"application/json"},
		"Accept":               {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"},
		"Mcp-Method":           {"tools/call"},
		"Mcp-Name":             {name},
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s,"name":%q,"arguments":{}}}`, envelope, name)
	text := request(w.t, w.http, http.MethodPost, "http://"+w.listen+"/mcp/legacy", header, []byte(body))
	var answer struct {
		Result struct{ StructuredContent *T }
		Error  json.RawMessage
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Result.StructuredContent == nil {
		return out, fmt.Sprintf("%s = %s, %v", name, text, err)
	}
	return *answer.Result.StructuredContent, ""
}
