package evict

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// Path is where a replica is told what to evict.
const Path = "/peer/evict"

// patience is how long a change waits for other replicas.
const patience = 200 * time.Millisecond

// A Cache has the results of all servers.
type Cache interface {
	Evict(ev fanout.Event)
	Forget(server string)
	Clear()
}

// Options configure a Group. All are required but Logger and Metrics.
type Options struct {
	Engine replicas.Engine
	// URL returns where a path is at another replica, and RoundTripper reaches it.
	URL          func(to replicas.Replica, path string) string
	RoundTripper func(to replicas.Replica) http.RoundTripper
	Cache        Cache
	// Scope returns what the scopes of a server begin with here; empty if there is none of
	// that name.
	Scope func(server string) string

	Logger  *slog.Logger // nil discards
	Metrics mcp.Metrics  // nil counts nothing
}

// A Group tells other replicas what to evict, and is told by them. It is safe for concurrent
// use. Close does nothing on nil.
type Group struct {
	opts  Options
	fresh freshness
	late  transport.WarnLimiter // logs replicas that do not answer
	many  transport.WarnLimiter // logs replicas for which too many changes wait

	unread transport.WarnLimiter // logs messages that can't be read

	live    context.Context // ends with Close
	stop    context.CancelFunc
	running sync.WaitGroup
	begin   sync.Once

	// mu guards the fields below, and those of peers.
	mu    sync.Mutex
	peers map[string]*peer // by instance: those that have something to be told
	links map[string]*link // by instance: the others
	ended bool
}

// NewGroup returns a Group. The caller must call Close.
func NewGroup(o Options) *Group {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Metrics = cmp.Or[mcp.Metrics](o.Metrics, mcp.NoMetrics{})
	g := &Group{opts: o, peers: make(map[string]*peer)}
	g.live, g.stop = context.WithCancel(context.Background())
	return g
}

// Close ends what the Group has running. Close the Changes before.
func (g *Group) Close() {
	if g == nil {
		return
	}
	g.mu.Lock()
	g.ended = true
	g.mu.Unlock()
	g.stop()
	g.running.Wait()
}

// others returns the living replicas but this one.
func (g *Group) others() []replicas.Replica {
	view := g.opts.Engine.View()
	var out []replicas.Replica
	for _, r := range view.Members {
		if r.Instance != view.Self.Instance {
			out = append(out, r)
		}
	}
	return out
}

// tell has all other replicas told of changes. It returns a channel for each that is closed
// when that has evicted, without those that have not answered the last time.
func (g *Group) tell(server string, events []fanout.Event) map[string]<-chan struct{} {
	others := g.others()
	told := make(map[string]<-chan struct{}, len(others))
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return nil
	}
	for _, to := range others {
		p := g.peers[to.Instance]
		if p == nil {
			p = &peer{g: g, to: to}
			g.peers[to.Instance] = p
			g.running.Go(p.run) // ends when all is told, or with the Group
		}
		p.addLocked(server, events)
		if done := p.waitLocked(); done != nil {
			told[to.Instance] = done
		}
	}
	return told
}

// wait waits until replicas have evicted, but not long. It counts and logs those that have
// not by then.
func (g *Group) wait(server string, told map[string]<-chan struct{}) {
	if len(told) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(g.live, patience)
	defer cancel()
	for instance, done := range told {
		select {
		case <-done:
			continue
		case <-ctx.Done():
		}
		select {
		case <-done:
		default:
			g.opts.Metrics.Limit(server, "peer_evict")
			g.late.Warn(g.opts.Logger, "a replica has not evicted cached results in time: clients may read an old one there", "upstream", server, "replica", instance, "limit", patience)
		}
	}
}
