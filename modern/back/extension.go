package back

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// noLimit is longer than any process lives.
	noLimit = 100 * 365 * 24 * time.Hour
	// maxStalled is how long a client that is slow may hold up others on a connection
	// that it shares with them, from when it was last up to date. What it takes makes
	// good for some of that; see worth.
	maxStalled = 2 * time.Second
	// stallPoll is how often is looked whether there are others.
	stallPoll = 50 * time.Millisecond
)

// errSlowClient is why a request ends whose client is too slow for what comes: what
// its messages mean is not known here, so none may stand for another.
var errSlowClient = errors.New("its messages came faster than the client reads")

func slowClient(server, method string) error {
	step := "send the request again"
	if method == spec.MethodListen {
		step = "listen again"
	}
	return wire.Errorf(spec.CodeInternal, "server %q sent more about %s than the client read in time, while others waited for the server; %s", server, method, step)
}

// clientError is that of the Back, in the words of a stream where it is one.
func (s *servedRequest) clientError(err error) error {
	if s.streams && errors.Is(err, upstream.ErrTooLong) {
		return wire.Errorf(spec.CodeInternal, "server %q sent nothing about %s for %v; raise timeouts.request if that is normal for it",
			s.b.opts.Name, s.req.Method, s.b.opts.Timeouts.Request)
	}
	return s.b.clientError(s.req.Method, err)
}

// readAllowance is how long a client may hold up others over one message for ever: one that takes
// a hundred in a second, or a megabyte, is as fast as anybody can ask for.
func readAllowance(n mcp.Notification) time.Duration {
	return 10*time.Millisecond + time.Duration(len(n.Params)>>10)*time.Millisecond
}

// maxTime is how long the request may take, however much is heard of it.
func (s *servedRequest) maxTime() time.Duration {
	if s.streams {
		return noLimit
	}
	return s.b.opts.Timeouts.Max
}

// noteActivity takes a message on the request's own stream for a sign that it is being served.
func (c *upstreamCall) noteActivity() {
	if c.parent != nil && c.parent.streams {
		c.parent.clock.Restart()
	}
}

// notify gives a message to the caller. The time that a slow one takes over it is not the
// server's.
func (c *upstreamCall) notify(ctx context.Context, n mcp.Notification) {
	if c.parent.streams {
		c.parent.clock.Pause()
		defer c.parent.clock.Resume()
	}
	// A caller that can't be reached is no reason to stop: ctx says so too.
	_ = c.parent.x.Notify(ctx, n)
}

// streamOwner returns the request whose own stream a notification names, if its client is
// told everything that comes there; else nil. That is a client's own listen request, or
// one of a modern client that gets a notification which is not known here.
func (p *conn) streamOwner(m *wire.Message) *upstreamCall {
	id := wire.Get(wire.Get(m.Params, "_meta"), spec.MetaSubscriptionID)
	if len(id) > 0 && id[0] == '"' {
		id = []byte(wire.Unquote(id)) // so some servers write numbers
	}
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil {
		return nil
	}
	c := p.find(wire.NumberID(n))
	switch {
	case c == nil, c.parent == nil:
		return nil
	case c.parent.listens, c.parent.req.Era == spec.Modern && spec.UndefinedNotification(m.Method):
		return c
	}
	return nil
}

// deliverToStream gives a notification to the request whose own it is. It waits for a client
// that is slow, and so slows the server down; but where others wait, too, it does so
// not for long.
func (p *conn) deliverToStream(c *upstreamCall, m *wire.Message) {
	if m.Method == spec.NotifyToolsListChanged {
		p.link.unclaimed(c, m)
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

// await waits a moment for the client to take a message. It reports false if others have
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

// isShared reports whether several requests wait for their answers.
func (p *conn) isShared() bool { return p.Calls.Len() > 1 }

// tooSlow ends a request whose client does not keep up.
func (p *conn) tooSlow(c *upstreamCall) {
	p.Drop("slow listener")
	p.link.opts.Logger.Warn("request ended: its client reads too slowly for what comes, and others wait", "method", c.Method, "limit", maxStalled)
	if c.Fail(&upstream.Failure{Cause: errSlowClient, Fate: upstream.MayHaveRun}) {
		p.cancel(c, errSlowClient)
	}
}
