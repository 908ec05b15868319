package router

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/overview"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/status"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Status returns what the gateway is doing, without secrets of the configuration. texts says
// that it has what servers ask, too. It takes some milliseconds with ten thousand
// subscribers.
func (g *Gateway) Status(texts bool) *status.Snapshot {
	snap, servers := g.Snapshot(), g.now().servers
	out := &status.Snapshot{Time: time.Now(), Draining: snap.Draining, Counts: status.Counts{
		Requests: g.inflight.Len(), Streams: snap.Streams, Sessions: snap.Sessions, Sockets: snap.Sockets,
	}}
	out.Clients.List, out.Questions.List, out.Quirks.List = []status.Client{}, []status.Question{}, []status.Quirk{}
	var relayed []status.Following
	for _, s := range servers {
		relayed = s.legacy.AppendFollowings(relayed)
	}
	topics, pairs := overview.Follows(g.hub.Index(), relayed, &out.Follows, g.hub.Followers)
	for _, ss := range snap.Servers {
		s := servers[ss.Name]
		if s == nil {
			continue // it was removed meanwhile
		}
		s.legacy.TellClients(&out.Clients, &out.Questions)
		s.modern.TellQuestions(&out.Questions)
		overview.Quirks(&out.Quirks, ss.Name, s.quirks.Meetings())
		told := status.Server{Name: ss.Name, State: ss.State, Error: ss.Error, Members: s.memberNames(), Topics: topics[ss.Name], Followers: pairs[ss.Name]}
		out.Servers = append(out.Servers, overview.Server(told, s.back))
	}
	for i := range out.Questions.List {
		q := &out.Questions.List[i]
		q.Name = servers[q.Server].log.names.Called(q.During, q.Name)
	}
	if g.peers != nil {
		out.Replicas = overview.Replicas(g.peers.Engine())
	}
	streams, all := g.hub.SomeStreams(overview.MaxStreams)
	overview.Streams(&out.Clients, streams, all)
	overview.Finish(out, g.opts.Secrets, texts)
	return out
}

// WatchChanges has told called with each change, and its number of followers, until stop is
// called. It must be quick. One is called at a time.
func (g *Gateway) WatchChanges(told func(ev fanout.Event, followers int)) (stop func()) {
	return g.hub.Watch(told)
}

// Ask sends a request for a list, or tools/call, to a server for whoever uses the admin address, as a
// client with the principal [overview.Principal]: policy, rates, limits and the audit log
// apply. The error is a [*wire.Error].
func (g *Gateway) Ask(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error) {
	t := g.now()
	s := t.servers[server]
	if s == nil || !s.life.Enter() {
		return nil, t.unknownServer(server)
	}
	defer s.life.Leave()
	place, limit, most := g.inflight.Enter(overview.Share())
	if limit != nil {
		return nil, wire.Errorf(spec.CodeInternal, "%d requests are in flight, the limit; try again in a moment, or %s", most, limit.Raise())
	}
	defer place.Leave()
	result, err := overview.Ask(ctx, s.admit, s, s.memory, method, params)
	if err != nil {
		return nil, mcp.WireError(err)
	}
	return result, nil
}
