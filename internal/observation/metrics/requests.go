package metrics

import (
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Other stands for every method that the specification does not name.
const Other = "other"

// operations are the bounds of the histograms of the semantic conventions, in seconds.
//
// Spec: OpenTelemetry semantic conventions for MCP, Metrics.
var operations = []float64{.01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 120, 300}

// requests are the metrics of requests, of clients and to servers.
type requests struct {
	total     *prometheus.CounterVec   // server, method, era, outcome
	durations *prometheus.HistogramVec // server, method
	grouped   *prometheus.CounterVec   // group, server, outcome
	served    *prometheus.HistogramVec // server, mcp_method_name, error_type, gen_ai_tool_name
	sent      *prometheus.HistogramVec // server, mcp_method_name, error_type

	tools tools
	rates *rates

	ofClients table[servedKey, servedSeries]
	recent    recent[servedKey, servedSeries] // of ofClients
	toServers table[sentKey, histogram]
}

// A servedKey has the labels of a client's request.
type servedKey struct{ server, group, method, era, outcome, errorType, tool string }

// place returns where a key is among the recent ones.
func (k *servedKey) place() int {
	return placeOf(k.server) + 7*len(k.group) + 11*len(k.method) + 13*len(k.outcome) + placeOf(k.tool)
}

// placeOf returns a number that differs for most texts that are used together: those of one length
// often end in a number.
func placeOf(text string) int {
	if text == "" {
		return 0
	}
	return 5*len(text) + int(text[len(text)-1])
}

type servedSeries struct {
	total     prometheus.Counter
	durations prometheus.Observer // nil for a stream
	grouped   prometheus.Counter  // nil without a group
	client    *lastClient         // nil for a stream
	served    histogram
}

// A sentKey has the labels of a request to a server.
type sentKey struct{ server, method, errorType string }

func (m *Metrics) newRequests() requests {
	operation := []string{"server", "mcp_method_name", "error_type"}
	return requests{
		rates:   &rates{began: time.Now(), log: slog.New(slog.DiscardHandler)},
		total:   m.counter("requests_total", "Requests of clients, by how they ended.", "server", "method", "era", "outcome"),
		grouped: m.counter("group_requests_total", "Requests of clients of a group to a member, by how they ended; requests_total has them, too, for both.", "group", "server", "outcome"),
		durations: m.histogram("mcpbridge_request_duration_seconds", "Time from a client's request to the end of its answer; listen streams excluded.",
			seconds, "server", "method"),
		served: m.histogram("mcp_server_operation_duration_seconds", "Time from a client's request to the end of its answer, by how it failed; listen streams until they are open.",
			operations, append(operation, "gen_ai_tool_name")...),
		sent: m.histogram("mcp_client_operation_duration_seconds", "Time from a request to a server to the end of its answer, by how it failed.",
			operations, operation...),
	}
}

// Request counts a request of a client that has been answered. The outcome is a word of the
// caller's, from a fixed few.
func (m *Metrics) Request(s mcp.Served) {
	k := servedKey{s.Server, s.Group, bounded(s.Method), s.Era, s.Outcome, boundedError(s.Error), m.toolOf(&s)}
	series, ok := m.requests.recent.find(&m.requests.ofClients, k.place(), k)
	if !ok {
		series = m.requests.ofClients.add(k, m.requests.newServed)
	}
	took := s.Took.Seconds()
	series.total.Inc()
	if series.durations != nil {
		series.durations.Observe(took)
		m.rate(&s, series.client)
	}
	if series.grouped != nil {
		series.grouped.Inc()
	}
	series.served.observe(took, s.TraceID)
}

func (r *requests) newServed(k servedKey) servedSeries {
	s := servedSeries{total: r.total.WithLabelValues(k.server, k.method, k.era, k.outcome), served: newHistogram(r.served, k.server, k.method, k.errorType, k.tool)}
	if k.group != "" {
		s.grouped = r.grouped.WithLabelValues(k.group, k.server, k.outcome)
	}
	if k.method != spec.MethodListen {
		s.durations, s.client = r.durations.WithLabelValues(k.server, k.method), new(lastClient)
	}
	return s
}

// Upstream counts a request to a server that has ended.
func (m *Metrics) Upstream(server, method, errorType string, took time.Duration, traceID string) {
	k := sentKey{server, bounded(method), boundedType(errorType)}
	h := m.requests.toServers.get(k, m.requests.newSent)
	h.observe(took.Seconds(), traceID)
}

func (r *requests) newSent(k sentKey) histogram {
	return newHistogram(r.sent, k.server, k.method, k.errorType)
}

// A histogram has the traces of some values as examples.
type histogram struct {
	prometheus.Observer
	made time.Time
	last *atomic.Int64 // the second since made, from 1, in which the last example was given
}

func newHistogram(v *prometheus.HistogramVec, labels ...string) histogram {
	return histogram{v.WithLabelValues(labels...), time.Now(), new(atomic.Int64)}
}

// observe adds a value. If it is recorded in a trace, that is the example of its bucket, once
// a second at most: a scraper sees no more, and an example costs more than the value.
func (h *histogram) observe(value float64, traceID string) {
	if traceID != "" {
		if now, last := int64(time.Since(h.made)/time.Second)+1, h.last.Load(); now != last && h.last.CompareAndSwap(last, now) {
			h.Observer.(prometheus.ExemplarObserver).ObserveWithExemplar(value, prometheus.Labels{"trace_id": traceID})
			return
		}
	}
	h.Observe(value)
}

// bounded returns method if the specification names it. A client that invents
// methods would otherwise make a time series with each of them, and each is
// kept for the life of the process (CWE-770).
func bounded(method string) string {
	if spec.Defined(method) {
		return method
	}
	return Other
}

// boundedError returns the type of an error; see boundedType.
func boundedError(err error) string {
	if err == nil {
		return "" // without what most requests don't need
	}
	return boundedType(mcp.ErrorType(err))
}

// errorTypes are the words that stand for themselves, beside codes of the specification.
var errorTypes = []string{"", "tool_error", "cancelled", "timeout"}

// boundedType returns an error's type, or "_OTHER" for a code of a server's own: each would
// be a time series for the life of the process (CWE-770).
func boundedType(t string) string {
	if slices.Contains(errorTypes, t) {
		return t
	}
	if code, err := strconv.ParseInt(t, 10, 64); err == nil && spec.DefinedCode(code) {
		return t
	}
	return "_OTHER"
}

// A table has the series of keys, of which there are few. A lookup takes no lock.
type table[K comparable, V any] struct {
	all atomic.Pointer[map[K]V]
	mu  sync.Mutex // is held while all is replaced
}

// get returns the value of k, which make makes for the first request.
func (t *table[K, V]) get(k K, make func(K) V) V {
	if all := t.all.Load(); all != nil {
		if v, ok := (*all)[k]; ok {
			return v
		}
	}
	return t.add(k, make)
}

// A recent has a few values of a table at hand, since a map takes longer the longer its keys are. Its
// zero value has none. Safe for concurrent use.
type recent[K comparable, V any] [64]atomic.Pointer[looked[K, V]]

// A looked is what was looked up in a map.
type looked[K comparable, V any] struct {
	in *map[K]V
	k  K
	v  V
}

// find returns the value of k in t, and whether there is one. Keys of the same place, which is any
// number, get it now and then.
func (r *recent[K, V]) find(t *table[K, V], place int, k K) (v V, ok bool) {
	at := &r[uint(place)%uint(len(r))]
	last, in := at.Load(), t.all.Load()
	if last != nil && last.in == in && last.k == k {
		return last.v, true
	}
	if in == nil {
		return v, false
	}
	v, ok = (*in)[k]
	if ok && (last == nil || last.in != in || rand.Uint32()%16 == 0) {
		at.Store(&looked[K, V]{in, k, v})
	}
	return v, ok
}

func (t *table[K, V]) add(k K, make func(K) V) V {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := map[K]V{}
	if all := t.all.Load(); all != nil {
		maps.Copy(next, *all)
	}
	v, ok := next[k]
	if !ok {
		v = make(k)
		next[k] = v
		t.all.Store(&next)
	}
	return v
}
