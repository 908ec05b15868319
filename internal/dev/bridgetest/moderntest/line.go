package moderntest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Pipe serves the messages of a connection, as the front's does.
type Pipe interface {
	Serve(m *wire.Message)
	Shutdown(ctx context.Context) error
	Close()
}

// A Line is a connection with its client, who reads what is sent from a channel.
type Line struct {
	Pipe
	t    *testing.T
	Sent chan string // what the client was sent and has not read

	mu   sync.Mutex    // guards the fields below
	part string        // what messages have in them that wait
	free chan struct{} // closed when they may be sent; nil if none wait
}

// NewLine returns a line whose messages go to the pipe that open returns.
func NewLine(t *testing.T, open func(send func(msg []byte) error, sender mcp.Sender) Pipe) *Line {
	l := &Line{t: t, Sent: make(chan string, 100)}
	l.Pipe = open(l.receive, mcp.Sender{Share: mcp.Share{Principal: "ada"}})
	t.Cleanup(l.Close)
	return l
}

// receive takes a message for the client, and waits for release where it is held.
func (l *Line) receive(msg []byte) error {
	l.mu.Lock()
	free := l.free
	waits := free != nil && strings.Contains(string(msg), l.part)
	l.mu.Unlock()
	if waits {
		<-free
	}
	l.Sent <- string(msg)
	return nil
}

// ClientMeta is the envelope of a request. CAPS is to be replaced by the client's
// capabilities.
const ClientMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":CAPS}`

// Hold keeps messages that have part in them from being sent until release.
func (l *Line) Hold(part string) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part, l.free = part, make(chan struct{})
	return func() { close(l.free) }
}

// Request returns a request with a complete envelope. rest are further members of
// params, and begin with a comma.
func Request(id, method, capabilities, rest string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` +
		strings.Replace(ClientMeta, "CAPS", capabilities, 1) + rest + `}}`
}

// Send has a message of the client served.
func (l *Line) Send(text string) {
	l.t.Helper()
	m, err := wire.Parse([]byte(text), wire.Options{UniqueParams: true})
	if err != nil {
		l.t.Fatalf("Parse(%s) = %v", text, err)
	}
	l.Serve(&m)
}

// Call calls a tool.
func (l *Line) Call(id, name string) {
	l.t.Helper()
	l.Send(Request(id, "tools/call", "{}", `,"name":"`+name+`"`))
}

// Listen opens a listen stream for changes of the tools.
func (l *Line) Listen(id string) {
	l.t.Helper()
	l.Send(Request(id, "subscriptions/listen", "{}", `,"notifications":{"toolsListChanged":true}`))
}

// Cancel cancels a request.
func (l *Line) Cancel(id string) {
	l.t.Helper()
	l.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
}

// Next returns the next message that the client reads.
func (l *Line) Next() string {
	l.t.Helper()
	select {
	case msg := <-l.Sent:
		return msg
	case <-time.After(bridgetest.Patience):
		l.t.Fatalf("nothing was sent for %v", bridgetest.Patience)
		return ""
	}
}

// Want reads the next message, and wants every part in it.
func (l *Line) Want(parts ...string) string {
	l.t.Helper()
	msg := l.Next()
	for _, part := range parts {
		if !strings.Contains(msg, part) {
			l.t.Errorf("sent = %s, want %s in it", msg, part)
		}
	}
	return msg
}

// Silent fails if anything was sent. It is for synctest bubbles at rest.
func (l *Line) Silent() {
	l.t.Helper()
	select {
	case msg := <-l.Sent:
		l.t.Errorf("sent = %s, want nothing", msg)
	default:
	}
}

// DeclaresTasks are the capabilities of a client that knows tasks, and another extension.
const DeclaresTasks = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{},"com.example/a":{"n":1.0}}}`
