package legacytest

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// ServerInfo is what a scripted server says of itself.
	ServerInfo = `{"name":"scripted","version":"1"}`
	// Everything is declared by a scripted server unless the test says otherwise.
	Everything = `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"logging":{},"completions":{}}`
	// OddInitialize is an initialize that nobody would write so.
	OddInitialize = `{"jsonrpc":"2.0","id":"h","method":"initialize","params":{"protocolVersion":"2024-10-07","capabilities":{"tasks":{"x":1},"experimental":{"e":{}},"roots":{}},"clientInfo":{"name":"odd","version":"0","title":"Odd"},"more":[1.0]},"extra":true}`
	// OddResult is a result of initialize of which we know little.
	OddResult = `{"protocolVersion":"2024-10-07","capabilities":{"tasks":{"list":{}},"new":{"a":1e2}},"serverInfo":{"name":"s","version":"1","icons":[]},"instructions":"\u0062e kind","_meta":{"k":1.0}}`
)

// InitializeResult is a result of initialize.
func InitializeResult(revision, capabilities string) string {
	return fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"serverInfo":%s,"instructions":"be kind"}`,
		revision, capabilities, ServerInfo)
}

// A ConnPeer is the far end of a connection: a legacy server played by a test.
type ConnPeer struct{ backtest.Peer }

// NewConnPeer returns the peer at the far end of a connection.
func NewConnPeer(t testing.TB, far transport.Conn) *ConnPeer {
	return &ConnPeer{backtest.Peer{T: t, Conn: far}}
}

// Handshake plays the server's part and returns the params of initialize.
func (p *ConnPeer) Handshake(capabilities string) string {
	p.T.Helper()
	m := p.Want("initialize")
	p.Result(m.ID, InitializeResult("2025-11-25", capabilities))
	p.Want("notifications/initialized")
	return string(m.Params)
}

// HandshakeAfter is Handshake, with a response that takes a while.
func (p *ConnPeer) HandshakeAfter(d time.Duration) {
	m := p.Want("initialize")
	time.Sleep(d)
	p.Result(m.ID, InitializeResult("2025-11-25", Everything))
	p.Want("notifications/initialized")
}

// ServeLists plays a server that lists tools until the connection ends, and reads over
// all else.
func (p *ConnPeer) ServeLists() {
	for {
		text, err := p.Conn.Read()
		if err != nil {
			return
		}
		if m, err := wire.Parse(text, wire.Options{}); err == nil && m.Method == "tools/list" {
			p.Result(m.ID, `{"tools":[]}`)
		}
	}
}

// Run is Handshake, and then ServeLists.
func (p *ConnPeer) Run() {
	p.Handshake(Everything)
	p.ServeLists()
}

// IsEnded reports whether the back has closed the connection.
func (p *ConnPeer) IsEnded() bool {
	_, err := p.Conn.Read()
	return err == io.EOF
}

// Pipes returns what dials a connection in memory, and the far end of each; the channel
// is closed with the test.
func Pipes(t testing.TB) (dial func(context.Context) (transport.Conn, error), peers <-chan *ConnPeer) {
	return backtest.Pipes(t, NewConnPeer)
}

// Sender returns what sends a message to pipe, as the client on it does.
func Sender(t testing.TB, pipe interface{ Serve(m *wire.Message) }) func(text string) {
	return func(text string) {
		t.Helper()
		m, err := wire.Parse([]byte(text), wire.Options{})
		if err != nil {
			t.Fatal(err)
		}
		pipe.Serve(&m)
	}
}
