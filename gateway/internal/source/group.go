package source

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// Path is where a replica is asked to watch. The name of a server follows, after a slash.
const Path = "/peer/watch"

const (
	// claimTimeout bounds how long a subscriber waits for the engine.
	claimTimeout = time.Second
	// linger is how long a profile without subscribers keeps its owner: they may come back.
	linger = 2 * time.Second
	// tick is how often it is checked what only time changes.
	tick = time.Second
	// maxMoves bounds the profiles that move at the same time.
	maxMoves = 64
)

var errDraining = errors.New("this replica is draining")

// Options configure a Group. All are required but Logger.
type Options struct {
	Engine replicas.Engine
	// URL returns where a path is at another replica.
	URL func(to replicas.Replica, path string) string
	// RoundTripper sends requests to another replica, each on behalf of its sender.
	RoundTripper func(to replicas.Replica, sender func(*http.Request) mcp.Sender) http.RoundTripper

	Logger *slog.Logger // nil discards
}

// A Group has the sources of all servers of a gateway. It is safe for concurrent use. Drain and
// Close do nothing on nil.
type Group struct {
	opts  Options
	reach *reach
	slots chan struct{} // of moves

	kick    wake.Signal // look at all profiles
	live    context.Context
	stop    context.CancelFunc
	running sync.WaitGroup // the loop, moves, and what closes backs

	// mu guards the fields below. It is held for map work only.
	mu       sync.Mutex
	sources  map[*Source]bool
	names    map[string]int // claims, by the number of scopes that want them
	drained  bool           // this replica is draining: it wants no claim any more
	begun    bool
	finished bool
}

// NewGroup returns a Group without sources.
func NewGroup(o Options) *Group {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	g := &Group{
		opts: o, slots: make(chan struct{}, maxMoves), kick: wake.NewSignal(),
		sources: make(map[*Source]bool), names: make(map[string]int),
	}
	g.live, g.stop = context.WithCancel(context.Background())
	g.reach = newReach(g)
	return g
}

// add adds a source, and starts the loop with the first one. It ends with Close.
func (g *Group) add(s *Source) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sources[s] = true
	if !g.begun && !g.finished {
		g.begun = true
		g.running.Go(g.run)
	}
}

func (g *Group) remove(s *Source) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.sources, s)
}

// Close ends the loop, and all that the sources have running. Close the sources before.
func (g *Group) Close() {
	if g == nil {
		return
	}
	g.mu.Lock()
	g.finished = true
	g.mu.Unlock()
	g.stop()
	g.running.Wait()
}

// run looks at all profiles whenever what was heard of the replicas has changed.
func (g *Group) run() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		view := g.opts.Engine.View()
		g.look(view)
		select {
		case <-view.Changed:
		case <-g.kick:
		case <-ticker.C:
			g.reach.check()
		case <-g.live.Done():
			return
		}
	}
}

// look has each source look at its profiles.
func (g *Group) look(view *replicas.View) {
	if view.Self.Draining {
		g.Drain()
	}
	g.reach.forget(view)
	for _, s := range g.all() {
		s.forgetRemotes(view)
		s.look()
	}
}

func (g *Group) all() []*Source {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]*Source, 0, len(g.sources))
	for s := range g.sources {
		out = append(out, s)
	}
	return out
}

// Drain has this replica want no more claims. Those that it has stay until another replica takes
// them, which it does if it wants them, or until this one leaves. It is called when the View says
// that this replica is draining, too.
func (g *Group) Drain() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drained = true
}

func (g *Group) isDrained() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.drained
}

// Claim wants a name, until Release, as [replicas.Engine.Claim] does: several may want the
// same one. After Drain the engine is asked for nothing, but what others want stays theirs.
func (g *Group) Claim(ctx context.Context, name string) (replicas.Claim, error) {
	g.mu.Lock()
	g.names[name]++
	drained := g.drained
	g.mu.Unlock()
	if drained {
		return replicas.Claim{}, errDraining
	}
	// The claim is everybody's, not only of the one that came first.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
	defer cancel()
	return g.opts.Engine.Claim(ctx, name)
}

// Holder returns who holds a name that is wanted, by what is known here.
func (g *Group) Holder(name string) (replicas.Claim, bool) { return g.opts.Engine.Holder(name) }

// Release wants a name no more, once for each Claim.
func (g *Group) Release(name string) {
	g.mu.Lock()
	n, wanted := g.names[name]
	if n--; n > 0 {
		g.names[name] = n
	} else {
		delete(g.names, name)
	}
	g.mu.Unlock()
	if wanted && n == 0 {
		g.opts.Engine.Release(name)
	}
}

// isSelf reports whether a replica is this one.
func (g *Group) isSelf(r replicas.Replica) bool {
	return r.Instance == g.opts.Engine.View().Self.Instance
}
