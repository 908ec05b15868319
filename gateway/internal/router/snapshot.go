package router

import (
	"errors"
	"slices"

	"github.com/mcpbridge/mcpbridge/gateway/internal/cache"
	"github.com/mcpbridge/mcpbridge/internal/detect"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A Snapshot is the state of a gateway at one moment.
type Snapshot struct {
	Draining bool             `json:"draining"`
	Streams  int              `json:"streams"`  // open listen streams
	Members  int              `json:"members"`  // legacy sessions that can subscribe
	Sessions int              `json:"sessions"` // of legacy clients, over HTTP
	Sockets  int              `json:"sockets"`  // open WebSockets of clients
	Topics   int              `json:"topics"`   // distinct topics with subscribers
	Pairs    int              `json:"pairs"`    // (topic, stream) pairs
	Cache    cache.Snapshot   `json:"cache"`
	Servers  []ServerSnapshot `json:"servers"`
}

// A ServerSnapshot is the state of one server.
type ServerSnapshot struct {
	Name  string `json:"name"`
	State string `json:"state"` // "starting", "ready", "down", or "idle": it is started on demand
	Error string `json:"error,omitempty"`
}

// Snapshot returns a copy of the gateway's state.
func (g *Gateway) Snapshot() Snapshot {
	h := g.hub.Snapshot()
	snap := Snapshot{
		Draining: h.Closed, Streams: h.Streams, Members: h.Members, Topics: h.Topics, Pairs: h.Pairs, Cache: h.Cache,
		Sockets: g.sockets.Len(),
	}
	for _, s := range g.now().inOrder() {
		snap.Sessions += s.legacy.Sessions()
		snap.Servers = append(snap.Servers, s.snapshot())
	}
	return snap
}

// snapshot returns the state of a server.
func (s *server) snapshot() ServerSnapshot {
	out := ServerSnapshot{Name: s.name, State: "ready"}
	d, onDemand := s.back.(*detect.Detector)
	switch err := s.back.Err(); {
	case onDemand && d.Asleep():
		out.State = "idle"
	case errors.Is(err, mcp.ErrStarting):
		out.State = "starting"
	case err != nil:
		out.State, out.Error = "down", s.g.opts.Secrets.String(err.Error())
	}
	return out
}

// Names returns the names of the servers in the order they were given.
func (g *Gateway) Names() []string { return slices.Clone(g.now().order) }
