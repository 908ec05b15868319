package metrics

import "github.com/prometheus/client_golang/prometheus"

// servers counts what servers do.
type servers struct {
	dropped  *prometheus.CounterVec // server, reason
	sessions *prometheus.GaugeVec   // server
	opened   *prometheus.CounterVec // server
	ended    *prometheus.CounterVec // server, why
	starts   *prometheus.CounterVec // server
}

func newServers() servers {
	return servers{
		dropped:  counter("messages_dropped_total", "Messages that reached nobody, by reason.", "server", "reason"),
		sessions: gauge("upstream_sessions", "Open sessions with servers.", "server"),
		opened:   counter("upstream_sessions_opened_total", "Sessions opened with servers.", "server"),
		ended:    counter("upstream_sessions_ended_total", "Sessions with servers that ended, by why.", "server", "why"),
		starts:   counter("command_starts_total", "Starts of a server's command.", "server"),
	}
}

func (s *servers) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.dropped, s.sessions, s.opened, s.ended, s.starts}
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

// CommandStarted counts a start of a server's command.
func (m *Metrics) CommandStarted(server string) { m.servers.starts.WithLabelValues(server).Inc() }
