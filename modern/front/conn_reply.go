package front

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A connReply is the reply to one request of a Conn.
type connReply struct {
	reply  // of which it is the replyWriter
	conn   *Conn
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when nothing of it is left

	memory mcp.Room // of the request

	// Guarded by Conn.mu.
	answered bool            // answered or cancelled: nothing is sent any more
	stream   *fanout.Mailbox // of a listen stream; nil before it begins
}

// run serves the request. What was sent before under the same id may still be on its
// way, so the former's end is awaited: the first that a client gets of the new one is
// its own.
func (r *connReply) run(ctx context.Context, m *wire.Message, former <-chan struct{}) {
	defer r.conn.remove(r)
	defer r.cancel(nil)
	if former != nil {
		<-former // which was answered or cancelled, so it is not for long
	}
	req, err := r.front.admit(nil, m, r.conn.share)
	if err == nil {
		err = r.front.serve(ctx, req, &r.reply)
	}
	if err != nil {
		r.fail(err)
	}
}

func (r *connReply) put(msg []byte) error {
	r.conn.mu.Lock()
	over := r.answered
	r.conn.mu.Unlock()
	if over {
		return downstream.ErrEnded
	}
	return r.conn.write(msg)
}

// respond gives the id free first: whoever has read the response may use it again.
func (r *connReply) respond(_ int, msg downstream.Message) error {
	r.conn.mu.Lock()
	over := r.answered
	r.answered = true
	r.conn.mu.Unlock()
	if over {
		return downstream.ErrEnded
	}
	return r.conn.write(msg.Bytes())
}

// listen notes what ends the stream, and has it served.
func (r *connReply) listen(ctx context.Context, mail *fanout.Mailbox, open openStream) error {
	r.opened(mail)
	write, err := open(ctx, &r.reply)
	if write != nil {
		write()
	}
	return err
}

func (r *connReply) opened(mail *fanout.Mailbox) (shared bool) {
	r.conn.mu.Lock()
	r.stream = mail
	closed := r.conn.closed
	r.conn.mu.Unlock()
	if closed {
		mail.End(mcp.ErrShutdown)
	}
	return true
}

// What a connection of one's own does without: every message is sent at once, and
// silence says nothing about the connection.

func (r *connReply) streams() bool                   { return true }
func (r *connReply) flush() error                    { return nil }
func (r *connReply) cause(ctx context.Context) error { return context.Cause(ctx) }
func (r *connReply) keepAlive() func()               { return func() {} }
func (r *connReply) peer() string                    { return "pipe" }
