package metrics

import "github.com/prometheus/client_golang/prometheus"

// changes counts what reaches listen streams.
type changes struct {
	offered   *prometheus.CounterVec // server
	delivered *prometheus.CounterVec // server
}

func newChanges() changes {
	return changes{
		offered:   counter("events_offered_total", "Changes, once for each listen stream that is to hear of them. Those not delivered were joined with one that still waited.", "server"),
		delivered: counter("events_delivered_total", "Change notifications written to listen streams.", "server"),
	}
}

func (c *changes) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.offered, c.delivered}
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
