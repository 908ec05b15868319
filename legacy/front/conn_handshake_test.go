package front

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// An openingClient is a client on a pipe whose server has yet to answer initialize.
type openingClient struct {
	mcp.NoMetrics
	*legacytest.Line
	pipe  *Conn
	peer  *legacytest.ConnPeer
	hello wire.Message // the initialize that the server has read
	log   bytes.Buffer // read after Close
	limit chan string
}

func (l *openingClient) Limit(_, name string) { l.limit <- name }

func newOpeningClient(t *testing.T) (*openingClient, <-chan *legacytest.ConnPeer) {
	l := &openingClient{limit: make(chan string, 2*mcp.MaxEarly)}
	b, peers := backWithPeers(t)
	st := newRig(t, func(o *Options) {
		o.Relayer, o.Metrics = b, l
		o.Logger = slog.New(slog.NewTextHandler(&l.log, nil))
	})
	l.Line = legacytest.NewLine(t, st.front.OpenConn)
	l.pipe = l.Line.Pipe.(*Conn)
	l.Send(legacytest.OddInitialize)
	l.peer = <-peers
	l.hello = l.peer.Want("initialize")
	return l, peers
}

func (l *openingClient) call(n int) {
	l.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"n":%[1]d}}`, n))
}

// While the server is silent every message is taken: what was cancelled meanwhile never
// reaches it, and the rest does in order.
func TestS02HandshakeHoldsUpNoReader(t *testing.T) {
	l, _ := newOpeningClient(t)
	l.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for n := range 4 {
		l.call(n)
	}
	l.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	l.Send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
	l.Want(`{"jsonrpc":"2.0","id":"p","result":{}}`)
	l.peer.Result(l.hello.ID, legacytest.OddResult)
	l.Want(`{"jsonrpc":"2.0","id":"h","result":`)
	l.peer.Want("notifications/initialized")
	for _, n := range []int{0, 1, 3} {
		m := l.peer.Want("tools/call")
		if got := string(wire.Get(m.Params, "n")); got != fmt.Sprint(n) {
			t.Errorf("the server got call %s, want %d", got, n)
		}
		l.peer.Result(m.ID, "{}")
		l.Want(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, n))
	}
}

// An initialize that its client takes back has no answer, and the next one may have.
func TestS02CancelledHandshake(t *testing.T) {
	l, peers := newOpeningClient(t)
	l.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"h"}}`)
	l.Send(strings.Replace(legacytest.OddInitialize, `"h"`, `"again"`, 1))
	p := <-peers
	p.Result(p.Want("initialize").ID, legacytest.OddResult)
	l.Want(`{"jsonrpc":"2.0","id":"again","result":`)
}

// What is kept is bounded by number and by bytes. Who is refused is told.
func TestS02HandshakeKeepsSoMuch(t *testing.T) {
	for name, send := range map[string]func(l *openingClient) (kept int){
		"messages": func(l *openingClient) int {
			for n := range mcp.MaxEarly + 1 {
				l.call(n)
			}
			return mcp.MaxEarly
		},
		"bytes": func(l *openingClient) int {
			for n := range 3 {
				l.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"pad":%q}}`, n, strings.Repeat("x", mcp.MaxEarlyBytes/2)))
			}
			return 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := newOpeningClient(t)
			kept := send(l)
			l.Want(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"%d messages or`, kept, mcp.MaxEarly))
			if got := <-l.limit; got != "early_messages" {
				t.Errorf("the limit is counted as %q", got)
			}
			l.pipe.Close()
			if n := strings.Count(l.log.String(), "too many arrived before the handshake was done"); n != 1 {
				t.Errorf("%d log lines of the limit, want 1:\n%s", n, &l.log)
			}
		})
	}
}

// Close waits for no server, and says no to what is kept.
func TestS02CloseDuringHandshake(t *testing.T) {
	l, _ := newOpeningClient(t)
	l.call(1)
	begin := time.Now()
	l.pipe.Close()
	if took := time.Since(begin); took > time.Second {
		t.Errorf("Close took %v with a silent server", took)
	}
	l.Want(`{"jsonrpc":"2.0","id":"h","error":`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"mcpbridge is shutting down"`)
}

// What came before the end of the input is served, if the server answers in time.
func TestS02ShutdownServesWhatCameBefore(t *testing.T) {
	l, _ := newOpeningClient(t)
	l.call(1)
	done := make(chan error, 1)
	go func() { done <- l.pipe.Shutdown(context.Background()) }() // ends with the call
	for !l.pipe.isEnding() {
		time.Sleep(time.Millisecond)
	}
	l.call(2)
	l.Want(`{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"mcpbridge is shutting down"`)
	l.peer.Result(l.hello.ID, legacytest.OddResult)
	l.Want(`{"jsonrpc":"2.0","id":"h","result":`)
	l.peer.Result(l.peer.Want("tools/call").ID, "{}")
	l.Want(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	if err := <-done; err != nil {
		t.Errorf("Shutdown = %v", err)
	}
}

// A server that reads nothing any more does not hold up the end.
func TestS02CloseUnderAFullConnection(t *testing.T) {
	t.Parallel()
	l, _ := newOpeningClient(t)
	l.peer.Result(l.hello.ID, legacytest.OddResult)
	l.Want(`{"jsonrpc":"2.0","id":"h","result":`)
	var wg sync.WaitGroup
	wg.Go(func() { // ends with the connection
		for n := range 100 { // more than it holds
			l.call(n)
		}
	})
	d, _ := l.pipe.current()
	bridgetest.Eventually(t, "calls in flight", func() bool { return len(d.calls.All()) > 64 })
	begin := time.Now()
	l.pipe.Close()
	wg.Wait()
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("Close took %v with a server that does not read", took)
	}
}
