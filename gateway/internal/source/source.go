package source

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// errMoved ends the wait for a replica that is no longer to watch.
var errMoved = errors.New("another replica is to watch")

// ServerOptions describe the Source of one server. All are required.
type ServerOptions struct {
	Name   string
	Claims Names
	// Open returns a back that watches at another replica.
	Open func(upstream.Peer) (mcp.Back, error)
	// Changes gets those that the server reports here, for clients and other replicas.
	Changes mcp.Changes
	// Local gets those that other replicas report, for clients alone.
	Local mcp.Changes
	// Cues gets a change for each topic that has moved, for clients alone.
	Cues mcp.Changes
	// WantedByPeers reports whether another replica subscribes to a topic here.
	WantedByPeers func(fanout.Topic) bool
}

// A Source watches one server, itself or through other replicas, and asks others for clients of
// groups. It is an [mcp.Source].
type Source struct {
	group *Group
	opts  ServerOptions
	own   *target

	// mu guards the fields below, and the fields of scopes, follows and targets. It is held
	// for map work only: never while something is watched or released.
	mu     sync.Mutex
	scopes map[string]*scope
	peers  map[string]*target // by instance
	closed bool

	remotes map[string]*target // what serves requests at other replicas, by instance

	settling atomic.Bool // see settleAll
}

var _ mcp.Source = (*Source)(nil)

// Open returns a Source. The caller must call Use before Watch, and Close.
func (g *Group) Open(o ServerOptions) *Source {
	s := &Source{group: g, opts: o, own: new(target), scopes: make(map[string]*scope), peers: make(map[string]*target), remotes: make(map[string]*target)}
	g.add(s)
	return s
}

// Use sets the server's back, whose changes go to [Source.Changes].
func (s *Source) Use(own mcp.Source) { s.own.watch = own }

// Watch implements [mcp.Source].
func (s *Source) Watch(ctx context.Context, p mcp.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
	if isOfSession(p) {
		return s.own.watch.Watch(ctx, p, want)
	}
	sc, err := s.enter(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	return s.follow(ctx, sc, p, want)
}

// WatchHere is Watch for another replica that takes this one for the owner: nobody else is
// asked, so that no request goes in a circle.
func (s *Source) WatchHere(ctx context.Context, p mcp.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
	sc, err := s.enter(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	if s.isBarred(sc) {
		s.leave(sc, &follow{})
		return nil, nil, s.refuse()
	}
	p.Share.Charged = true // by the other replica
	honored, release, err := s.own.watch.Watch(ctx, p, want)
	f := &follow{release: release, pinned: true}
	if err != nil {
		s.leave(sc, f)
		return nil, nil, err
	}
	s.keep(sc, f)
	return honored, func() { s.leave(sc, f) }, nil
}

// isOfSession reports whether a profile is that of one client session, which no other replica
// has.
func isOfSession(p mcp.Profile) bool { return p.Revision != "" }

// follow watches for one caller, wherever that is done for the scope.
func (s *Source) follow(ctx context.Context, sc *scope, p mcp.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
	for {
		t, moved, err := s.use(sc)
		if err != nil {
			s.leave(sc, &follow{})
			return nil, nil, err
		}
		until, cancel := context.WithCancelCause(ctx)
		unhook := context.AfterFunc(moved, func() { cancel(errMoved) })
		honored, release, err := t.watch.Watch(until, p, want)
		unhook()
		cancel(nil)
		f := &follow{topics: honored, on: t, release: release}
		switch {
		case err == nil:
			s.keep(sc, f)
			return honored, func() { s.leave(sc, f) }, nil
		case ctx.Err() != nil || (t == s.own || errors.Is(err, mcp.ErrNotNow)) && moved.Err() == nil:
			s.leave(sc, f)
			return nil, nil, err
		case moved.Err() != nil:
			s.drop(sc, t)
		case !s.unable(sc, t, failedFor, err):
			s.leave(sc, &follow{})
			return nil, nil, s.refuse()
		}
	}
}

// Close ends all that watches at other replicas. The caller closes the server's back, before or after.
func (s *Source) Close(ctx context.Context) {
	s.group.remove(s)
	s.mu.Lock()
	s.closed = true
	scopes, peers, remotes := s.scopes, s.peers, s.remotes
	s.scopes, s.peers, s.remotes = make(map[string]*scope), make(map[string]*target), nil
	s.mu.Unlock()
	for _, sc := range scopes {
		sc.moved()
		s.group.Release(sc.name)
	}
	for _, all := range []map[string]*target{peers, remotes} {
		for _, t := range all {
			_ = t.back.Close(ctx) // nobody is left to hear of it
		}
	}
}
