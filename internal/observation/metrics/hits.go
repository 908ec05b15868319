package metrics

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/status"
)

// A hitKey is a limit that a server, or one of its clients, has met.
type hitKey struct{ server, limit string }

func newHits(hitKey) *atomic.Uint64 { return new(atomic.Uint64) }

// LimitsHit returns the limits that were met at a server, at most most of them, those that were
// met most often first.
func (m *Metrics) LimitsHit(server string, most int) []status.Hit {
	hits := []status.Hit{}
	if all := m.clients.hits.all.Load(); all != nil {
		for k, n := range *all {
			if k.server == server {
				hits = append(hits, status.Hit{Limit: k.limit, Count: n.Load()})
			}
		}
	}
	slices.SortFunc(hits, func(a, b status.Hit) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Limit, b.Limit))
	})
	return hits[:min(len(hits), most)]
}
