package metrics

import "github.com/prometheus/client_golang/prometheus"

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
