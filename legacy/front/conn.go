package front

import (
	"cmp"
	"context"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/eventstream"
)

// A Conn serves one legacy client over a connection of messages: stdio, a WebSocket. It
// has at most one session, which initialize opens.
//
// Spec: 2025-11-25, basic/transports, stdio.
type Conn struct {
	front  *Front
	send   func([]byte) error
	sender mcp.Sender
	mail   *fanout.Mailbox // the session's changes
	lost   chan struct{}   // see Lost; nil if the opener of the Conn writes changes itself
	lose   func()          // called once the upstream session has ended, or no more changes will come

	// mu guards the fields below.
	mu      sync.Mutex
	session *session
	closed  bool
	why     string          // why the session ends; empty if it ends with the connection
	ending  bool            // Shutdown was called: further requests are refused
	queue   *handshakeQueue // messages that arrived during a handshake; nil if there is none

	running sync.WaitGroup // handshakes
}

// OpenConn returns a Conn for sender. send writes one message; it is called from several
// goroutines, and returns an error once the client is unreachable. The caller closes the
// Conn.
func (f *Front) OpenConn(send func(msg []byte) error, sender mcp.Sender) *Conn {
	lost := make(chan struct{})
	c := f.openConn(send, func() { close(lost) }, sender)
	c.lost = lost
	return c
}

// openConn is OpenConn for callers that write the changes themselves. lose is called once
// the upstream session has ended.
func (f *Front) openConn(send func(msg []byte) error, lose func(), sender mcp.Sender) *Conn {
	c := &Conn{front: f, send: send, lose: lose, sender: sender, mail: fanout.NewMailbox(fanout.MailboxOptions{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conns == nil {
		c.closed = true
	} else {
		f.conns[c] = struct{}{}
	}
	return c
}

// Serve handles one message. It does not wait for the response, nor for a handshake: a
// cancellation or the end of the input may follow. Before initialize only ping is served.
// Messages that arrive during the handshake are served after it, in order, since scripts
// send all their messages at once.
func (c *Conn) Serve(m *wire.Message) { c.receive(queuedMessage{m: m, from: originOf(c.sender)}) }

// receive serves a message or a batch, or queues it.
func (c *Conn) receive(h queuedMessage) {
	if m := h.m; m != nil && m.Kind() == wire.Request && m.Method != spec.MethodPing && c.isEnding() {
		c.refuse(m.ID, wire.Errorf(spec.CodeInternal, "%v", c.front.over()))
		return
	}
	switch {
	case c.enqueue(h):
	case h.m == nil:
		c.serveBatch(h)
	default:
		c.serve(h)
	}
}

// serve serves one message if no handshake is in progress.
func (c *Conn) serve(h queuedMessage) {
	m := h.m
	s, closed := c.current()
	if s != nil {
		c.front.tolerate(m, s.info)
	}
	switch {
	case s == nil && closed && m.Kind() == wire.Request:
		c.refuse(m.ID, wire.Errorf(spec.CodeInternal, "%v", c.front.over()))
	case s == nil && m.Kind() == wire.Request:
		c.serveEarly(h)
	case s == nil:
		c.front.drop("message before initialize")
	case m.Kind() == wire.Request:
		s.request(m, h.from, &connReply{c})
	default:
		s.receive(m)
	}
}

// InSession reports whether the client has a session, or is about to: its handshake has begun.
func (c *Conn) InSession() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session != nil || c.queue != nil
}

func (c *Conn) isEnding() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ending
}

// current returns the session, nil if there is none, and whether the Conn is closed.
func (c *Conn) current() (s *session, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session, c.closed
}

func (c *Conn) refuse(id wire.ID, e *wire.Error) {
	_ = c.send(wire.AppendError(nil, id, e)) // an error means that the client has left
}

// serveEarly serves a request before there is a session.
func (c *Conn) serveEarly(h queuedMessage) {
	m := h.m
	switch m.Method {
	case spec.MethodPing:
		_ = c.send(empty(m.ID)) // an error means that the client has left
	case spec.MethodInitialize:
		if ctx := c.beginHandshake(m); ctx != nil {
			go c.handshake(ctx, h) // ends with the handshake and its queued messages; Close cancels it
			return
		}
		fallthrough
	default:
		c.refuse(m.ID, wire.Errorf(spec.CodeInvalidRequest,
			"%s arrived before the handshake was done; send initialize first, or _meta with %s", m.Method, spec.MetaProtocolVersion))
	}
}

// Lost returns a channel that is closed when the upstream session has ended, or no more changes will
// come, since the server is another one by now. The connection should then be closed, as a direct
// connection to the server would have been.
func (c *Conn) Lost() <-chan struct{} { return c.lost }

// tellChanges sends changes until the session ends. Once no more will come, the connection is lost:
// the client could not know that it subscribes in vain.
func (c *Conn) tellChanges(ctx context.Context) {
	for {
		select {
		case <-c.mail.Ready():
		case <-ctx.Done():
			return
		}
		switch err := c.writeChanges(); {
		case err == eventstream.ErrNoChanges:
			c.giveUp()
			return
		case err != nil:
			return
		}
	}
}

// giveUp has the connection lost, unless it is about to end in order.
func (c *Conn) giveUp() {
	s, _ := c.current()
	if s == nil || c.isEnding() || c.front.isEnding() {
		return
	}
	why := s.subscriptions.endReason()
	c.mu.Lock()
	c.why = why
	c.mu.Unlock()
	c.front.log.Info("client session ended", "session", s.name, "reason", why, c.sender.Principal.Attr())
	c.lose()
}

// writeChanges sends the pending changes. It returns [eventstream.ErrNoChanges] if no more will come;
// after another error the connection is lost, and Close follows.
func (c *Conn) writeChanges() error {
	for ev, ok := c.mail.Next(); ok; ev, ok = c.mail.Next() {
		msg := c.appendChange(ev)
		if len(msg) == 0 {
			continue
		}
		if err := c.send(msg); err != nil {
			return err
		}
		c.front.opts.Metrics.Delivered(c.front.opts.Name, 1)
	}
	if _, ended := c.mail.Ended(); ended {
		return eventstream.ErrNoChanges
	}
	return nil
}

// appendChange returns the notification of a change; nil if the client does not want it.
func (c *Conn) appendChange(ev fanout.Event) []byte {
	s, _ := c.current()
	if s == nil {
		return nil // the session is over
	}
	return s.subscriptions.appendChange(nil, ev)
}

// Unread handles a message that was refused for its size, of which the beginning and the end
// are known. It returns the id if the message is a request. If it is a response, the request that it answers
// fails with why.
func (c *Conn) Unread(start, end []byte, why *wire.Error) wire.ID {
	id, isRequest := wire.OuterID(start, end)
	if isRequest || id.IsZero() {
		return id
	}
	if m, err := wire.Parse(wire.AppendError(nil, id, why), wire.Options{}); err == nil {
		c.Serve(&m)
	}
	return wire.ID{}
}

// ServeBatch handles a batch.
func (c *Conn) ServeBatch(body []byte) {
	c.receive(queuedMessage{batch: body, from: originOf(c.sender)})
}

func (c *Conn) serveBatch(h queuedMessage) {
	s, _ := c.current()
	if s == nil {
		c.refuse(wire.ID{}, wire.Errorf(spec.CodeInvalidRequest, "a batch arrived before the handshake was done; send initialize first"))
		return
	}
	b, err := s.readBatch(h.batch)
	if err != nil {
		c.refuse(wire.ID{}, err)
		return
	}
	for _, m := range b.others {
		s.receive(m)
	}
	if len(b.requests)+len(b.refusals) == 0 {
		return
	}
	out := &batchReply{conn: c, pending: len(b.requests) + len(b.refusals)}
	for _, refusal := range b.refusals {
		out.reply(response{msg: refusal})
	}
	for _, m := range b.requests {
		s.request(m, h.from, out)
	}
}

// Busy reports whether requests are in flight, or a handshake is in progress.
func (c *Conn) Busy() bool {
	c.mu.Lock()
	s, shaking := c.session, c.queue != nil
	c.mu.Unlock()
	return shaking || s != nil && len(s.calls.All()) > 0
}

// Shutdown refuses further requests, and waits for those in flight, including a handshake
// and the messages that it has queued. If ctx ends first, it returns its cause.
func (c *Conn) Shutdown(ctx context.Context) error {
	c.mu.Lock()
	c.ending = true
	queue := c.queue
	c.mu.Unlock()
	if queue != nil {
		if err := wake.Await(ctx, queue.done); err != nil {
			return err
		}
	}
	s, _ := c.current()
	if s == nil {
		return nil
	}
	return s.calls.Wait(ctx)
}

// Close ends the session, and waits for all its goroutines. It may be called again.
func (c *Conn) Close() {
	c.mu.Lock()
	s, stop, why := c.session, c.queue.stopLocked(), cmp.Or(c.why, endedConn)
	c.closed, c.session = true, nil
	c.mu.Unlock()
	stop(nil)
	if s != nil { // before the wait for its messages, which the server may not read
		s.close()
		s.tellEnd(why)
		c.front.opts.Metrics.Sessions(c.front.opts.Name, -1)
	}
	c.running.Wait()
	c.front.mu.Lock()
	delete(c.front.conns, c) // which may be nil
	c.front.mu.Unlock()
}

// A connReply sends the messages of one request.
type connReply struct{ conn *Conn }

func (o *connReply) send(_ context.Context, msg []byte) error { return o.conn.send(msg) }
func (o *connReply) noReply()                                 {}
func (o *connReply) sessionEnded(msg []byte)                  { o.reply(response{msg: msg}) }
func (o *connReply) reach() reachability                      { return unreachable }

func (o *connReply) reply(r response) {
	_ = o.conn.send(r.msg) // an error means that the client has left
	r.memory.Release()
}

// A batchReply sends the responses of a batch together.
type batchReply struct {
	conn *Conn

	mu      sync.Mutex // guards the fields below
	pending int
	answers [][]byte
	memory  []mcp.Reservation // of the responses
}

func (o *batchReply) send(_ context.Context, msg []byte) error { return o.conn.send(msg) }
func (o *batchReply) reply(r response)                         { o.settle(&r) }
func (o *batchReply) noReply()                                 { o.settle(nil) }
func (o *batchReply) sessionEnded(msg []byte)                  { o.reply(response{msg: msg}) }
func (o *batchReply) reach() reachability                      { return unreachable }

func (o *batchReply) settle(r *response) {
	o.mu.Lock()
	if r != nil {
		o.answers = append(o.answers, r.msg)
		o.memory = append(o.memory, r.memory)
	}
	o.pending--
	done := o.pending == 0 && len(o.answers) > 0
	o.mu.Unlock()
	if done {
		_ = o.conn.send(appendBatch(o.answers)) // an error means that the client has left
		for i := range o.memory {
			o.memory[i].Release()
		}
	}
}
