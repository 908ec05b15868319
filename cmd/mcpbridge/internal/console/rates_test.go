package console

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Requests are summed by server over everything else that their counter has.
func TestReadSample(t *testing.T) {
	const text = `# HELP mcpbridge_requests_total Requests.
# TYPE mcpbridge_requests_total counter
mcpbridge_requests_total{era="modern",method="tools/call",outcome="ok",server="docs"} 7
mcpbridge_requests_total{era="legacy",method="tools/list",outcome="error",server="docs"} 3
mcpbridge_requests_total{era="modern",method="tools/call",outcome="ok",server="a \"b\\c"} 1e+06
# TYPE mcpbridge_request_duration_seconds histogram
mcpbridge_request_duration_seconds_bucket{method="tools/call",server="docs",le="+Inf"} 99
mcpbridge_request_duration_seconds_sum{method="tools/call",server="docs"} 99
mcpbridge_request_duration_seconds_count{method="tools/call",server="docs"} 99
`
	s, err := readSample(strings.NewReader(text))
	if want := map[string]float64{"docs": 10, `a "b\c`: 1e6}; err != nil || !maps.Equal(s.of, want) {
		t.Errorf("readSample() = %v, %v, want %v", s, err, want)
	}
	if s, err := readSample(strings.NewReader("")); err != nil || len(s.of) != 0 {
		t.Errorf("of a gateway that had no request: %v, %v", s, err)
	}
	if _, err := readSample(strings.NewReader("<html>")); err == nil {
		t.Error("of what is no metrics: no error")
	}
}

func TestRates(t *testing.T) {
	at := time.Now()
	of := func(after time.Duration, docs, files float64) *sample {
		return &sample{at.Add(after), map[string]float64{"docs": docs, "files": files}}
	}
	for _, tt := range []struct {
		name        string
		before, now *sample
		docs, sum   string
	}{
		{"two seconds", of(0, 100, 5), of(2*time.Second, 125, 5), "12.5", "12.5"},
		{"many", of(0, 0, 0), of(time.Second, 2500, 500), "2500", "3000"},
		{"another server since", &sample{at, map[string]float64{"docs": 5}}, of(time.Second, 6, 4), "1.0", "5.0"},
		{"one without", of(0, 100, 5), &sample{at.Add(time.Second), map[string]float64{"files": 6}}, "0.0", "1.0"},
		{"began anew", of(0, 100, 5), of(time.Second, 3, 5), "", ""},
		{"none before", nil, of(0, 1, 1), "", ""},
		{"none after", of(0, 1, 1), nil, "", ""},
		{"at once", of(0, 1, 1), of(0, 1, 1), "", ""},
	} {
		r := tt.now.since(tt.before)
		if got := r.text("docs"); got != tt.docs {
			t.Errorf("%s: docs has %q calls per second, want %q", tt.name, got, tt.docs)
		}
		if tt.sum == "" && r != nil || tt.sum != "" && r.sum() != tt.sum {
			t.Errorf("%s: all have %v, want %q", tt.name, r, tt.sum)
		}
	}
}

// admin returns an admin address whose counter grows by 50 with each scrape, and which serves
// no metrics if status is another than 200.
func admin(t *testing.T, status int) *Admin {
	t.Helper()
	var scrapes atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			w.WriteHeader(status)
			fmt.Fprintf(w, "# TYPE mcpbridge_requests_total counter\nmcpbridge_requests_total{server=\"docs\"} %d\n", 50*scrapes.Add(1))
			return
		}
		fmt.Fprint(w, `{"version":"v1","time":"2026-11-22T20:00:10Z","started":"2026-11-22T20:00:00Z","servers":[{"name":"docs","state":"ready","era":"modern"},{"name":"files\u001b[2J","state":"down","era":"unknown"}]}`)
	}))
	t.Cleanup(s.Close)
	return &Admin{Address: Address{URL: s.URL}}
}

// What is printed once has the rates of a second; without metrics it has none, at once.
func TestOnce(t *testing.T) {
	var out bytes.Buffer
	if err := admin(t, 200).Once(t.Context(), &out, false); err != nil {
		t.Fatal(err)
	}
	rate := 0.0
	if n, _ := fmt.Sscanf(strings.SplitAfter(out.String(), "docs")[1], " ready modern %f", &rate); n != 1 || rate < 5 || rate > 50 {
		t.Errorf("50 calls in a second and a little more are %v per second; want a little less than 50 in\n%s", rate, &out)
	}
	if !strings.Contains(out.String(), " calls/s, ") || strings.Contains(out.String(), "\x1b") {
		t.Errorf("printed:\n%q", out.String())
	}
	out.Reset()
	began := time.Now()
	if err := admin(t, 401).Once(t.Context(), &out, false); err != nil || time.Since(began) > sampleTime/2 || strings.Contains(out.String(), "calls/s, ") || !strings.Contains(out.String(), "docs") {
		t.Errorf("without metrics: %v after %v:\n%s", err, time.Since(began), &out)
	}
}

// A screen has the rates since the one before; the first has none.
func TestTop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var screens []string
	err := admin(t, 200).Top(ctx, writes(func(text string) {
		if screens = append(screens, text); len(screens) == 3 {
			cancel()
		}
	}), 20*time.Millisecond, false)
	if err != nil || len(screens) != 3 {
		t.Fatalf("%d screens, %v", len(screens), err)
	}
	for i, text := range screens {
		if !strings.HasPrefix(text, "\x1b[H\x1b[J") || strings.Contains(text, " calls/s, ") != (i > 0) {
			t.Errorf("screen %d is\n%s", i, text)
		}
	}
}

type writes func(string)

func (w writes) Write(b []byte) (int, error) {
	w(string(b))
	return len(b), nil
}
