package traces

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// programs has the mcpbridge that the tests start, and legacy-go.
var programs rig.Binaries

func TestMain(m *testing.M) { os.Exit(rig.Main(m, "legacy-go", &programs)) }

// built returns a program that interop/build made.
func built(name string) string { return filepath.Join("..", "..", "bin", name) }

// start starts a program, and waits until it listens at addr.
func start(t *testing.T, addr string, argv ...string) *process.Process {
	t.Helper()
	p, err := process.Start(filepath.Base(argv[0]), nil, argv...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(time.Minute); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("%s wrote:\n%s", argv[0], p.Log())
		}
	})
	if err := p.Ready(t.Context(), "http://"+addr+"/", 0); err != nil {
		t.Fatal(err)
	}
	return p
}

// A collector is a running OpenTelemetry collector.
type collector struct {
	*process.Process
	http, grpc string // addresses
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{http: rig.FreeAddr(t), grpc: rig.FreeAddr(t)}
	config := filepath.Join(t.TempDir(), "collector.yaml")
	text := fmt.Sprintf(`
receivers: {otlp: {protocols: {http: {endpoint: %q}, grpc: {endpoint: %q}}}}
exporters: {debug: {verbosity: detailed, sampling_initial: 1000}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [debug]}}
`, c.http, c.grpc)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Process = start(t, c.http, built("collector"), "--config", config)
	return c
}

// A watched is a server behind a proxy that keeps what it is sent.
type watched struct {
	url string

	mu     sync.Mutex
	bodies []string
	heads  []http.Header
}

func watch(t *testing.T, server string) *watched {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{}
	p := httputil.NewSingleHostReverseProxy(to)
	p.FlushInterval = -1
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what there is of it
		w.mu.Lock()
		w.bodies, w.heads = append(w.bodies, string(body)), append(w.heads, r.Header.Clone())
		w.mu.Unlock()
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		p.ServeHTTP(rw, r)
	}))
	t.Cleanup(s.Close)
	w.url = s.URL
	return w
}

// calls returns the requests tools/call, and their headers.
func (w *watched) calls() (bodies []string, heads []http.Header) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, b := range w.bodies {
		if strings.Contains(b, `"tools/call"`) {
			bodies, heads = append(bodies, b), append(heads, w.heads[i])
		}
	}
	return bodies, heads
}

// A bridge is mcpbridge with a legacy and a modern server.
type bridge struct {
	base           string
	legacy, modern *watched
	process        *process.Process
}

// newBridge starts mcpbridge, with more environment.
func newBridge(t *testing.T, env ...string) *bridge {
	t.Helper()
	oldAddr, newAddr, listen, admin := rig.FreeAddr(t), rig.FreeAddr(t), rig.FreeAddr(t), rig.FreeAddr(t)
	start(t, oldAddr, programs.Server, "-http", oldAddr)
	start(t, newAddr, built("modern-go"), "-http", newAddr)
	b := &bridge{base: "http://" + listen, legacy: watch(t, "http://"+oldAddr), modern: watch(t, "http://"+newAddr)}
	config := fmt.Sprintf("listen: %s\nadmin: %s\nservers:\n  legacy: {url: \"%s/mcp\"}\n  modern: {url: %q}\n", listen, admin, b.legacy.url, b.modern.url)
	b.process = programs.StartBridge(t, config, admin, env...)
	t.Cleanup(b.process.Kill)
	return b
}

// end ends mcpbridge, which exports what waits.
func (b *bridge) end(t *testing.T) {
	t.Helper()
	if err := b.process.Stop(time.Minute); err != nil {
		t.Errorf("%v\n%s", err, b.process.Log())
	}
}
