package router

import (
	"testing"
	"time"
)

// A connection whose client has nothing more to say ends within its drain, whatever its
// handshake is at and however much came meanwhile. Modern requests are not held up.
func TestS02EndOfInputDuringHandshake(t *testing.T) {
	t.Parallel()
	const drain = 400 * time.Millisecond
	r := newRig(t, func(o *Options) { o.Drain = drain })
	asked := make(chan struct{}, 8)
	r.peer.handle["initialize"] = func(c *peerCall) string {
		asked <- struct{}{}
		<-c.ctx.Done()
		return "{}"
	}
	l := r.connect(t)
	l.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"0"}}}`)
	<-asked
	l.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	l.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	l.send(`{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientInfo":{"name":"c","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
	l.want(`"id":3`, `"error"`)
	_ = l.conn.Close()
	select {
	case <-l.ended:
	case <-time.After(7 * time.Second): // the handshake has 10 s
		t.Fatalf("the connection is served 7 s after the end of its input, with a drain of %v", drain)
	}
}
