package legacytest

import (
	"fmt"
	"testing"

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
type ConnPeer struct {
	T    testing.TB
	Conn transport.Conn
}

// Read returns the next message, and fails the test if there is none.
func (p *ConnPeer) Read() wire.Message {
	p.T.Helper()
	text, err := p.Conn.Read()
	if err != nil {
		p.T.Errorf("reading from the back: %v", err)
		return wire.Message{}
	}
	m, err := wire.Parse(text, wire.Options{UniqueParams: true})
	if err != nil {
		p.T.Errorf("the back wrote %s: %v", text, err)
	}
	return m
}

// Want reads the next message, which must be of method.
func (p *ConnPeer) Want(method string) wire.Message {
	p.T.Helper()
	m := p.Read()
	if m.Method != method {
		p.T.Errorf("the back sent %q %s%s, want %q", m.Method, m.Params, m.Result, method)
	}
	return m
}

// Write sends one message.
func (p *ConnPeer) Write(format string, args ...any) {
	p.T.Helper()
	if err := p.Conn.Write(fmt.Appendf(nil, format, args...)); err != nil {
		p.T.Errorf("writing to the back: %v", err)
	}
}

// Result answers a request.
func (p *ConnPeer) Result(id wire.ID, result string) {
	p.T.Helper()
	p.Write(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// Handshake plays the server's part and returns the params of initialize.
func (p *ConnPeer) Handshake(capabilities string) string {
	p.T.Helper()
	m := p.Want("initialize")
	p.Result(m.ID, InitializeResult("2025-11-25", capabilities))
	p.Want("notifications/initialized")
	return string(m.Params)
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
