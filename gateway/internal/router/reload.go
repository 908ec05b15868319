package router

import (
	"context"
	"errors"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// Reload has the Gateway serve by other options. A server that is Kept goes on as it is, with
// its sessions, streams and calls, also a group of which members are replaced; all others of opts are new. Servers that are not kept end
// in the background: their streams at once and in order, so that clients open others, their
// calls within the Drain that they were built with.
//
// If it fails, nothing has changed. It must not be called concurrently with itself.
func (g *Gateway) Reload(opts Options) error {
	opts.fill()
	opts.Logger, opts.Metrics, opts.Losses, opts.Secrets, opts.Observers = g.opts.Logger, g.opts.Metrics, g.opts.Losses, g.opts.Secrets, g.opts.Observers
	next, fresh, err := g.newTable(opts)
	if err != nil {
		return err
	}
	if err := g.sealer.Replace(opts.StateKeys...); err != nil {
		abandon(fresh)
		return err
	}
	for _, s := range g.now().leftBy(next) {
		g.opts.Losses.Replaced(s.name) // before the next one of its name serves anybody
	}
	former, begun, ok := g.swap(next)
	if !ok {
		abandon(fresh)
		return mcp.ErrShutdown
	}
	g.bound(&opts)
	if begun {
		start(fresh)
	}
	next.regroup(g.opts.Logger)
	for _, s := range former.leftBy(next) {
		go g.retire(s, &replacedError{server: s.name, removed: next.servers[s.name] == nil, anew: s.name == opts.Anew}) // Close waits for it
	}
	return nil
}

// swap makes next the table, and reports whether the Gateway was started. It reports false
// for ok if the Gateway is ending.
func (g *Gateway) swap(next *table) (former *table, begun, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ending {
		return nil, false, false
	}
	former = g.table.Swap(next)
	for _, s := range former.leftBy(next) {
		g.retiring.of[s.name]++
		g.retiring.Add(1)
	}
	return former, g.begun, true
}

// leftBy returns the servers that next does not have.
func (t *table) leftBy(next *table) (left []*server) {
	for _, name := range t.order {
		if s := t.servers[name]; !next.has(s) {
			left = append(left, s)
		}
	}
	return left
}

// bound applies the limits on what all servers share.
func (g *Gateway) bound(opts *Options) {
	l := opts.Limits
	g.inflight.Bound(l.Int(limits.Requests), l.Int(limits.RequestsEach))
	g.sockets.Bound(l.Int(limits.WebSockets), l.Int(limits.WebSocketsEach))
	g.hub.Bound(l.Int(limits.Streams), l.Int(limits.StreamsEach))
	g.hub.Cache().Bound(l.Int(limits.CacheEntries), l.Int(limits.Cache))
	g.budget.Bound(opts.memory())
}

// retire ends a server that is in no table any more: first its streams, then its calls and
// connections, and then what it has of the server itself.
func (g *Gateway) retire(s *server, why error) {
	defer g.retiring.Done()
	inTime := true
	defer func() { g.retired(s.name, inTime) }()
	s.life.End(why)
	s.legacy.EndStreams(why)       // before the subscriptions, or their end would end sessions with calls in flight
	g.hub.EndSubscriptions(s, why) // and listen streams
	ctx, cancel := context.WithTimeout(g.live, s.opts.Drain)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { s.life.Wait(ctx) })
	wg.Go(func() { _ = s.streams.Wait(ctx) }) // they were told why
	wg.Wait()
	inTime = ctx.Err() == nil
	ctx, cancel = context.WithTimeout(g.live, retireTime)
	defer cancel()
	err := s.close(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		g.opts.Logger.Warn("ending a server that is not served any more", "upstream", s.name, "err", err)
	}
	inTime = inTime && err == nil
	g.hub.Cache().Forget(s.name) // what its last requests have put there
}

// A retirement has the servers that are in no table any more.
type retirement struct {
	sync.WaitGroup
	of map[string]int // how many there are of a name; guarded by Gateway.mu
}

// retired has the Metrics forget the servers of a name when the last one has ended. One that
// has not ended in time may still be counted: the Metrics go on to know its name.
func (g *Gateway) retired(name string, inTime bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if inTime {
		g.retiring.of[name]--
	}
	if g.retiring.of[name] > 0 {
		return
	}
	delete(g.retiring.of, name)
	if g.now().servers[name] == nil {
		g.opts.Metrics.Forget(name)
	}
}

// abandon closes servers that were not started. What they were given stays the caller's.
func abandon(servers []*server) {
	for _, s := range servers {
		s.ended = nil
		_ = s.close(context.Background()) // there is nothing to wait for
	}
}

// start connects to servers in the background.
func start(servers []*server) {
	for _, s := range servers {
		s.back.Start()
	}
}
