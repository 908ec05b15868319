package gateway

import (
	"context"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/listen"
	"github.com/mcpbridge/mcpbridge/internal/replicas/source"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// watchPath is where other replicas listen that take this one for the owner of a profile. The
// name of a server follows.
const watchPath = source.Path + "/"

// together is what watches a server together with other replicas. It is zero if there are
// none.
type together struct {
	source   *source.Source
	endpoint *listen.Endpoint
}

// newSources returns what the sources of all servers share; nil if there are no other
// replicas.
func newSources(opts *Options) *source.Group {
	if opts.Peers == nil {
		return nil
	}
	return source.NewGroup(source.Options{
		Engine: opts.Peers.Engine(),
		URL:    opts.Peers.URL,
		RoundTripper: func(to replicas.Replica, sender func(*http.Request) mcp.Sender) http.RoundTripper {
			return opts.Peers.RoundTripper(to, "watch", sender)
		},
		Logger: opts.Logger,
	})
}

// openBack opens the back of a server, and what watches it together with other replicas.
func (s *server) openBack(so ServerOptions) (err error) {
	h := s.g.hub
	if s.g.sources == nil || so.OpenPeer == nil {
		s.back, err = so.Open(h)
		return err
	}
	s.together.source = s.g.sources.Open(source.ServerOptions{
		Name: so.Name, Open: so.OpenPeer, Changes: h, Local: h.Local(), Cues: h.Local(), WantedByPeers: h.WantedByPeers,
	})
	if s.back, err = so.Open(s.together.source.Changes()); err == nil {
		s.together.source.Use(s.back)
		s.together.endpoint, err = s.openEndpoint()
	}
	if err != nil {
		s.together.close(context.Background())
	}
	return err
}

func (s *server) openEndpoint() (*listen.Endpoint, error) {
	g := s.g
	return listen.New(listen.Options{
		Server: watchedHere{followed{s}}, Hub: g.hub, Profiles: s.profiles.candidates,
		Memory: s.memory, Streams: &s.streams, Logger: g.opts.Logger, Metrics: g.opts.Metrics,
	})
}

func (t *together) close(ctx context.Context) {
	if t.endpoint != nil {
		t.endpoint.Close()
	}
	if t.source != nil {
		t.source.Close(ctx)
	}
}

// candidates returns the profiles that the request of another replica may mean: it names a
// client, or the gateway itself if clients' names are no part of the profile.
func (p *profiler) candidates(req *mcp.Request) []mcp.Profile {
	parts := profileParts{capabilities: req.Capabilities, tasks: p.sharesTasks(req)}
	if p.isolation != IsolateNothing {
		parts.principal = req.Principal
	}
	out := []mcp.Profile{p.profile(&parts)}
	if p.clientInfo {
		parts.info = req.ClientInfo
		out = append(out, p.profile(&parts))
	}
	return out
}

// watchedHere is a server as the hub knows it for the streams of other replicas.
type watchedHere struct{ followed }

// Watch implements [mcp.Source].
func (h watchedHere) Watch(ctx context.Context, p mcp.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
	return h.s.together.source.WatchHere(ctx, p, want)
}

// serveWatch serves a listen request of another replica.
func (g *Gateway) serveWatch(w http.ResponseWriter, r *http.Request, e *peer.Envelope, name string) {
	t := g.now()
	s := t.servers[name]
	if s == nil || s.together.endpoint == nil || !s.life.Enter() {
		downstream.WriteError(w, http.StatusNotFound, wire.ID{}, t.unknownServer(name))
		return
	}
	defer s.life.Leave()
	s.together.endpoint.Serve(w, r, e.Sender())
}
