package metrics

import (
	"net/http"
	"runtime"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics holds the counters of one gateway. All methods are safe for
// concurrent use, quick, and never block.
type Metrics struct {
	registry *prometheus.Registry

	requests requests
	clients  clients
	servers  servers
	changes  changes
	cache    cached

	spansLost prometheus.Counter
	reloads   reloads

	together sync.Once
	replicas *Replicas // set in together
}

// seconds are the bounds of the duration histogram: from what the gateway adds
// to a call up to what a model's tool may take.
var seconds = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 15, 60, 300, 1800}

// New returns counters at zero, beside those of the Go runtime and the process. version is
// that of the program.
func New(version string) *Metrics {
	m := &Metrics{
		registry:  prometheus.NewRegistry(),
		requests:  newRequests(),
		clients:   newClients(),
		servers:   newServers(),
		changes:   newChanges(),
		cache:     newCached(),
		spansLost: prometheus.NewCounter(prometheus.CounterOpts{Namespace: "mcpbridge", Name: "spans_lost_total", Help: "Spans of traces that could not be exported."}),
		reloads:   newReloads(),
	}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), m.spansLost, buildInfo(version))
	for _, all := range [][]prometheus.Collector{m.requests.collectors(), m.clients.collectors(), m.servers.collectors(), m.changes.collectors(), m.cache.collectors(), m.reloads.collectors()} {
		m.registry.MustRegister(all...)
	}
	return m
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "mcpbridge", Name: name, Help: help}, labels)
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "mcpbridge", Name: name, Help: help}, labels)
}

// Handler serves the counters in the formats that Prometheus reads: that of OpenMetrics has
// exemplars.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// buildInfo returns a gauge that is 1, whose labels say what runs.
func buildInfo(version string) prometheus.Collector {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "mcpbridge", Name: "build_info", Help: "1; the labels say which mcpbridge runs."}, []string{"version", "goversion"})
	g.WithLabelValues(version, runtime.Version()).Set(1)
	return g
}

// SpansLost counts n spans that could not be exported.
func (m *Metrics) SpansLost(n int) { m.spansLost.Add(float64(n)) }
