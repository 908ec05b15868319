package back

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxCancellations bounds the cancellations that are being sent in the background.
const maxCancellations = 1024

// A conn is one connection with the requests in flight on it.
type conn struct {
	upstream.Mux
	link *connLink
	born time.Time
	held *upstream.Held // of the process; nil for other connections

	client atomic.Pointer[mcp.Principal] // of the first client's request; nil before
	mixed  atomic.Bool                   // there were requests of several principals

	// mu guards the fields below. It is held for map work only.
	mu            sync.Mutex
	listens       map[int64]*connListen
	partings      []*connListen // the last that were cancelled and have not been answered; the oldest first
	cancellations int           // being sent
}

// newConn returns a conn that reads over until it ends or is closed.
func newConn(l *connLink, over transport.Conn) *conn {
	p := &conn{link: l, born: time.Now(), listens: make(map[int64]*connListen)}
	if _, ok := over.(*transport.Process); ok {
		p.held = l.opts.Hold(upstream.LostExit, false)
	}
	p.Mux = upstream.NewMux(upstream.NewInbox(&l.opts.Options, upstream.Reading{}, p), over, p.lost)
	l.running.Go(p.read)
	return p
}

func (p *conn) alive() bool { return p.Calls.Err() == nil }

// read reads messages until the connection ends, and then closes it.
func (p *conn) read() {
	p.Run(p.link.live, p.link.live.Done())
	_ = p.Conn.Close() // it has ended already
}

// lost handles the end of the connection.
func (p *conn) lost(err error) {
	if p.fail(err) {
		p.heldEnded()
		p.link.ended(p, err)
		p.link.running.Go(func() { _ = p.Conn.Close() }) // makes read end, which close waits for
	}
}

// heldEnded records what clients have lost with the process.
func (p *conn) heldEnded() {
	if p.held != nil {
		p.held.Ended()()
	}
}

// fail ends all requests in flight. It reports false if that was done before.
func (p *conn) fail(err error) bool {
	if !p.Calls.End(err) {
		return false
	}
	p.Calls.Fail(err)
	p.mu.Lock()
	listens, partings := p.listens, p.partings
	p.listens, p.partings = nil, nil
	p.mu.Unlock()
	for _, s := range partings {
		close(s.parting.over)
	}
	for _, s := range listens {
		s.end(&upstream.Failure{Cause: err, Fate: upstream.MayHaveRun, Again: true})
	}
	return true
}

// exchange is link.exchange on this connection. Its goroutine passes the notifications of
// c to the caller, so that a slow caller delays no other request.
func (p *conn) exchange(ctx context.Context, c *upstreamCall) (upstream.Response, error) {
	c.queue = newNotificationQueue(ctx)
	c.Owner, c.Wake = c, wake.NewSignal()
	p.noteClient(c)
	if err := p.Calls.Add(&c.Call); err != nil {
		return upstream.Response{}, err
	}
	err := p.Do(ctx, &c.Call, c.frame)
	p.Calls.Remove(&c.Call)
	if err == nil {
		r, err, _ := c.Outcome()
		return r, err
	}
	if upstream.AsFailure(err) == nil {
		p.abandon(c, err)
	}
	return upstream.Response{}, err
}

// abandon ends a call whose caller has left, and tells the server.
//
// Spec: 2026-07-28, basic/transports/stdio, Cancellation.
func (p *conn) abandon(c *upstreamCall, cause error) {
	if !c.Fail(cause) {
		r, _ := c.Settled()
		r.Free() // the response arrived, and nobody waits for it
	} else if !c.noCancel {
		p.cancel(c, cause)
	}
}

// cancel sends a cancellation in the background.
func (p *conn) cancel(c *upstreamCall, cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.alive() || p.cancellations == maxCancellations {
		return
	}
	p.cancellations++
	p.link.running.Go(func() { // ends with the connection at the latest
		// The goroutine that reads the connection notices if it is broken.
		_ = p.Conn.Write(c.Cancellation(cause))
		p.mu.Lock()
		defer p.mu.Unlock()
		p.cancellations--
	})
}

func (p *conn) skip(what, method string) {
	p.Drop(what)
	p.link.opts.Logger.Debug("skipping message of server", "what", what, "method", method)
}

// TooLong implements [upstream.Sink]: modern servers send no requests.
func (p *conn) TooLong(context.Context, wire.ID, int) {}

// Unclaimed implements [upstream.Sink] for responses to listen requests.
func (p *conn) Unclaimed(id wire.ID, e *wire.Error) bool {
	s := p.listenOf(id)
	if s == nil {
		return p.parted(id)
	}
	p.forget(s)
	s.answered(e)
	return true
}

// Receive implements [upstream.Sink]. It passes a notification to the request, or the
// stream, that it names.
func (p *conn) Receive(_ context.Context, m *wire.Message, _ *upstream.Call) {
	if m.Kind() == wire.Request {
		p.skip("request", m.Method) // modern servers send no requests
		return
	}
	if c := p.streamOwner(m); c != nil {
		p.deliverToStream(c, m)
		return
	}
	switch m.Method {
	case spec.NotifyProgress:
		token, err := wire.ParseID(wire.Get(m.Params, spec.MetaProgressToken))
		if err == nil {
			p.deliver(p.find(token), m)
			return
		}
		p.skip("progress", m.Method)
	case spec.NotifyMessage:
		p.deliver(p.onlyRequest(), m)
	case spec.NotifyAcknowledged, spec.NotifyToolsListChanged, spec.NotifyPromptsListChanged,
		spec.NotifyResourcesListChanged, spec.NotifyResourceUpdated, spec.NotifyCancelled:
		p.change(m)
	default:
		p.skip("unknown notification", m.Method)
	}
}

// find returns the request in flight with an id from the server, or nil.
func (p *conn) find(id wire.ID) *upstreamCall {
	if c := p.Calls.Find(id); c != nil {
		return c.Owner.(*upstreamCall)
	}
	return nil
}

// noteClient records the principal of a request that is about to be sent.
func (p *conn) noteClient(c *upstreamCall) {
	if c.parent == nil {
		return
	}
	if c.parent.held = p.held; p.held != nil && spec.LeavesState(c.Method) {
		p.held.Note(c.parent.req)
	}
	if p.client.Load() == nil {
		who := c.parent.req.Profile.Principal
		p.client.CompareAndSwap(nil, &who)
	}
	if *p.client.Load() != c.parent.req.Profile.Principal && !p.mixed.Load() {
		p.mixed.Store(true)
	}
}

// onlyRequest returns the only client's request in flight, listens aside, or nil if there is
// none or more than one: then a message that names no request can't be attributed. It also
// returns nil if requests of several principals were sent, because the message may belong
// to an earlier one of another principal.
func (p *conn) onlyRequest() *upstreamCall {
	if p.mixed.Load() {
		return nil
	}
	var sole *upstreamCall
	clients := 0
	p.Calls.Each(func(c *upstream.Call) {
		if of := c.Owner.(*upstreamCall); of.parent != nil && !of.parent.listens {
			sole = of
			clients++
		}
	})
	if clients != 1 {
		return nil
	}
	return sole
}

// deliver passes a notification to the goroutine of a call.
func (p *conn) deliver(c *upstreamCall, m *wire.Message) {
	if c == nil {
		p.skip(droppedAs(m.Method), m.Method)
		return
	}
	c.noteActivity()
	n, ok := c.forCaller(m)
	if !ok || !c.enqueue(n) {
		p.skip(droppedAs(m.Method), m.Method)
	}
}

var _ upstream.Sink = (*conn)(nil)
