package metrics

import "github.com/prometheus/client_golang/prometheus"

// clients counts what clients do, apart from requests.
type clients struct {
	streams  prometheus.Gauge
	parked   *prometheus.GaugeVec   // server
	sessions *prometheus.GaugeVec   // server
	sockets  *prometheus.GaugeVec   // server
	limits   *prometheus.CounterVec // server, limit
	refused  *prometheus.CounterVec // server, reason
}

func newClients() clients {
	return clients{
		streams:  single("listen_streams", "Open subscriptions/listen streams, and requests of extensions that have become streams."),
		parked:   gauge("parked_calls", "Calls that wait for their clients' answers.", "server"),
		sessions: gauge("client_sessions", "Open sessions of legacy clients.", "server"),
		sockets:  gauge("client_websockets", "Open WebSockets of clients.", "server"),
		limits:   counter("limits_hit_total", "Requests and messages refused, and streams ended, at a configured limit.", "server", "limit"),
		refused:  counter("credentials_refused_total", "Requests refused because of their credential, by why: no_credential, not_verified, or the error code that the client got.", "server", "reason"),
	}
}

func (c *clients) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.streams, c.parked, c.sessions, c.sockets, c.limits, c.refused}
}

// Streams adds delta, which may be negative, to the open listen streams.
func (m *Metrics) Streams(delta int) { m.clients.streams.Add(float64(delta)) }

// Parked adds delta, which may be negative, to the calls that wait for their
// clients' answers.
func (m *Metrics) Parked(server string, delta int) {
	m.clients.parked.WithLabelValues(server).Add(float64(delta))
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
func (m *Metrics) Limit(server, name string) { m.clients.limits.WithLabelValues(server, name).Inc() }

// Refused counts a request that was refused because of its credential.
func (m *Metrics) Refused(server, reason string) {
	m.clients.refused.WithLabelValues(server, reason).Inc()
}
