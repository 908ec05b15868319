package metrics

import "github.com/prometheus/client_golang/prometheus"

// A vector has series of many servers.
type vector interface {
	DeletePartialMatch(prometheus.Labels) int
}

func (m *Metrics) ofServers() []vector {
	return []vector{
		m.clients.parked, m.clients.sessions, m.clients.sockets, m.clients.limits, m.clients.refused,
		m.servers.dropped, m.servers.sessions, m.servers.opened, m.servers.ended, m.servers.starts, m.changes.offered, m.changes.delivered,
		m.cache.requests, m.cache.evicted, m.cache.bytes, m.requests.total, m.requests.durations, m.requests.served, m.requests.sent,
	}
}

// Forget drops the series of a server: one that is not configured any more would be told of
// for the life of the process, and every other name that a configuration has had (CWE-770).
// One of that name that is added later begins at zero, as after a restart.
func (m *Metrics) Forget(server string) {
	for _, v := range m.ofServers() {
		v.DeletePartialMatch(prometheus.Labels{"server": server})
	}
	// After that: a table that is filled from what is about to be dropped would count into it.
	m.requests.ofClients.drop(func(k servedKey) bool { return k.server == server })
	m.requests.toServers.drop(func(k sentKey) bool { return k.server == server })
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
