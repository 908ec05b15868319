package metrics

import "github.com/prometheus/client_golang/prometheus"

// servers counts what servers do.
type servers struct {
	dropped  *prometheus.CounterVec // server, reason
	sessions *prometheus.GaugeVec   // server
	opened   *prometheus.CounterVec // server
	ended    *prometheus.CounterVec // server, why
	lost     *prometheus.CounterVec // server, cause
	starts   *prometheus.CounterVec // server
	quirks   *prometheus.CounterVec // server, quirk
}

func (m *Metrics) newServers() servers {
	return servers{
		dropped:  m.counter("messages_dropped_total", "Messages that reached nobody, by reason.", "server", "reason"),
		sessions: m.gauge("upstream_sessions", "Open sessions with servers.", "server"),
		opened:   m.counter("upstream_sessions_opened_total", "Sessions opened with servers.", "server"),
		ended:    m.counter("upstream_sessions_ended_total", "Sessions with servers that ended, by why.", "server", "why"),
		lost:     m.counter("state_lost_total", "Clients that may have lost state on a server, by cause.", "server", "cause"),
		starts:   m.counter("command_starts_total", "Starts of a server's command.", "server"),
		quirks:   m.counter("quirks_total", "Deviations from the protocol that were tolerated, of a server and of its clients, by name: docs/quirks.md lists them.", "server", "quirk"),
	}
}

// Dropped counts a message that reached nobody.
func (m *Metrics) Dropped(server, reason string) {
	m.servers.dropped.WithLabelValues(server, reason).Inc()
}

// SessionOpened counts a session with a server in. Exactly one SessionEnded
// follows.
func (m *Metrics) SessionOpened(server string) {
	m.servers.sessions.WithLabelValues(server).Inc()
	m.servers.opened.WithLabelValues(server).Inc()
}

// SessionEnded counts a session out. Why is a word of the caller's, from a
// fixed few.
func (m *Metrics) SessionEnded(server, why string) {
	m.servers.sessions.WithLabelValues(server).Dec()
	m.servers.ended.WithLabelValues(server, why).Inc()
}

// StateLost counts clients that may have lost state on a server.
func (m *Metrics) StateLost(server, cause string, clients int) {
	m.servers.lost.WithLabelValues(server, cause).Add(float64(clients))
}

// CommandStarted counts a start of a server's command.
func (m *Metrics) CommandStarted(server string) { m.servers.starts.WithLabelValues(server).Inc() }

// Quirk counts a deviation from the protocol that was tolerated.
func (m *Metrics) Quirk(server, quirk string) {
	m.servers.quirks.WithLabelValues(server, quirk).Inc()
}

// cached counts what is kept of results.
type cached struct {
	requests *prometheus.CounterVec // server, method, outcome
	evicted  *prometheus.CounterVec // server, why
	bytes    *prometheus.GaugeVec   // server
}

func (m *Metrics) newCached() cached {
	return cached{
		requests: m.counter("cache_requests_total", "Requests for results that may be kept, by whether one was (hit or miss).", "server", "method", "outcome"),
		evicted:  m.counter("cache_evicted_total", "Results that left the cache, by why.", "server", "why"),
		bytes:    m.gauge("cache_bytes", "Bytes of results that are kept.", "server"),
	}
}

// CacheLooked counts a request for a result that may be kept.
func (m *Metrics) CacheLooked(server, method string, hit bool) {
	outcome := "miss"
	if hit {
		outcome = "hit"
	}
	m.cache.requests.WithLabelValues(server, bounded(method), outcome).Inc()
}

// CacheEvicted counts a result that left the cache. Why is a word of the
// caller's, from a fixed few.
func (m *Metrics) CacheEvicted(server, why string) {
	m.cache.evicted.WithLabelValues(server, why).Inc()
}

// CacheBytes adds delta, which may be negative, to the bytes that are kept.
func (m *Metrics) CacheBytes(server string, delta int) {
	m.cache.bytes.WithLabelValues(server).Add(float64(delta))
}
