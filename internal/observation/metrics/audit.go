package metrics

import "github.com/prometheus/client_golang/prometheus"

// auditing tells whether the audit log has all lines.
type auditing struct {
	lost    prometheus.Counter
	failing prometheus.Gauge
}

func (m *Metrics) newAuditing() auditing {
	return auditing{
		lost:    m.counter("audit_lost_total", "Lines of the audit log that were lost.").WithLabelValues(),
		failing: m.gauge("audit_failing", "1 while lines of the audit log can't be written; they are kept and tried again.").WithLabelValues(),
	}
}

// AuditLost counts lines of the audit log that were lost.
func (m *Metrics) AuditLost(lines int) { m.audit.lost.Add(float64(lines)) }

// AuditFailing says whether lines of the audit log can't be written.
func (m *Metrics) AuditFailing(failing bool) {
	if failing {
		m.audit.failing.Set(1)
		return
	}
	m.audit.failing.Set(0)
}
