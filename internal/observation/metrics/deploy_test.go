package metrics

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	// described are the name and the labels in the text of a description.
	described = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)
	// queried is a metric in a query, with its selector, if it has one.
	queried = regexp.MustCompile(`\b(mcpbridge_[a-z_]+|mcp_[a-z_]+|go_[a-z_]+|process_[a-z_]+|up)\b(\{[^}]*\})?`)
	// selected is a label in a selector.
	selected = regexp.MustCompile(`([a-z_]+)(?:=~?|!=|!~)"`)
	// grouped are the labels of an aggregation.
	grouped = regexp.MustCompile(`by \(([^)]*)\)`)
)

// scraped are the labels that Prometheus adds.
var scraped = []string{"job", "instance", "namespace", "le"}

// metricNames returns what a gateway counts, each with its labels.
func metricNames(t *testing.T) map[string][]string {
	t.Helper()
	m := New("v1")
	m.Replicas()
	m.WatchIndex(func() (topics, pairs int) { return 0, 0 })
	found := map[string][]string{"up": nil}
	ch := make(chan *prometheus.Desc, 1000)
	m.registry.Describe(ch)
	close(ch)
	for d := range ch {
		of := described.FindStringSubmatch(d.String())
		if of == nil {
			t.Fatalf("%s has no name", d)
		}
		labels := strings.Split(of[2], ",")
		for _, name := range []string{of[1], of[1] + "_bucket", of[1] + "_count", of[1] + "_sum"} {
			found[name] = labels
		}
	}
	return found
}

// queries returns all queries below a value of JSON.
func queries(v any) (out []string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			out = append(out, queries(e)...)
		}
	case map[string]any:
		for name, e := range v {
			text, isText := e.(string)
			if isText && (name == "expr" || name == "query" && strings.Contains(text, "label_values")) {
				out = append(out, text)
			}
			out = append(out, queries(e)...)
		}
	}
	return out
}

// What the dashboard and the alerts ask for is what is counted.
func TestDeployQueriesWhatIsCounted(t *testing.T) {
	dashboard, err := os.ReadFile("../../../deploy/grafana/dashboards/mcpbridge.json")
	if err != nil {
		t.Fatal(err)
	}
	var parsed any
	if err := json.Unmarshal(dashboard, &parsed); err != nil {
		t.Fatal(err)
	}
	asked := map[string][]string{"the dashboard": queries(parsed)}
	for _, name := range []string{"alerts.yaml", "alerts_test.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../../deploy/prometheus", name))
		if err != nil {
			t.Fatal(err)
		}
		asked[name] = strings.Split(string(text), "\n")
	}
	names := metricNames(t)
	for where, texts := range asked {
		n := 0
		for _, text := range texts {
			n += checkQuery(t, where, text, names)
		}
		if n < 9 {
			t.Errorf("%s asks for %d metrics: are its queries found?", where, n)
		}
	}
}

// checkQuery returns how many metrics a query has.
func checkQuery(t *testing.T, where, text string, names map[string][]string) int {
	t.Helper()
	metrics := queried.FindAllStringSubmatch(text, -1)
	labels := slices.Clone(scraped)
	for _, m := range metrics {
		of, known := names[m[1]]
		if !known {
			t.Errorf("%s asks for %s, which nobody counts: %s", where, m[1], text)
		}
		labels = append(labels, of...)
		for _, l := range selected.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(of, l[1]) && !slices.Contains(scraped, l[1]) {
				t.Errorf("%s selects %s by %s; it has the labels %q", where, m[1], l[1], of)
			}
		}
	}
	for _, g := range grouped.FindAllStringSubmatch(text, -1) {
		for l := range strings.SplitSeq(g[1], ",") {
			// A query that goes on in the next line is of the metrics there.
			if l = strings.TrimSpace(l); len(metrics) > 0 && !slices.Contains(labels, l) {
				t.Errorf("%s groups by %s, which none of its metrics has: %s", where, l, text)
			}
		}
	}
	return len(metrics)
}

// The check can fail.
func TestCheckQuery(t *testing.T) {
	names := metricNames(t)
	if len(names) < 60 {
		t.Errorf("%d names are known: %q", len(names), slices.Collect(maps.Keys(names)))
	}
	for _, query := range []string{"rate(mcpbridge_reqests_total[5m])", `up{server="x"}`, "sum by (server) (up)", `mcpbridge_parked_calls{outcome="x"}`} {
		inner := new(testing.T)
		if checkQuery(inner, "x", query, names); !inner.Failed() {
			t.Errorf("%s passes", query)
		}
	}
}
