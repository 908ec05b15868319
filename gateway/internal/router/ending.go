package router

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/mcpbridge/mcpbridge/gateway/internal/forward"
	"github.com/mcpbridge/mcpbridge/internal/detect"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// Drain begins to hand over the sessions of legacy clients that other replicas can go on with,
// when the others know that this one is about to end. EndStreams does so too.
func (g *Gateway) Drain() {
	if g.forward == nil {
		return
	}
	var servers []*forward.Server
	for _, s := range g.now().inOrder() {
		servers = append(servers, s.together.forward)
	}
	g.forward.Drain(servers)
}

// EndStreams ends all listen streams gracefully and refuses new ones, begins to end
// WebSockets, and starts no more processes. It is the first step of a shutdown, because the
// HTTP server's Shutdown waits for open responses.
func (g *Gateway) EndStreams() {
	g.mu.Lock()
	g.ending = true
	t := g.now()
	g.mu.Unlock()
	g.opts.Losses.Stop()
	g.Drain()
	g.sockets.Stop()
	g.endAll()
	g.sharing.sources.Drain()
	for _, s := range t.servers {
		if d, ok := s.back.(*detect.Detector); ok {
			d.Drain()
		}
		s.legacy.EndStreams(mcp.ErrShutdown)
	}
	g.hub.Close()
}

// EndConnections refuses new WebSockets, and waits for the open ones, whose calls in flight
// may take [Options.Drain], and for listen streams, which EndStreams has ended. When ctx ends,
// it closes them and returns the cause. An HTTP server's Shutdown does not wait for
// WebSockets.
func (g *Gateway) EndConnections(ctx context.Context) error {
	g.EndStreams()
	servers := g.now().inOrder()
	errs := make([]error, len(servers)+1, len(servers)+2)
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { errs[i] = s.streams.Wait(ctx) })
	}
	if g.forward != nil {
		wg.Go(func() { errs[len(servers)] = g.forward.WaitStreams(ctx) })
		g.forward.AwaitDrain(ctx)
	}
	lost := g.sockets.Wait(ctx)
	wg.Wait()
	return cmp.Or(append(errs, lost)...)
}

// Close ends all connections that outlive their requests, and then the servers. ctx bounds
// the wait for a graceful end. Call it after all requests have ended.
func (g *Gateway) Close(ctx context.Context) error {
	g.closing.once.Do(func() {
		cutErr := g.EndConnections(ctx)
		defer context.AfterFunc(ctx, g.cut)()
		servers := g.now().inOrder()
		errs := make([]error, len(servers))
		var wg sync.WaitGroup
		for i, s := range servers {
			wg.Go(func() { errs[i] = s.close(ctx) })
		}
		wg.Wait()
		g.retiring.Wait()
		g.release()
		g.closing.err = errors.Join(append(errs, cutErr)...)
	})
	return g.closing.err
}
