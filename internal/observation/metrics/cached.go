package metrics

import "github.com/prometheus/client_golang/prometheus"

// cached counts what is kept of results.
type cached struct {
	requests *prometheus.CounterVec // server, method, outcome
	evicted  *prometheus.CounterVec // server, why
	bytes    *prometheus.GaugeVec   // server
}

func newCached() cached {
	return cached{
		requests: counter("cache_requests_total", "Requests for results that may be kept, by whether one was (hit or miss).", "server", "method", "outcome"),
		evicted:  counter("cache_evicted_total", "Results that left the cache, by why.", "server", "why"),
		bytes:    gauge("cache_bytes", "Bytes of results that are kept.", "server"),
	}
}

func (c *cached) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.requests, c.evicted, c.bytes}
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
