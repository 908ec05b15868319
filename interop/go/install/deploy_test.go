//go:build linux

package install

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// bridge is the program: that of a release, or of the tree as it is.
func bridge(t *testing.T) string {
	t.Helper()
	if dist == "" {
		return binaries.Bridge
	}
	return releasedBinary(t)
}

// start runs a program until the end of the test.
func start(t *testing.T, name string, argv ...string) *process.Process {
	t.Helper()
	p, err := process.Start(name, nil, argv...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := process.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// replaced writes a file of deploy with other words in it, and returns where.
func replaced(t *testing.T, file string, words ...string) string {
	t.Helper()
	text := read(t, filepath.Join("../../../deploy", file))
	for i := 0; i < len(words); i += 2 {
		if !strings.Contains(text, words[i]) {
			t.Fatalf("%s does not say %s", file, words[i])
		}
	}
	path := filepath.Join(t.TempDir(), filepath.Base(file))
	write(t, path, strings.NewReplacer(words...).Replace(text))
	return path
}

// A watched is mcpbridge with a Prometheus that asks it, both as deploy configures them.
type watched struct {
	endpoint   string
	prometheus string // URL
}

func watch(t *testing.T) *watched {
	t.Helper()
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Fatalf("%v: deploy/check installs it", err)
	}
	listen, admin, at := freeAddr(t), freeAddr(t), freeAddr(t)
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, "0123456789abcdef0123456789abcdef\n")
	_, adminPort, _ := strings.Cut(admin, ":")
	start(t, "mcpbridge", bridge(t), "serve", replaced(t, "mcpbridge.yaml",
		"0.0.0.0:2526", listen, "0.0.0.0:2527", "0.0.0.0:"+adminPort, "/run/secrets/admin_token", token, "/var/lib/mcpbridge", t.TempDir()))
	rules, err := filepath.Abs("../../../deploy/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, "prometheus", "prometheus", "--storage.tsdb.path="+t.TempDir(), "--web.listen-address="+at, "--config.file="+replaced(t, "prometheus/prometheus.yaml",
		"15s", "1s", "alerts.yaml", rules, "/run/secrets/admin_token", token, "mcpbridge:2527", admin))
	w := &watched{endpoint: "http://" + listen + "/mcp/notebook", prometheus: "http://" + at}
	if err := p.Ready(t.Context(), w.prometheus+"/-/ready", 200); err != nil {
		t.Fatal(err)
	}
	return w
}

// query returns how many series a query has.
func (w *watched) query(t *testing.T, query string) int {
	t.Helper()
	var said struct {
		Status, Error string
		Data          struct{ Result []any }
	}
	text := get(t, w.prometheus+"/api/v1/query?query="+url.QueryEscape(query))
	if err := json.Unmarshal([]byte(text), &said); err != nil || said.Status != "success" {
		t.Fatalf("%s = %s, %v", query, text, err)
	}
	return len(said.Data.Result)
}

// wantData waits until a query of a panel has data: after a slow scrape it has none for a while.
func (w *watched) wantData(t *testing.T, panel, query string) {
	t.Helper()
	rig.Until(t, 2*time.Minute, fmt.Sprintf("data in the panel %q", panel), func() string {
		if w.query(t, query) == 0 {
			return "there is none for " + query
		}
		return ""
	})
}

// use has clients of both eras, one that listens among them, do something for as long as it
// takes to be scraped.
func (w *watched) use(t *testing.T) {
	t.Helper()
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"0"}}}`
	req, err := http.NewRequest(http.MethodPost, w.endpoint, strings.NewReader(initialize))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("initialize = %v, %v", res, err)
	}
	_ = res.Body.Close()
	listening := start(t, "listen", bridge(t), "listen", w.endpoint, "--resource", "note://todo")
	rig.Until(t, 2*time.Minute, "listening", func() string {
		if log := listening.Log(); !strings.Contains(log, "acknowledged") {
			return "it says: " + log
		}
		return ""
	})
	for range 3 {
		run(t, nil, bridge(t), "call", w.endpoint, "edit_note", "name=todo", "text=x")
		time.Sleep(1100 * time.Millisecond) // a scrape
	}
}

// unused are metrics of what does not happen in use.
var unused = []string{
	"sessions_ended", "limits_hit", "messages_dropped", "credentials_refused", "cache_requests", "cache_bytes", "command_starts", "state_lost",
	"client_websockets", "parked_calls", `outcome="failed"`, "mcpbridge_replica", "forwards_total", "handovers_total",
}

// Prometheus scrapes mcpbridge with its token, judges the rules, and answers what the
// dashboard asks.
func TestDashboard(t *testing.T) {
	w := watch(t)
	rig.Until(t, 2*time.Minute, "scraped", func() string {
		if w.query(t, `up{job="mcpbridge"} == 1`) == 0 {
			return "it is not up"
		}
		return ""
	})
	w.use(t)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "../../../deploy/grafana/dashboards/mcpbridge.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$instance", ".*", "$server", ".*", "$__rate_interval", "1m")
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			names := func(metric string) bool { return strings.Contains(target.Expr, metric) }
			expr := variables.Replace(target.Expr)
			if slices.ContainsFunc(unused, names) {
				w.query(t, expr) // it can be judged
				continue
			}
			w.wantData(t, p.Title, expr)
		}
	}
	rig.Until(t, 2*time.Minute, "the rules are judged", func() string {
		text := get(t, w.prometheus+"/api/v1/rules")
		if strings.Contains(text, `"health":"err"`) {
			t.Fatalf("a rule can't be judged: %s", text)
		}
		if n := strings.Count(text, `"health":"ok"`); n < 10 || strings.Contains(text, `"health":"unknown"`) {
			return text
		}
		return ""
	})
}
