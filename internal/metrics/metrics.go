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

	// What clients do.
	requests requests
	streams  prometheus.Gauge
	parked   *prometheus.GaugeVec   // server
	clients  *prometheus.GaugeVec   // server
	sockets  *prometheus.GaugeVec   // server
	limits   *prometheus.CounterVec // server, limit
	refused  *prometheus.CounterVec // server, reason

	// What servers do.
	dropped        *prometheus.CounterVec // server, reason
	sessions       *prometheus.GaugeVec   // server
	sessionsOpened *prometheus.CounterVec // server
	sessionsEnded  *prometheus.CounterVec // server, why
	commandStarts  *prometheus.CounterVec // server

	// What reaches listen streams.
	offered   *prometheus.CounterVec // server
	delivered *prometheus.CounterVec // server

	cache     cached
	spansLost prometheus.Counter
	reloads   reloads

	together sync.Once
	replicas *Replicas // set in together
}

// cached counts what is kept of results.
type cached struct {
	requests *prometheus.CounterVec // server, method, outcome
	evicted  *prometheus.CounterVec // server, why
	bytes    *prometheus.GaugeVec   // server
}

// seconds are the bounds of the duration histogram: from what the gateway adds
// to a call up to what a model's tool may take.
var seconds = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 15, 60, 300, 1800}

// New returns counters at zero, beside those of the Go runtime and the process. version is
// that of the program.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: newRequests(),
		reloads:  newReloads(),
		limits:   counter("limits_hit_total", "Requests and messages refused, and streams ended, at a configured limit.", "server", "limit"),
		refused:  counter("credentials_refused_total", "Requests refused because of their credential, by why: no_credential, not_verified, or the error code that the client got.", "server", "reason"),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "mcpbridge", Name: "listen_streams", Help: "Open subscriptions/listen streams, and requests of extensions that have become streams.",
		}),
		parked:         gauge("parked_calls", "Calls that wait for their clients' answers.", "server"),
		clients:        gauge("client_sessions", "Open sessions of legacy clients.", "server"),
		sockets:        gauge("client_websockets", "Open WebSockets of clients.", "server"),
		dropped:        counter("messages_dropped_total", "Messages that reached nobody, by reason.", "server", "reason"),
		sessions:       gauge("upstream_sessions", "Open sessions with servers.", "server"),
		sessionsOpened: counter("upstream_sessions_opened_total", "Sessions opened with servers.", "server"),
		sessionsEnded:  counter("upstream_sessions_ended_total", "Sessions with servers that ended, by why.", "server", "why"),
		commandStarts:  counter("command_starts_total", "Starts of a server's command.", "server"),

		offered:   counter("events_offered_total", "Changes, once for each listen stream that is to hear of them. Those not delivered were joined with one that still waited.", "server"),
		delivered: counter("events_delivered_total", "Change notifications written to listen streams.", "server"),

		spansLost: prometheus.NewCounter(prometheus.CounterOpts{Namespace: "mcpbridge", Name: "spans_lost_total", Help: "Spans of traces that could not be exported."}),
		cache: cached{
			requests: counter("cache_requests_total", "Requests for results that may be kept, by whether one was (hit or miss).", "server", "method", "outcome"),
			evicted:  counter("cache_evicted_total", "Results that left the cache, by why.", "server", "why"),
			bytes:    gauge("cache_bytes", "Bytes of results that are kept.", "server"),
		},
	}
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.streams, m.parked, m.clients, m.sockets, m.limits, m.refused,
		m.dropped, m.sessions, m.sessionsOpened, m.sessionsEnded, m.commandStarts,
		m.offered, m.delivered,
		m.cache.requests, m.cache.evicted, m.cache.bytes, m.spansLost, buildInfo(version),
	)
	m.registry.MustRegister(m.requests.collectors()...)
	m.registry.MustRegister(m.reloads.collectors()...)
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

// Dropped counts a message that reached nobody.
func (m *Metrics) Dropped(server, reason string) { m.dropped.WithLabelValues(server, reason).Inc() }

// Limit counts a refusal at a limit, by the limit's name.
func (m *Metrics) Limit(server, name string) { m.limits.WithLabelValues(server, name).Inc() }

// Refused counts a request that was refused because of its credential.
func (m *Metrics) Refused(server, reason string) { m.refused.WithLabelValues(server, reason).Inc() }

// Streams adds delta, which may be negative, to the open listen streams.
func (m *Metrics) Streams(delta int) { m.streams.Add(float64(delta)) }

// Parked adds delta, which may be negative, to the calls that wait for their
// clients' answers.
func (m *Metrics) Parked(server string, delta int) {
	m.parked.WithLabelValues(server).Add(float64(delta))
}

// Delivered counts n change notifications written to listen streams.
func (m *Metrics) Delivered(server string, n int) {
	m.delivered.WithLabelValues(server).Add(float64(n))
}

// Offered counts changes, once for each of the n listen streams that are to hear
// of them.
func (m *Metrics) Offered(server string, n int) {
	m.offered.WithLabelValues(server).Add(float64(n))
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

// Sessions adds delta, which may be negative, to the sessions of legacy clients.
func (m *Metrics) Sessions(server string, delta int) {
	m.clients.WithLabelValues(server).Add(float64(delta))
}

// Sockets adds delta, which may be negative, to the open WebSockets of clients.
func (m *Metrics) Sockets(server string, delta int) {
	m.sockets.WithLabelValues(server).Add(float64(delta))
}

// SessionOpened counts a session with a server in. Exactly one SessionEnded
// follows.
func (m *Metrics) SessionOpened(server string) {
	m.sessions.WithLabelValues(server).Inc()
	m.sessionsOpened.WithLabelValues(server).Inc()
}

// SessionEnded counts a session out. Why is a word of the caller's, from a
// fixed few.
func (m *Metrics) SessionEnded(server, why string) {
	m.sessions.WithLabelValues(server).Dec()
	m.sessionsEnded.WithLabelValues(server, why).Inc()
}

// CommandStarted counts a start of a server's command.
func (m *Metrics) CommandStarted(server string) { m.commandStarts.WithLabelValues(server).Inc() }

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
