package metrics

import (
	"net/http"
	"runtime"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics holds the counters of one gateway. All methods are safe for
// concurrent use, quick, and never block.
type Metrics struct {
	registry  *prometheus.Registry
	ofServers []vector // those with the label server

	requests requests
	clients  clients
	servers  servers
	changes  changes
	cache    cached

	audit auditing

	spansLost prometheus.Counter
	reloads   reloads

	certificates certificates

	together sync.Once
	replicas *Replicas // set in together
}

// seconds are the bounds of the duration histogram: from what the gateway adds
// to a call up to what a model's tool may take.
var seconds = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 15, 60, 300, 1800}

// New returns counters at zero, beside those of the Go runtime and the process. version is
// that of the program.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.gauge("build_info", "1; the labels say which mcpbridge runs.", "version", "goversion").WithLabelValues(version, runtime.Version()).Set(1)
	m.requests, m.clients, m.servers, m.changes, m.cache = m.newRequests(), m.newClients(), m.newServers(), m.newChanges(), m.newCached()
	m.spansLost = m.counter("spans_lost_total", "Spans of traces that could not be exported.").WithLabelValues()
	m.reloads, m.audit = m.newReloads(), m.newAuditing()
	m.registry.MustRegister(&m.certificates)
	return m
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "mcpbridge", Name: name, Help: help}, labels)
	m.register(v, labels)
	return v
}

func (m *Metrics) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "mcpbridge", Name: name, Help: help}, labels)
	m.register(v, labels)
	return v
}

func (m *Metrics) histogram(name, help string, bounds []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds}, labels)
	m.register(v, labels)
	return v
}

// A vector has a series for each combination of labels.
type vector interface {
	prometheus.Collector
	DeletePartialMatch(prometheus.Labels) int
}

func (m *Metrics) register(v vector, labels []string) {
	m.registry.MustRegister(v)
	if slices.Contains(labels, "server") {
		m.ofServers = append(m.ofServers, v)
	}
}

// Handler serves the counters in the formats that Prometheus reads: that of OpenMetrics has
// exemplars.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// SpansLost counts n spans that could not be exported.
func (m *Metrics) SpansLost(n int) { m.spansLost.Add(float64(n)) }

// reloads tell what became of changes of the configuration.
type reloads struct {
	count *prometheus.CounterVec // result
	ok    prometheus.Gauge
	at    prometheus.Gauge
}

func (m *Metrics) newReloads() reloads {
	r := reloads{
		count: m.counter("config_reloads_total", "Attempts to reload the configuration, by result: ok, or error if it could not be used.", "result"),
		ok:    m.gauge("config_last_reload_successful", "1 if the configuration that was read last is in use, 0 if it could not be used.").WithLabelValues(),
		at:    m.gauge("config_last_reload_success_timestamp_seconds", "When a configuration was read last that could be used, in Unix time.").WithLabelValues(),
	}
	r.succeeded()
	return r
}

func (r *reloads) succeeded() {
	r.ok.Set(1)
	r.at.SetToCurrentTime()
}

// Reloaded counts an attempt to reload the configuration.
func (m *Metrics) Reloaded(ok bool) {
	if ok {
		m.reloads.count.WithLabelValues("ok").Inc()
		m.reloads.succeeded()
		return
	}
	m.reloads.count.WithLabelValues("error").Inc()
	m.reloads.ok.Set(0)
}

// Forget drops the series of a server: one that is not configured any more would be told of
// for the life of the process, and every other name that a configuration has had (CWE-770).
// One of that name that is added later begins at zero, as after a restart.
func (m *Metrics) Forget(server string) {
	for _, v := range m.ofServers {
		v.DeletePartialMatch(prometheus.Labels{"server": server})
	}
	m.requests.grouped.DeletePartialMatch(prometheus.Labels{"group": server})
	// After that: a table that is filled from what is about to be dropped would count into it.
	m.requests.ofClients.drop(func(k servedKey) bool { return k.server == server || k.group == server })
	m.requests.toServers.drop(func(k sentKey) bool { return k.server == server })
	m.requests.rates.clients.drop(func(k ratedKey) bool { return k.server == server })
	m.requests.rates.until.Store(0)
	m.clients.hits.drop(func(k hitKey) bool { return k.server == server })
}

// drop removes the values of keys.
func (t *table[K, V]) drop(of func(K) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.all.Load()
	if all == nil {
		return
	}
	next := map[K]V{}
	for k, v := range *all {
		if !of(k) {
			next[k] = v
		}
	}
	t.all.Store(&next)
}

// WatchIndex makes the index's sizes readable: size is called at each scrape
// and returns the distinct topics and the (topic, subscriber) pairs. It may be
// called once.
func (m *Metrics) WatchIndex(size func() (topics, pairs int)) {
	m.registry.MustRegister(&indexCollector{size})
}

// indexCollector asks for both sizes at once, so that they fit together.
type indexCollector struct {
	size func() (topics, pairs int)
}

var (
	topicsDesc = prometheus.NewDesc("mcpbridge_index_topics", "Distinct topics that somebody follows.", nil, nil)
	pairsDesc  = prometheus.NewDesc("mcpbridge_index_pairs", "Pairs of a topic and a stream that follows it.", nil, nil)
)

// Describe implements [prometheus.Collector].
func (c *indexCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- topicsDesc
	ch <- pairsDesc
}

// Collect implements [prometheus.Collector].
func (c *indexCollector) Collect(ch chan<- prometheus.Metric) {
	topics, pairs := c.size()
	ch <- prometheus.MustNewConstMetric(topicsDesc, prometheus.GaugeValue, float64(topics))
	ch <- prometheus.MustNewConstMetric(pairsDesc, prometheus.GaugeValue, float64(pairs))
}
