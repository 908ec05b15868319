package back

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// welcomed opens a session over a connection on either side.
func welcomed(t *testing.T, st *linkedFront, peers <-chan *legacytest.ConnPeer) (*lineClient, *legacytest.ConnPeer) {
	l := pipeTo(t, st)
	l.serve(legacytest.OddInitialize)
	p := <-peers
	p.Result(p.Want("initialize").ID, legacytest.OddResult)
	<-l.sent
	return l, p
}

// A server that has ended is said to have, whoever notices first.
func TestS02DeadServer(t *testing.T) {
	b, peers := pipeBack(t, Options{})
	st := linkedTo(t, b)
	for range 20 {
		l, p := welcomed(t, st, peers)
		_ = p.Conn.Close()
		l.serve(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		if got := <-l.sent; !strings.Contains(got, "-32001") || strings.Contains(got, mcp.ErrShutdown.Error()) {
			t.Errorf("ping = %s, want an error about the server", got)
		}
	}
}

// Each call under which the server dies is answered, once.
func TestS02DeathAnswersEachOnce(t *testing.T) {
	b, peers := pipeBack(t, Options{})
	l, p := welcomed(t, linkedTo(t, b), peers)
	go func() {
		for range 10 {
			p.Want("tools/call")
		}
		_ = p.Conn.Close()
	}()
	for n := range 10 {
		l.serve(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{}}`, n))
	}
	seen := map[wire.ID]bool{}
	for range 10 {
		text := <-l.sent
		m, err := wire.Parse([]byte(text), wire.Options{})
		if err != nil || m.Error == nil || seen[m.ID] {
			t.Errorf("sent %s, want an error for each call, once", text)
		}
		seen[m.ID] = true
	}
	<-l.pipe.Lost()
	l.pipe.Close()
	if len(l.sent) > 0 {
		t.Errorf("sent %s, want no more", <-l.sent)
	}
}
