package legacytest

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Pipe serves the messages of a connection, as the front's does.
type Pipe interface {
	Serve(m *wire.Message)
	Lost() <-chan struct{}
	Close()
}

// A Line is a connection with its client, who reads what is sent from a channel.
type Line struct {
	Pipe
	Sent chan string // what the client was sent and has not read

	t testing.TB
}

// NewLine returns a line whose messages go to the pipe that open returns.
func NewLine[P Pipe](t testing.TB, open func(send func(msg []byte) error, sender mcp.Sender) P) *Line {
	l := &Line{t: t, Sent: make(chan string, 4096)}
	l.Pipe = open(func(msg []byte) error { l.Sent <- string(msg); return nil }, mcp.Sender{Share: mcp.Share{Principal: "ada"}})
	t.Cleanup(l.Close)
	return l
}

// Send has a message of the client served.
func (l *Line) Send(text string) {
	l.t.Helper()
	m, err := wire.Parse([]byte(text), wire.Options{})
	if err != nil {
		l.t.Fatal(err)
	}
	l.Serve(&m)
}

// Next returns the next message that the client reads.
func (l *Line) Next() string {
	l.t.Helper()
	select {
	case text := <-l.Sent:
		return text
	case <-time.After(bridgetest.Patience):
		l.t.Fatalf("nothing was sent for %v", bridgetest.Patience)
		return ""
	}
}

// Want reads messages, which must be those. One that does not end with a brace is only the
// beginning of what is sent.
func (l *Line) Want(texts ...string) {
	l.t.Helper()
	for _, text := range texts {
		if got := l.Next(); got != text && (strings.HasSuffix(text, "}") || !strings.HasPrefix(got, text)) {
			l.t.Errorf("sent %s\nwant %s", got, text)
		}
	}
}
