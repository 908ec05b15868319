package metrics

import "github.com/prometheus/client_golang/prometheus"

// Replicas counts what one of several replicas hears of the others.
type Replicas struct {
	members prometheus.Gauge
	claims  *prometheus.GaugeVec // holder
	up      prometheus.Gauge
	ready   prometheus.Gauge
	worse   prometheus.Gauge
	errors  prometheus.Counter
	skips   prometheus.Counter
	changes *prometheus.CounterVec // change
	forward *prometheus.CounterVec // outcome
	handed  *prometheus.CounterVec // outcome, reason
	limit   func(server, name string)
}

// Replicas returns the counters of replicas, always the same. Without a call there are none.
func (m *Metrics) Replicas() *Replicas {
	m.together.Do(m.addReplicas)
	return m.replicas
}

func (m *Metrics) addReplicas() {
	r := &Replicas{
		members: m.gauge("replicas", "Replicas that live, this one included.").WithLabelValues(),
		claims:  m.gauge("replica_claims", "Profiles that this replica watches, by which replica holds them: self or other.", "holder"),
		up:      m.gauge("replica_engine_up", "1 if the engine of the replicas answers, 0 if it is away.").WithLabelValues(),
		ready:   m.gauge("replica_ready", "1 once this replica has found that it can serve with the others, 0 before.").WithLabelValues(),
		worse:   m.gauge("replica_degraded", "1 while something keeps this replica from working with the others as it should: /readyz says what.").WithLabelValues(),
		errors:  m.counter("replica_engine_errors_total", "Rounds of questions to the engine of the replicas that failed.").WithLabelValues(),
		skips:   m.counter("replica_engine_skips_total", "Rounds of questions to the engine of the replicas in which records were skipped: they are too large, or too many.").WithLabelValues(),
		changes: m.counter("replica_changes_total", "Changes among the replicas: joined, draining, left, silent or unheard (at the engine, while it answers the others) of another one; claimed, yielded or released of a claim of this one.", "change"),
		forward: m.counter("forwards_total", "Requests that were forwarded to the replica that holds their session or call, by outcome: ok, gone, silent, unanswered, cut or left.", "outcome"),
		handed:  m.counter("handovers_total", "Sessions of legacy clients whose replica ends, by outcome: given to another replica or taken from one; refused here, or failed to be given, for a reason; ended with this one.", "outcome", "reason"),
		limit:   m.Limit,
	}
	r.Away(false)
	for _, reason := range []string{"full", "malformed", "stateful"} { // an alert sees the first one, too
		r.HandedOver("refused", reason, 0)
	}
	m.replicas = r
}

// Members sets how many replicas live.
func (r *Replicas) Members(n int) { r.members.Set(float64(n)) }

// Claims sets how many names this replica wants, and how many of them it holds.
func (r *Replicas) Claims(own, wanted int) {
	r.claims.WithLabelValues("self").Set(float64(own))
	r.claims.WithLabelValues("other").Set(float64(wanted - own))
}

// Away sets whether the engine is away.
func (r *Replicas) Away(away bool) {
	up := 1.0
	if away {
		up = 0
	}
	r.up.Set(up)
}

// Stands sets how this replica stands with the others.
func (r *Replicas) Stands(ready, degraded bool) {
	set := func(g prometheus.Gauge, is bool) {
		g.Set(0)
		if is {
			g.Set(1)
		}
	}
	set(r.ready, ready)
	set(r.worse, degraded)
}

// Failed counts a round with the engine that failed.
func (r *Replicas) Failed() { r.errors.Inc() }

// Skipped counts a round with the engine in which records were skipped.
func (r *Replicas) Skipped() { r.skips.Inc() }

// Crowded counts a call that may not wait until it is known which replica serves it: too many do.
func (r *Replicas) Crowded() { r.limit("", "waiting_claims") }

// Overasked counts a name that other replicas are not asked for whether they hold it: too many are.
func (r *Replicas) Overasked() { r.limit("", "asked_claims") }

// Forwarded counts a request that was forwarded to another replica.
func (r *Replicas) Forwarded(outcome string) { r.forward.WithLabelValues(outcome).Inc() }

// Moved counts a change.
func (r *Replicas) Moved(change string) { r.changes.WithLabelValues(change).Inc() }

// HandedOver counts sessions whose replica ends.
func (r *Replicas) HandedOver(outcome, reason string, n int) {
	r.handed.WithLabelValues(outcome, reason).Add(float64(n))
}
