package metrics

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// certificates tells when certificates expire. They are asked at each scrape, since their files
// are replaced.
type certificates struct {
	// mu guards the map.
	mu   sync.Mutex
	ends map[string]func() time.Time // by the key of the configuration
}

var endsDesc = prometheus.NewDesc("mcpbridge_certificate_expiry_timestamp_seconds",
	"When a certificate that mcpbridge shows expires, in Unix time, by the key of the configuration that names it.", []string{"key"}, nil)

// WatchCertificates makes readable when certificates expire, by the key of the configuration
// that names them, in place of those before. Each function is called at each scrape; zero means
// that there is no certificate.
func (m *Metrics) WatchCertificates(ends map[string]func() time.Time) {
	c := &m.certificates
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = maps.Clone(ends)
}

// Describe implements [prometheus.Collector].
func (c *certificates) Describe(ch chan<- *prometheus.Desc) { ch <- endsDesc }

// Collect implements [prometheus.Collector].
func (c *certificates) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	ends := maps.Clone(c.ends)
	c.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(ends)) {
		if at := ends[key](); !at.IsZero() {
			ch <- prometheus.MustNewConstMetric(endsDesc, prometheus.GaugeValue, float64(at.Unix()), key)
		}
	}
}
