package front

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A handshakeQueue contains the messages that arrived on a Conn during a handshake, which
// are served after it. It is guarded by the Conn's mu.
type handshakeQueue struct {
	done     chan struct{}           // closed when the handshake has ended, and the queued messages are served
	id       wire.ID                 // of the last initialize
	stop     context.CancelCauseFunc // ends the handshake; nil when it has ended
	messages mcp.EarlyQueue[queuedMessage]
	warned   bool // the limit was logged
}

// A queuedMessage is a message, or a batch, that waits for the end of the handshake.
type queuedMessage struct {
	m     *wire.Message // nil for a batch
	batch []byte
	from  origin
}

func (h *queuedMessage) size() int {
	if h.m != nil {
		return len(h.m.Text)
	}
	return len(h.batch)
}

// beginHandshake begins the handshake of m, and returns its context; nil if there can't be
// one.
func (c *Conn) beginHandshake(m *wire.Message) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue != nil || c.session != nil || c.closed {
		return nil
	}
	c.queue = &handshakeQueue{done: make(chan struct{})}
	c.running.Add(1)
	return c.queue.begin(m.ID)
}

// handshake runs the handshake of first, and then serves the queued messages. If the
// server refused the client, one of them may begin another handshake.
func (c *Conn) handshake(ctx context.Context, first queuedMessage) {
	defer c.running.Done()
	c.initialize(ctx, first)
	for h, ok := c.dequeue(); ok; h, ok = c.dequeue() {
		switch {
		case h.m == nil:
			c.serveBatch(h)
		case h.m.Method == spec.MethodInitialize:
			c.retry(h)
		default:
			c.serve(h)
		}
	}
}

// retry serves an initialize that arrived during another one.
func (c *Conn) retry(h queuedMessage) {
	c.mu.Lock()
	var ctx context.Context
	if c.session == nil && !c.closed {
		ctx = c.queue.begin(h.m.ID)
	}
	c.mu.Unlock()
	if ctx == nil {
		c.serve(h)
		return
	}
	c.initialize(ctx, h)
}

func (c *Conn) initialize(ctx context.Context, h queuedMessage) {
	m := h.m
	s, answer, err := c.front.initialize(ctx, "", m, mcp.Sender{Share: c.sender.Share, Identity: h.from.identity, Arrival: h.from.arrival}, c)
	if !c.adopt(s) {
		s.close()
		s, err = nil, wire.Errorf(spec.CodeInternal, "%v", c.front.over())
	}
	if s != nil {
		c.front.opts.Metrics.Sessions(c.front.opts.Name, 1)
	}
	if err != nil {
		answer = wire.AppendError(nil, m.ID, mcp.WireError(err))
	}
	if s == nil && context.Cause(ctx) == errCancelledByClient {
		return // the client expects no response
	}
	err = c.send(answer)
	if s == nil {
		return
	}
	if tells := s.start(c.lose); tells && err == nil && c.lost != nil {
		s.spawn(c.tellChanges) // ends when the session does
	}
}

// adopt sets the session, which may be nil, unless the Conn was closed in the meantime.
func (c *Conn) adopt(s *session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue.stop(nil)
	c.queue.stop = nil
	if s != nil && c.closed {
		return false
	}
	c.session = s // nil: the client may try again
	return true
}

// enqueue queues h if a handshake is in progress or its queue is being served, and reports
// whether it did. During the handshake it answers pings, and applies cancellations of
// queued requests, at once.
func (c *Conn) enqueue(h queuedMessage) bool {
	c.mu.Lock()
	for c.queue != nil {
		switch {
		case c.queue.stop != nil && h.m != nil && h.m.Method == spec.MethodPing && h.m.Kind() == wire.Request:
			c.mu.Unlock()
			c.front.tolerate(h.m, nil)
			_ = c.send(empty(h.m.ID)) // an error means that the client has left
			return true
		case h.m != nil && h.m.Method == spec.NotifyCancelled && c.cancelQueuedLocked(h.m):
			c.mu.Unlock()
			return true
		case c.queue.messages.Add(h, h.size()):
			c.mu.Unlock()
			return true
		case c.queue.stop != nil:
			c.refuseQueued(h) // which unlocks
			return true
		}
		// The handshake is done, and the queued messages are being served.
		done := c.queue.done
		c.mu.Unlock()
		<-done // Close cancels the calls that it waits for
		c.mu.Lock()
	}
	c.mu.Unlock()
	return false
}

// begin begins a handshake, and returns its context.
func (e *handshakeQueue) begin(id wire.ID) (ctx context.Context) {
	e.id = id
	ctx, e.stop = context.WithCancelCause(context.Background())
	return ctx
}

// stopLocked returns a function that ends the handshake, if there is one.
func (e *handshakeQueue) stopLocked() context.CancelCauseFunc {
	if e == nil || e.stop == nil {
		return func(error) {}
	}
	return e.stop
}

// cancelQueuedLocked cancels the handshake or a queued request, and reports whether m
// names one of them.
func (c *Conn) cancelQueuedLocked(m *wire.Message) bool {
	id, err := wire.ParseID(wire.Get(m.Params, "requestId"))
	if err != nil {
		return false
	}
	e := c.queue
	if e.stop != nil && e.id == id {
		e.stop(errCancelledByClient)
		return true
	}
	return e.messages.Remove(func(h queuedMessage) bool {
		return h.m != nil && h.m.Kind() == wire.Request && h.m.ID == id
	})
}

// refuseQueued refuses a message that exceeds the limit. It unlocks mu.
func (c *Conn) refuseQueued(h queuedMessage) {
	first := !c.queue.warned
	c.queue.warned = true
	c.mu.Unlock()
	c.front.limit("early_messages")
	if first {
		c.front.log.Warn("messages refused: too many arrived before the handshake was done", "limit", mcp.MaxEarly, "bytes", mcp.MaxEarlyBytes)
	}
	if h.m != nil && h.m.Kind() != wire.Request {
		c.front.drop("message before initialize")
		return
	}
	var id wire.ID
	if h.m != nil {
		id = h.m.ID
	}
	c.refuse(id, wire.Errorf(spec.CodeInternal,
		"%d messages or %d bytes wait for the end of the handshake, the limit; wait for the response to initialize", mcp.MaxEarly, mcp.MaxEarlyBytes))
}

// dequeue returns the next queued message. If there is none, it ends the handshake.
func (c *Conn) dequeue() (h queuedMessage, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h, ok = c.queue.messages.Next(); !ok {
		close(c.queue.done)
		c.queue = nil
	}
	return h, ok
}
