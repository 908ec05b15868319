package front

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A downstream is the session of one client, whatever it came over.
type downstream struct {
	// Set at the handshake, read-only after.
	f         *Front
	id        DownstreamID // empty on a pipe
	name      string       // for logs and profiles: grants nothing
	principal mcp.Principal
	share     mcp.Share
	handshake

	// Set at the handshake too, of a session that is linked upstream.
	link mcp.Link           // nil for others
	send func([]byte) error // on a connection: what belongs to no call
	told *eventStream       // over Streamable HTTP: likewise

	subs subscriptions

	room mcp.Room // of what its client says of itself, and of its streams; set by reserve, then guarded by streams.mu

	uses   int           // guarded by roll.mu
	ending bool          // guarded by roll.mu
	over   chan struct{} // closed by roll when the session's end is done

	// mu guards the fields below. It is held for map work only.
	mu        sync.Mutex
	cancels   map[int]context.CancelFunc // of what life lent out
	lives     int
	last      uint64                // the last call's n
	calls     map[wire.ID]*incoming // in flight; nil after close
	questions map[int64]*inquiry
	asked     int64 // the last question's id
	level     spec.LogLevel
	quiet     chan struct{} // closed when the last call ends; nil unless somebody waits
	streams   streams       // over Streamable HTTP

	running sync.WaitGroup // calls, and what initialized starts
}

// A handshake is what initialize settled.
type handshake struct {
	revision     spec.Revision
	capabilities json.RawMessage // the client's, in the neutral form
	info         json.RawMessage // the client's
	offered      mcp.ServerCapabilities
}

// errSessionEnded is why calls end with their session.
var errSessionEnded = errors.New("the session has ended")

// errCancelledByClient is why a call ends that its client cancelled: it has no
// answer.
var errCancelledByClient = errors.New("cancelled by the client")

func (f *Front) newDownstream(id DownstreamID, name string, share mcp.Share, h handshake) *downstream {
	d := &downstream{
		f:         f,
		id:        id,
		name:      name,
		principal: share.Principal,
		share:     share,
		handshake: h,
		cancels:   make(map[int]context.CancelFunc),
		over:      make(chan struct{}),
		calls:     make(map[wire.ID]*incoming),
		questions: make(map[int64]*inquiry),
		level:     f.opts.LogLevel,
	}
	d.subs.init(d)
	d.streams.init(d)
	return d
}

// downstreamSize is what a session takes beside what its client says of itself, in bytes.
const downstreamSize = 4 << 10

// reserve takes memory for the session, which close gives back.
func (d *downstream) reserve() (err error) {
	d.room, err = mcp.Take(d.f.opts.Memory, d.share, downstreamSize+len(d.info)+len(d.capabilities))
	return err
}

// close cancels what is in flight and waits for it, and leaves nothing of the
// session behind.
func (d *downstream) close() {
	d.mu.Lock()
	calls, cancels := d.calls, d.cancels
	d.calls, d.cancels = nil, nil
	d.mu.Unlock()
	for _, cancel := range cancels {
		cancel()
	}
	for _, c := range calls {
		c.cancel(errSessionEnded)
	}
	d.subs.close()
	if d.link != nil {
		d.link.Close()
		d.running.Wait() // calls are told on their streams that there will be no answer
	}
	d.streams.close()
	d.running.Wait()
	d.streams.vacate()
}

// life returns a context that ends with the session, for one of its goroutines.
func (d *downstream) life() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls == nil {
		cancel(errSessionEnded)
		return ctx, func() {}
	}
	d.lives++
	n := d.lives
	d.cancels[n] = func() { cancel(errSessionEnded) }
	return ctx, func() {
		cancel(nil)
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.cancels, n) // of nil too
	}
}

// request returns the neutral request that m is.
func (d *downstream) request(m *wire.Message) *mcp.Request {
	d.mu.Lock()
	level := d.level
	d.mu.Unlock()
	return &mcp.Request{
		Method:        m.Method,
		Params:        m.Params,
		Extra:         m.Extra,
		Era:           spec.Legacy,
		Revision:      d.revision,
		Capabilities:  d.capabilities,
		ClientInfo:    d.info,
		Principal:     d.principal,
		Share:         d.share,
		Memory:        d.f.opts.Memory,
		Session:       d.name,
		LogLevel:      level,
		ProgressToken: wire.Get(wire.Get(m.Params, "_meta"), spec.MetaProgressToken),
	}
}

// begin serves a request on a goroutine of the session's: it does not end with the
// connection that it came on. Its answer goes to out.
func (d *downstream) begin(m *wire.Message, out outlet) {
	if d.link != nil {
		d.beginLinked(m, out)
		return
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &incoming{d: d, id: m.ID, out: out, cancel: cancel}
	if err := d.admit(c, m); err != nil {
		cancel(nil)
		c.refuse(err)
		return
	}
	go func() { // ends when the handler returns, which close makes it
		defer d.running.Done()
		defer cancel(nil)
		c.serve(ctx, m)
	}()
}

// spawn runs f on a goroutine of the session's, unless the session has ended.
func (d *downstream) spawn(f func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls != nil {
		d.running.Go(f) // close waits for it
	}
	return d.calls != nil
}

// admit takes memory for a request and counts it in, or refuses it.
func (d *downstream) admit(c *incoming, m *wire.Message) (err error) {
	if c.room, err = mcp.Take(d.f.opts.Memory, d.share, len(m.Text)); err != nil {
		return err
	}
	if err = d.enter(c); err != nil {
		c.room.Release()
	}
	return err
}

func (d *downstream) enter(c *incoming) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.calls == nil:
		return wire.Errorf(spec.CodeSessionNotFound, "%v; initialize anew", errSessionEnded)
	case d.calls[c.id] != nil:
		return wire.Errorf(spec.CodeInvalidRequest, "a request with the id %s is in flight; take another id", c.id)
	case len(d.calls) >= maxCalls:
		d.f.opts.Metrics.Limit("client_calls")
		d.running.Go(func() { // not under the lock
			d.f.log.Warn("request refused: too many in flight", "session", d.name, "limit", maxCalls)
		})
		return mcp.RefuseForNow("%d requests of this session are in flight, the limit; wait for some", maxCalls)
	}
	d.last++
	c.n = d.last
	d.calls[c.id] = c
	d.running.Add(1) // here, where close is yet to look
	return nil
}

func (d *downstream) leave(c *incoming) {
	c.room.Release()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.calls, c.id) // of nil too
	if len(d.calls) == 0 && d.quiet != nil {
		close(d.quiet)
		d.quiet = nil
	}
}

// settle waits until no request is in flight, or ctx ends.
func (d *downstream) settle(ctx context.Context) error {
	d.mu.Lock()
	if len(d.calls) == 0 {
		d.mu.Unlock()
		return nil
	}
	if d.quiet == nil {
		d.quiet = make(chan struct{})
	}
	quiet := d.quiet
	d.mu.Unlock()
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hear takes a notification.
func (d *downstream) hear(m *wire.Message) {
	switch m.Method {
	case spec.NotifyInitialized:
		d.subs.begin()
	case spec.NotifyCancelled:
		d.cancelled(m.Params)
	case spec.NotifyRootsListChanged:
		// Roots are asked for when they are needed.
	default:
		d.f.opts.Metrics.Dropped("client notification")
	}
}

// cancelled cancels a call. It has no answer, and neither has the cancellation.
//
// Spec: 2025-11-25, basic/utilities/cancellation, Behavior Requirements.
func (d *downstream) cancelled(params []byte) {
	id, err := wire.ParseID(wire.Get(params, "requestId"))
	if err != nil {
		d.f.opts.Metrics.Dropped("client notification")
		return
	}
	d.mu.Lock()
	c := d.calls[id]
	d.mu.Unlock()
	if c == nil {
		d.f.opts.Metrics.Dropped("late cancellation")
		return
	}
	c.cancel(errCancelledByClient)
}
