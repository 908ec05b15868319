package front

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A pipeCall is one request of a pipe, and its outlet.
type pipeCall struct {
	reply  // of which it is the outlet
	pipe   *Pipe
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when nothing of it is left

	room mcp.Room // of the request

	// Guarded by Pipe.mu.
	over bool            // answered or cancelled: nothing is sent any more
	mail *fanout.Mailbox // of a listen stream; nil before it begins
}

// run serves the request. What was sent before under the same id may still be on its
// way, so the former's end is awaited: the first that a client gets of the new one is
// its own.
func (c *pipeCall) run(ctx context.Context, m *wire.Message, former <-chan struct{}) {
	defer c.pipe.leave(c)
	defer c.cancel(nil)
	if former != nil {
		<-former // which was answered or cancelled, so it is not for long
	}
	req, err := c.f.admit(nil, m, c.pipe.share)
	if err == nil {
		err = c.f.serve(ctx, req, &c.reply)
	}
	if err != nil {
		c.fail(err)
	}
}

func (c *pipeCall) put(msg []byte) error {
	c.pipe.mu.Lock()
	over := c.over
	c.pipe.mu.Unlock()
	if over {
		return errFinished
	}
	return c.pipe.write(msg)
}

// respond gives the id free first: whoever has read the response may use it again.
func (c *pipeCall) respond(_ int, msg message) error {
	c.pipe.mu.Lock()
	over := c.over
	c.over = true
	c.pipe.mu.Unlock()
	if over {
		return errFinished
	}
	return c.pipe.write(msg.whole())
}

// listen notes what ends the stream, and has it served.
func (c *pipeCall) listen(ctx context.Context, mail *fanout.Mailbox, serve serveStream) error {
	c.opened(mail)
	return serve(ctx, &c.reply)
}

func (c *pipeCall) opened(mail *fanout.Mailbox) (shared bool) {
	c.pipe.mu.Lock()
	c.mail = mail
	closed := c.pipe.closed
	c.pipe.mu.Unlock()
	if closed {
		mail.End(mcp.ErrShutdown)
	}
	return true
}

// What a connection of one's own does without: every message is sent at once, and
// silence says nothing about the connection.

func (c *pipeCall) streams() bool     { return true }
func (c *pipeCall) flush() error      { return nil }
func (c *pipeCall) comment() error    { return nil }
func (c *pipeCall) keepAlive() func() { return func() {} }
func (c *pipeCall) peer() string      { return "pipe" }
