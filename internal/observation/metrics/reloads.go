package metrics

import "github.com/prometheus/client_golang/prometheus"

// reloads tell what became of changes of the configuration.
type reloads struct {
	count *prometheus.CounterVec // result
	ok    prometheus.Gauge
	at    prometheus.Gauge
}

func newReloads() reloads {
	r := reloads{
		count: counter("config_reloads_total", "Attempts to reload the configuration, by result: ok, or error if it could not be used.", "result"),
		ok:    single("config_last_reload_successful", "1 if the configuration that was read last is in use, 0 if it could not be used."),
		at:    single("config_last_reload_success_timestamp_seconds", "When a configuration was read last that could be used, in Unix time."),
	}
	r.succeeded()
	return r
}

func single(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "mcpbridge", Name: name, Help: help})
}

func (r *reloads) succeeded() {
	r.ok.Set(1)
	r.at.SetToCurrentTime()
}

func (r *reloads) collectors() []prometheus.Collector {
	return []prometheus.Collector{r.count, r.ok, r.at}
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
