package gateway

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/cmdhook"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// slowModern serves as a modern server that refuses initialize at once, and answers other
// requests from a time on.
func slowModern(conn transport.Conn, ready time.Time) {
	var answering sync.WaitGroup
	defer answering.Wait()
	for {
		text, err := conn.Read()
		if err != nil {
			return
		}
		m, err := wire.Parse(bytes.Clone(text), wire.Options{})
		if err != nil || m.Kind() != wire.Request {
			continue
		}
		id := m.ID.String()
		answer := func(with string) { _ = conn.Write([]byte(`{"jsonrpc":"2.0","id":` + id + `,` + with + `}`)) } // or it was closed
		switch m.Method {
		case spec.MethodInitialize:
			answer(`"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"]}}`)
		case spec.MethodDiscover:
			answering.Go(func() {
				time.Sleep(time.Until(ready))
				answer(`"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`)
			})
		default:
			answer(`"error":{"code":-32601,"message":"Method not found"}`)
		}
	}
}

// A refusal of initialize that names a modern revision proves the era, and discovery is
// waited for. There is one process.
func TestU01ARefusalThatNamesAModernRevisionIsProof(t *testing.T) {
	const legacyFirst = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	const modernFirst = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	for _, tt := range []struct {
		name, first string
		oneClient   bool
	}{
		{"legacy, wrap", legacyFirst, true},
		{"modern, wrap", modernFirst, true},
		{"legacy, serve", legacyFirst, false},
		{"modern, serve", modernFirst, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const start = 15 * time.Second
				starts := 0
				var serving sync.WaitGroup
				o := Options{OneClient: tt.oneClient, Servers: []ServerOptions{{Name: "s", Command: []string{"s"}, Timeouts: Timeouts{Connect: time.Minute}}}}
				o.hooks = cmdhook.Hooks{Start: func(transport.CommandOptions) (transport.Conn, error) {
					starts++
					near, far := transport.NewPipe()
					serving.Go(func() { slowModern(far, time.Now().Add(start)) }) // ends with the pipe
					return near, nil
				}}
				g, err := New(o)
				if err != nil {
					t.Fatal(err)
				}
				g.Start()
				near, far := transport.NewPipe()
				ended := make(chan error, 1)
				begun := time.Now()
				go func() { ended <- g.inner.ServeConn(t.Context(), far, "s") }() // ends with the pipe
				if err := near.Write([]byte(tt.first)); err != nil {
					t.Fatal(err)
				}
				text, err := near.Read()
				if m, perr := wire.Parse(bytes.Clone(text), wire.Options{}); err != nil || perr != nil || m.Result == nil {
					t.Errorf("after %v the client read %s, %v, want a result", time.Since(begun), text, err)
				}
				if took := time.Since(begun); took > start+5*time.Second || starts != 1 {
					t.Errorf("answered after %v by %d processes, want after about %v by one", took, starts, start)
				}
				_ = near.Close()
				<-ended
				if err := g.Shutdown(context.Background()); err != nil {
					t.Errorf("Shutdown = %v, want nil", err)
				}
				serving.Wait()
			})
		})
	}
}
