package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Metrics holds the counters of one gateway. All methods are safe for
// concurrent use, quick, and never block.
type Metrics struct {
	registry *prometheus.Registry

	// What clients do.
	requests      *prometheus.CounterVec   // server, method, era, outcome
	durations     *prometheus.HistogramVec // server, method
	listenStreams *prometheus.GaugeVec     // server
	limits        *prometheus.CounterVec   // limit

	// What servers do.
	dropped         *prometheus.CounterVec // server, reason
	sessions        *prometheus.GaugeVec   // server
	sessionsOpened  *prometheus.CounterVec // server
	sessionsLost    *prometheus.CounterVec // server
	subscriptions   *prometheus.GaugeVec   // server
	commandRestarts *prometheus.CounterVec // server

	// What reaches listen streams.
	delivered prometheus.Counter
	coalesced prometheus.Counter
}

// seconds are the bounds of the duration histogram: from what the gateway adds
// to a call up to what a model's tool may take.
var seconds = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 15, 60, 300, 1800}

// New returns counters at zero, beside those of the Go runtime and the process.
func New() *Metrics {
	m := &Metrics{
		registry:      prometheus.NewRegistry(),
		requests:      counter("requests_total", "Requests of clients, by how they ended.", "server", "method", "era", "outcome"),
		listenStreams: gauge("listen_streams", "Open subscriptions/listen streams.", "server"),
		limits:        counter("limits_hit_total", "Requests and messages refused because a configured limit was reached.", "limit"),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "mcpbridge", Name: "request_duration_seconds",
			Help: "Time from a client's request to the end of its answer; listen streams excluded.", Buckets: seconds,
		}, []string{"server", "method"}),

		dropped:         counter("notifications_dropped_total", "Notifications of servers that reached nobody, by reason.", "server", "reason"),
		sessions:        gauge("upstream_sessions", "Open sessions with servers.", "server"),
		sessionsOpened:  counter("upstream_sessions_opened_total", "Sessions opened with servers.", "server"),
		sessionsLost:    counter("upstream_sessions_lost_total", "Sessions that ended without having been closed.", "server"),
		subscriptions:   gauge("upstream_subscriptions", "Resources subscribed to at servers.", "server"),
		commandRestarts: counter("command_restarts_total", "Starts of a server's command after its first.", "server"),

		delivered: single("events_delivered_total", "Change notifications written to listen streams."),
		coalesced: single("events_coalesced_total", "Change notifications joined with one that was still waiting for its stream."),
	}
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.requests, m.durations, m.listenStreams, m.limits,
		m.dropped, m.sessions, m.sessionsOpened, m.sessionsLost, m.subscriptions, m.commandRestarts,
		m.delivered, m.coalesced,
	)
	return m
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "mcpbridge", Name: name, Help: help}, labels)
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "mcpbridge", Name: name, Help: help}, labels)
}

func single(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "mcpbridge", Name: name, Help: help})
}

// Handler serves the counters in the formats that Prometheus reads.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Request counts a request that has been answered after took. The outcome is a
// word of the caller's, from a fixed few.
func (m *Metrics) Request(server, method, era, outcome string, took time.Duration) {
	method = bounded(method)
	m.requests.WithLabelValues(server, method, era, outcome).Inc()
	if method != spec.MethodListen {
		m.durations.WithLabelValues(server, method).Observe(took.Seconds())
	}
}

// Dropped counts a server's notification that reached nobody.
func (m *Metrics) Dropped(server, reason string) { m.dropped.WithLabelValues(server, reason).Inc() }

// LimitHit counts a refusal; limit is the key in the configuration.
func (m *Metrics) LimitHit(limit string) { m.limits.WithLabelValues(limit).Inc() }

// ListenOpened counts a listen stream in, ListenClosed counts it out.
func (m *Metrics) ListenOpened(server string) { m.listenStreams.WithLabelValues(server).Inc() }

// ListenClosed counts a listen stream out.
func (m *Metrics) ListenClosed(server string) { m.listenStreams.WithLabelValues(server).Dec() }

// SessionOpened counts a session with a server in. Exactly one SessionClosed
// follows.
func (m *Metrics) SessionOpened(server string) {
	m.sessions.WithLabelValues(server).Inc()
	m.sessionsOpened.WithLabelValues(server).Inc()
}

// SessionClosed counts a session out; lost says that it was not the gateway
// who ended it.
func (m *Metrics) SessionClosed(server string, lost bool) {
	m.sessions.WithLabelValues(server).Dec()
	if lost {
		m.sessionsLost.WithLabelValues(server).Inc()
	}
}

// Subscribed adds n, which may be negative, to the resources subscribed to at
// a server.
func (m *Metrics) Subscribed(server string, n int) {
	m.subscriptions.WithLabelValues(server).Add(float64(n))
}

// CommandRestarted counts a start of a server's command after its first.
func (m *Metrics) CommandRestarted(server string) { m.commandRestarts.WithLabelValues(server).Inc() }

// Delivered counts n change notifications written to listen streams.
func (m *Metrics) Delivered(n int) { m.delivered.Add(float64(n)) }

// Coalesced counts n change notifications that joined a waiting one.
func (m *Metrics) Coalesced(n int) { m.coalesced.Add(float64(n)) }

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
