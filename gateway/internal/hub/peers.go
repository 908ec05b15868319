package hub

import (
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// maxPeers bounds the open listen streams of other replicas. Each has all topics of some
// profile that a replica follows, but for the moments in which streams are merged.
const maxPeers = 16384

// peers are the listen streams of other replicas.
type peers struct {
	index *Index
	open  int           // guarded by Hub.mu
	last  atomic.Uint64 // the number of the last change that was told, see fanout.Event
}

// fullOfPeers counts and logs that other replicas have too many streams. They watch by
// themselves then.
func (h *Hub) fullOfPeers(server string) error {
	h.metrics.Limit(server, "peer_streams")
	h.logger.Warn("listen stream of a replica refused: too many are open", "upstream", server, "limit", maxPeers)
	return mcp.RefuseForNow("%d listen streams of replicas are open, the limit", maxPeers)
}

// WantedByPeers reports whether another replica subscribes to the topic.
func (h *Hub) WantedByPeers(t fanout.Topic) bool { return h.peers.index.Has(t) }

// Local returns what delivers to clients alone: changes that another replica has reported must
// not go back to it, or to a third one, which hears of them as well.
func (h *Hub) Local() mcp.Changes { return local{h} }

type local struct{ hub *Hub }

// Publish implements [mcp.Changes].
func (l local) Publish(ev fanout.Event) {
	if ev.Topic.Kind.Valid() {
		l.hub.deliverLocally(ev)
	}
}

// Wanted implements [mcp.Changes].
func (l local) Wanted(t fanout.Topic) bool { return l.hub.index.Has(t) }

// End implements [mcp.Changes].
func (l local) End(t fanout.Topic, reason error) { l.hub.end(l.hub.index, t, reason) }
