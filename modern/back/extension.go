package back

import (
	"context"
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// noLimit is longer than any process runs.
	noLimit = 100 * 365 * 24 * time.Hour
	// maxStalled is how long a slow client may delay others on a shared connection, since
	// it was last up to date. Messages that it reads make up for some of that; see
	// readAllowance.
	maxStalled = 2 * time.Second
	// stallPoll is how often is checked whether others wait.
	stallPoll = 50 * time.Millisecond
)

// errSlowClient is why a request ends whose client is too slow for its messages. mcpbridge
// does not know these messages, so it can't drop any.
var errSlowClient = errors.New("its messages arrived faster than the client reads")

func slowClient(server, method string) error {
	step := "send the request again"
	if method == spec.MethodListen {
		step = "listen again"
	}
	return wire.Errorf(spec.CodeInternal, "server %q sent messages of %s faster than the client reads, while other requests waited for the server; %s", server, method, step)
}

// clientError is that of the Back, with a text for streams if the request may be one. If ctx, that of the
// exchanges, has ended, the error is about that.
func (s *servedRequest) clientError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = cause
	}
	if s.streams && errors.Is(err, upstream.ErrTooLong) {
		return wire.Errorf(spec.CodeInternal, "server %q sent no message of %s for %v; raise timeouts.request if that is normal for it",
			s.b.opts.Name, s.req.Method, s.b.opts.Settings.Timeouts.Silence(s.req.Method))
	}
	return s.b.clientError(s.req.Method, err)
}

// readAllowance is how long a client may delay others for one message without limit: a
// client that reads a hundred messages, or a megabyte, per second is fast enough.
func readAllowance(n mcp.Notification) time.Duration {
	return 10*time.Millisecond + time.Duration(len(n.Params)>>10)*time.Millisecond
}

// maxTime is the time limit of the request, in spite of progress.
func (s *servedRequest) maxTime() time.Duration {
	if s.streams {
		return noLimit
	}
	return s.b.opts.Settings.Timeouts.Max
}

// noteActivity restarts the clock of a request that may be a stream, because a message has
// arrived on it.
func (c *upstreamCall) noteActivity() {
	if c.parent != nil && c.parent.streams {
		c.parent.clock.Restart()
	}
}

// notify passes a message to the caller. The time that a slow client takes does not count
// against the server.
func (c *upstreamCall) notify(ctx context.Context, n mcp.Notification) {
	if c.parent.streams {
		c.parent.clock.Pause()
		defer c.parent.clock.Resume()
	}
	// An error is ignored: if the client has left, ctx ends.
	_ = c.parent.caller.Notify(ctx, n)
}

// streamOwner returns the request whose own stream a notification names, or ends, if its client
// gets all messages of the stream, else nil. That is a client's own listen request, or a modern
// client's request for a notification that mcpbridge does not know.
func (p *conn) streamOwner(m *wire.Message) *upstreamCall {
	id := wire.Get(wire.Get(m.Params, "_meta"), spec.MetaSubscriptionID)
	if m.Method == spec.NotifyCancelled {
		id = wire.Get(m.Params, "requestId")
	}
	if len(id) > 0 && id[0] == '"' {
		id = []byte(wire.Unquote(id)) // some servers write numbers as strings
	}
	named, _ := wire.ParseID(id) // what is none finds none
	c := p.find(named)
	switch {
	case c == nil, c.parent == nil:
		return nil
	case c.parent.listens, c.parent.req.Era == spec.Modern && spec.UndefinedNotification(m.Method):
		return c
	}
	return nil
}

// deliverToStream passes a notification to the request whose stream it names. It waits for
// a slow client, which slows the server down. If other requests wait for the server, it
// does not wait for long.
func (p *conn) deliverToStream(c *upstreamCall, m *wire.Message) {
	if m.Method == spec.NotifyToolsListChanged {
		p.link.unclaimed(c, m)
	}
	if m.Method == spec.NotifyCancelled { // after all that is queued
		c.SettleElsewhere(upstream.Response{Result: completed})
		return
	}
	c.noteActivity()
	n, ok := c.forCaller(m)
	if !ok {
		return
	}
	for !c.offer(n) {
		if !c.queue.await(p.isShared) {
			p.tooSlow(c)
			return
		}
	}
}

// await waits briefly for the client to read a message. It reports false if others have
// waited too long for that.
func (q *notificationQueue) await(isShared func() bool) bool {
	began := time.Now()
	t := time.NewTimer(stallPoll)
	defer t.Stop()
	select {
	case <-q.space:
	case <-t.C:
	}
	if !isShared() {
		return true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stalled += time.Since(began)
	return q.stalled < maxStalled
}

// isShared reports whether others wait for what the server sends: responses, or changes.
func (p *conn) isShared() bool {
	several := p.Calls.Len() > 1
	p.mu.Lock()
	defer p.mu.Unlock()
	return several || len(p.listens) > 0
}

// tooSlow ends a request whose client reads too slowly.
func (p *conn) tooSlow(c *upstreamCall) {
	p.Drop("slow listener")
	p.link.opts.Logger.Warn("request ended: its client reads too slowly, and other requests wait", "method", c.Method, "limit", maxStalled)
	if c.Fail(&upstream.Failure{Cause: errSlowClient, Fate: upstream.MayHaveRun}) {
		p.cancel(c, errSlowClient)
	}
}
