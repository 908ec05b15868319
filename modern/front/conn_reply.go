package front

import (
	"context"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A connReply is the reply to one request of a Conn.
type connReply struct {
	downstream.Call
	reply  // of which it is the replyWriter
	conn   *Conn
	stream atomic.Pointer[fanout.Mailbox] // of a listen stream; nil before it begins
	rest   wake.Turns                     // write it
}

// run serves the request. It first waits until the previous request with the same id has
// ended, so that the client gets no message of that under the new one.
func (r *connReply) run(ctx context.Context, m *wire.Message, former <-chan struct{}) {
	if m.Method != spec.MethodListen { // which waits, and needs little
		wake.GrowStack()
	}
	defer r.conn.requests.Leave(r)
	defer r.Cancel(nil)
	if former != nil {
		<-former // soon: it has its response, or was cancelled
	}
	req, err := r.front.newRequest(nil, m, r.conn.sender)
	r.observe(req, m)
	if err == nil {
		err = r.front.serve(ctx, req, &r.reply)
	}
	if err != nil {
		r.fail(err)
	}
	r.trace.End(err)
}

func (r *connReply) put(msg []byte) error {
	if r.conn.requests.Freed(r) {
		return downstream.ErrEnded
	}
	return r.conn.write(msg)
}

// respond frees the id before it writes the response, since the client may use it again as
// soon as it has read that.
func (r *connReply) respond(_ int, msg downstream.Message) error {
	if !r.conn.requests.Free(r) {
		return downstream.ErrEnded
	}
	return r.conn.write(msg.Bytes())
}

// listen stores the mailbox that ends the stream, and serves it.
func (r *connReply) listen(ctx context.Context, mail *fanout.Mailbox, open openStream) error {
	r.opened(mail)
	turn, err := open(ctx, &r.reply)
	if turn != nil {
		r.rest.Run(ctx, turn)
	}
	return err
}

func (r *connReply) opened(mail *fanout.Mailbox) (shared bool) {
	r.stream.Store(mail)
	if r.conn.requests.Closed() { // possibly before the mailbox was stored
		r.endStream()
	}
	return true
}

// endStream ends the request if it is a listen stream.
func (r *connReply) endStream() {
	if mail := r.stream.Load(); mail != nil {
		mail.End(mcp.ErrShutdown)
	}
}

// What a connection of one's own does without: every message is sent at once, and
// silence says nothing about the connection.

func (r *connReply) streams() bool                   { return true }
func (r *connReply) flush() error                    { return nil }
func (r *connReply) cause(ctx context.Context) error { return context.Cause(ctx) }
func (r *connReply) keepAlive()                      {}
func (r *connReply) stopKeepAlive()                  {}
func (r *connReply) turns() *wake.Turns              { return &r.rest }
func (r *connReply) peer() string                    { return "pipe" }
