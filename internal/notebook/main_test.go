package notebook

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

func TestMain(m *testing.M) { os.Exit(bridgetest.Main(m)) }

// client is a scripted peer: it writes text and reads text.
type client struct {
	t     *testing.T
	conn  transport.Conn
	calls int
	heard []string // notifications received while waiting for a response
	ended chan error
}

// connect opens a session of nb without the handshake.
func connect(t *testing.T, nb *Notebook) *client {
	ours, theirs := transport.NewPipe()
	c := &client{t: t, conn: ours, ended: make(chan error, 1)}
	go func() { c.ended <- nb.Serve(context.Background(), theirs) }() // ends with the conn
	return c
}

// open opens a session of nb, with the handshake.
func open(t *testing.T, nb *Notebook) *client {
	t.Helper()
	c := connect(t, nb)
	c.call("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

// close ends the session and returns the error of Serve.
func (c *client) close() error {
	c.conn.Close()
	return <-c.ended
}

func (c *client) send(msg string) {
	c.t.Helper()
	if err := c.conn.Write([]byte(msg)); err != nil {
		c.t.Fatalf("sending %s: %v", msg, err)
	}
}

func (c *client) read() string {
	c.t.Helper()
	msg, err := c.conn.Read()
	if err != nil {
		c.t.Fatalf("reading: %v", err)
	}
	return string(msg)
}

// ask sends a request and returns the result or the error as in the response.
func (c *client) ask(method, params string) (result, failure string) {
	c.t.Helper()
	c.calls++
	id := fmt.Sprint(c.calls)
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	for {
		msg := c.read()
		var m struct {
			ID            json.RawMessage
			Result, Error json.RawMessage
		}
		if err := json.Unmarshal([]byte(msg), &m); err != nil {
			c.t.Fatalf("%s: %v", msg, err)
		}
		if m.ID == nil {
			c.heard = append(c.heard, msg)
			continue
		}
		if string(m.ID) != id {
			c.t.Fatalf("response %s, want id %s", msg, id)
		}
		return string(m.Result), string(m.Error)
	}
}

// call is ask for requests that must succeed.
func (c *client) call(method, params string) string {
	c.t.Helper()
	result, failure := c.ask(method, params)
	if failure != "" {
		c.t.Fatalf("%s %s: %s", method, params, failure)
	}
	return result
}

// wantCode asks and expects an error.
func (c *client) wantCode(method, params string, code int) string {
	c.t.Helper()
	_, failure := c.ask(method, params)
	if !strings.HasPrefix(failure, fmt.Sprintf(`{"code":%d,`, code)) {
		c.t.Errorf("%s %s = error %s, want code %d", method, params, failure, code)
	}
	return failure
}

func (c *client) edit(name, text string) string {
	c.t.Helper()
	return c.call("tools/call", fmt.Sprintf(`{"name":"edit_note","arguments":{"name":%q,"text":%q}}`, name, text))
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s =\n%s\nwant\n%s", what, got, want)
	}
}
