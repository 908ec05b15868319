package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// clients counts what clients do, apart from requests.
type clients struct {
	streams  prometheus.Gauge
	held     [2]*prometheus.GaugeVec // by mcp.Held; server
	sessions *prometheus.GaugeVec    // server
	sockets  *prometheus.GaugeVec    // server
	limits   *prometheus.CounterVec  // server, limit
	refused  *prometheus.CounterVec  // server, reason

	hits *table[hitKey, *atomic.Uint64] // as limits, for the admin page
}

func (m *Metrics) newClients() clients {
	return clients{
		hits:    new(table[hitKey, *atomic.Uint64]),
		streams: m.gauge("listen_streams", "Open subscriptions/listen streams, and requests of extensions that have become streams.").WithLabelValues(),
		held: [...]*prometheus.GaugeVec{
			mcp.HeldCalls: m.gauge("parked_calls", "Calls that wait for their clients' answers.", "server"),
			mcp.HeldTasks: m.gauge("tasks", "Tasks that are not over, which are held for clients of the other era than the server's.", "server"),
		},
		sessions: m.gauge("client_sessions", "Open sessions of legacy clients.", "server"),
		sockets:  m.gauge("client_websockets", "Open WebSockets of clients.", "server"),
		limits:   m.counter("limits_hit_total", "Requests and messages refused, and streams ended, at a configured limit.", "server", "limit"),
		refused:  m.counter("credentials_refused_total", "Requests refused because of their credential, by why: no_credential, not_verified, or the error code that the client got.", "server", "reason"),
	}
}

// Streams adds delta, which may be negative, to the open listen streams.
func (m *Metrics) Streams(delta int) { m.clients.streams.Add(float64(delta)) }

// Held adds delta, which may be negative, to what is held for clients.
func (m *Metrics) Held(server string, what mcp.Held, delta int) {
	m.clients.held[what].WithLabelValues(server).Add(float64(delta))
}

// Sessions adds delta, which may be negative, to the sessions of legacy clients.
func (m *Metrics) Sessions(server string, delta int) {
	m.clients.sessions.WithLabelValues(server).Add(float64(delta))
}

// Sockets adds delta, which may be negative, to the open WebSockets of clients.
func (m *Metrics) Sockets(server string, delta int) {
	m.clients.sockets.WithLabelValues(server).Add(float64(delta))
}

// Limit counts a refusal at a limit, by the limit's name.
func (m *Metrics) Limit(server, name string) {
	m.clients.limits.WithLabelValues(server, name).Inc()
	m.clients.hits.get(hitKey{server, name}, newHits).Add(1)
}

// Refused counts a request that was refused because of its credential.
func (m *Metrics) Refused(server, reason string) {
	m.clients.refused.WithLabelValues(server, reason).Inc()
}

// changes counts what reaches listen streams.
type changes struct {
	offered   *prometheus.CounterVec // server
	delivered *prometheus.CounterVec // server
}

func (m *Metrics) newChanges() changes {
	return changes{
		offered:   m.counter("events_offered_total", "Changes, once for each listen stream that is to hear of them. Those not delivered were joined with one that still waited.", "server"),
		delivered: m.counter("events_delivered_total", "Change notifications written to listen streams.", "server"),
	}
}

// Offered counts changes, once for each of the n listen streams that are to hear
// of them.
func (m *Metrics) Offered(server string, n int) {
	m.changes.offered.WithLabelValues(server).Add(float64(n))
}

// Delivered counts n change notifications written to listen streams.
func (m *Metrics) Delivered(server string, n int) {
	m.changes.delivered.WithLabelValues(server).Add(float64(n))
}
