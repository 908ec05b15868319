package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// auditing tells whether the audit log has all lines.
type auditing struct {
	lost    prometheus.Counter
	failing *atomic.Int64 // logs: that of before a reload is open until its servers have ended
}

func (m *Metrics) newAuditing() auditing {
	failing := new(atomic.Int64)
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "mcpbridge", Name: "audit_failing", Help: "1 while lines of the audit log can't be written; they are kept and tried again.",
	}, func() float64 { return float64(min(failing.Load(), 1)) }))
	return auditing{lost: m.counter("audit_lost_total", "Lines of the audit log that were lost.").WithLabelValues(), failing: failing}
}

// AuditLost counts lines of the audit log that were lost.
func (m *Metrics) AuditLost(lines int) { m.audit.lost.Add(float64(lines)) }

// AuditFailing says that lines of an audit log can't be written from now on, or can be again.
func (m *Metrics) AuditFailing(failing bool) {
	if failing {
		m.audit.failing.Add(1)
		return
	}
	m.audit.failing.Add(-1)
}
