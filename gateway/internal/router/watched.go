package router

import (
	"context"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/forward"
	"github.com/mcpbridge/mcpbridge/gateway/internal/hub"
	"github.com/mcpbridge/mcpbridge/gateway/internal/source"
	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/evict"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// watchPath is where other replicas listen that take this one for the owner of a profile. The
// name of a server follows.
const watchPath = source.Path + "/"

// together is what a server has together with other replicas. It is zero if there are none.
type together struct {
	forward  *forward.Server // has requests answered where they belong
	claims   source.Names
	source   *source.Source   // nil if it watches by itself
	endpoint *source.Endpoint // nil as well
	told     []*evict.Changes // of a server whose results are kept
}

func newTogether(so ServerOptions) together {
	return together{claims: source.Names{Server: so.Name, Definition: so.Definition, Whole: so.HoldFor > 0}}
}

// sharing is what servers share that are watched together. It is zero if there are no other
// replicas.
type sharing struct {
	sources   *source.Group
	evictions *evict.Group
}

// share begins to watch together with other replicas.
func (g *Gateway) share(peers *peer.Group) {
	if peers == nil {
		return
	}
	log := g.opts.Logger
	g.sharing.sources = source.NewGroup(source.Options{
		Engine: peers.Engine(), URL: peers.URL, Logger: log, RoundTripper: peers.RoundTripper,
	})
	g.sharing.evictions = evict.NewGroup(evict.Options{
		Engine: peers.Engine(), URL: peers.URL, Logger: log, Metrics: g.opts.Metrics, Cache: g.hub.Cache(), Scope: func(server string) string { return g.now().scopeOf(server) },
		RoundTripper: func(to replicas.Replica) http.RoundTripper { return peers.RoundTripper(to, nil) },
	})
	g.hub.Cache().Heed(g.sharing.evictions.Fresh)
}

func (h *sharing) close() {
	h.sources.Close()
	h.evictions.Close()
}

// newForward returns what has requests answered where they belong; nil without other replicas.
// What watches profiles claims the same names.
func (g *Gateway) newForward(o *Options) (*forward.Group, error) {
	if o.Peers == nil {
		return nil, nil
	}
	return forward.New(forward.Options{
		Peers: o.Peers, Claims: g.sharing.sources, Sockets: g.sockets, Streams: g.streams,
		Timeouts: func() (write, keepAlive time.Duration) {
			t := g.now()
			return t.opts.WriteTimeout, t.opts.KeepAlive
		},
		Handovers: o.Handovers, Logger: g.opts.Logger, Metrics: g.opts.Metrics,
	})
}

func (t *together) close(ctx context.Context) {
	if t.endpoint != nil {
		t.endpoint.Close()
	}
	if t.source != nil {
		t.source.Close(ctx)
	}
	for _, c := range t.told {
		c.Close()
	}
}

// watchedHere is a server as the hub knows it for the streams of other replicas: it is watched
// here, and no other replica is asked.
type watchedHere struct {
	hub.Server
	source *source.Source
}

// Watch implements [mcp.Source].
func (h watchedHere) Watch(ctx context.Context, p mcp.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
	return h.source.WatchHere(ctx, p, want)
}

// servedHere serves what clients of groups at other replicas ask of a server: they were checked
// there.
type servedHere struct{ s *server }

// Serve implements [mcp.Handler].
func (h servedHere) Serve(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
	g := h.s.g
	place, limit, most := g.inflight.EnterCounted()
	if limit != nil {
		return nil, g.tooManyInFlight("another replica", limit, most)
	}
	defer place.Leave()
	res, err := placed(h).Serve(ctx, req, c)
	if err == nil && res.StateLost != "" {
		tellLost(res)
	}
	return res, err
}

// remote returns what has another replica serve a request to the server; nil if none can.
func (s *server) remote() func(replicas.Replica) forward.Remote {
	if s.together.source == nil {
		return nil
	}
	return func(to replicas.Replica) forward.Remote { return s.together.source.At(to) }
}

// serveWatch serves a request of another replica: to listen, or for a client of a group.
func (g peerListener) serveWatch(w http.ResponseWriter, r *http.Request, e *peer.Envelope, name string) {
	t := g.now()
	s := t.servers[name]
	if s == nil || s.together.endpoint == nil || !s.life.Enter() {
		downstream.WriteError(w, http.StatusNotFound, wire.ID{}, t.unknownServer(name))
		return
	}
	defer s.life.Leave()
	s.together.endpoint.Serve(w, r, e.Sender())
}

// serveEvict evicts what another replica tells.
func (g peerListener) serveEvict(w http.ResponseWriter, r *http.Request, e *peer.Envelope, _ string) {
	g.sharing.evictions.Serve(w, r, e.From)
}
