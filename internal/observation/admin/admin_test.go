package admin

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

type fixed Snapshot

func (f fixed) Snapshot() Snapshot { return Snapshot(f) }

func get(t *testing.T, s Snapshot, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "counted") })
	h, err := NewHandler(Options{Source: fixed(s), Metrics: metrics})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

func TestReadyz(t *testing.T) {
	up, down, untried := Server{Name: "a", State: Up}, Server{Name: "b", State: Down, Reason: "connection refused"}, Server{Name: "c", State: Untried}
	for _, tt := range []struct {
		name string
		s    Snapshot
		code int
		body string
	}{
		{"all up", Snapshot{Servers: []Server{up}}, 200, `{"status":"ready","servers":[{"name":"a","state":"up"}]}`},
		{"one down", Snapshot{Servers: []Server{up, down}}, 200, `{"status":"ready","servers":[{"name":"a","state":"up"},{"name":"b","state":"down","reason":"connection refused"}]}`},
		{"one untried", Snapshot{Servers: []Server{up, untried}}, 503, `{"status":"starting","servers":[{"name":"a","state":"up"},{"name":"c","state":"untried"}]}`},
		{"one untried, of a reload", Snapshot{Settled: true, Servers: []Server{up, untried}}, 200, `{"status":"ready","servers":[{"name":"a","state":"up"},{"name":"c","state":"untried"}]}`},
		{"joining", Snapshot{Joining: true, Servers: []Server{up}, Replicas: &Replicas{Self: "AAAAAAAA", Members: 1, Engine: "ok"}}, 503, `{"status":"joining","servers":[{"name":"a","state":"up"}],"replicas":{"self":"AAAAAAAA","members":1,"engine":"ok"}}`},
		{"refused", Snapshot{Joining: true, Servers: []Server{up}, Replicas: &Replicas{Self: "AAAAAAAA", Members: 3, Engine: "ok", Degraded: []string{"keys"}}}, 503, `{"status":"joining","servers":[{"name":"a","state":"up"}],"replicas":{"self":"AAAAAAAA","members":3,"engine":"ok","degraded":["keys"]}}`},
		{"the engine is away", Snapshot{Servers: []Server{up}, Replicas: &Replicas{Self: "AAAAAAAA", Members: 3, Engine: "away since 2026-11-22T22:00:00Z"}}, 200, `{"status":"ready","servers":[{"name":"a","state":"up"}],"replicas":{"self":"AAAAAAAA","members":3,"engine":"away since 2026-11-22T22:00:00Z"}}`},
		{"draining", Snapshot{Draining: true, Servers: []Server{up}}, 503, `{"status":"draining","servers":[{"name":"a","state":"up"}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := get(t, tt.s, "GET", "/readyz")
			if got := strings.TrimSpace(w.Body.String()); w.Code != tt.code || got != tt.body {
				t.Errorf("/readyz = %d %s, want %d %s", w.Code, got, tt.code, tt.body)
			}
		})
	}
}

// Liveness depends on no server and not on draining: a process that ends
// orderly must not be killed for it.
func TestHealthz(t *testing.T) {
	w := get(t, Snapshot{Draining: true, Servers: []Server{{Name: "a", State: Down}}}, "GET", "/healthz")
	if got := strings.TrimSpace(w.Body.String()); w.Code != 200 || got != `{"status":"ok"}` {
		t.Errorf("/healthz = %d %s, want 200", w.Code, got)
	}
}

func TestRoutes(t *testing.T) {
	for _, tt := range []struct {
		method, path string
		code         int
	}{
		{"GET", "/metrics", 200}, {"HEAD", "/healthz", 200}, {"POST", "/healthz", 405}, {"GET", "/", 404}, {"GET", "/mcp/a", 404},
	} {
		if w := get(t, Snapshot{}, tt.method, tt.path); w.Code != tt.code {
			t.Errorf("%s %s = %d, want %d", tt.method, tt.path, w.Code, tt.code)
		}
	}
	if _, err := NewHandler(Options{}); err == nil {
		t.Error("NewHandler without a source = nil, want an error")
	}
}

// A group has a room, and a server has none.
func TestRooms(t *testing.T) {
	url, _ := start(t, nil)
	auth := []string{"Authorization", "Bearer " + secret}
	if res, text := do(t, "GET", url+"/api/groups/all", "", auth...); res.StatusCode != 200 || !strings.Contains(text, `"members":[{"name":"inside"`) {
		t.Errorf("the room of all: %s %s", res.Status, text)
	}
	if res, text := do(t, "GET", url+"/api/groups/inside", "", auth...); res.StatusCode != 404 || !strings.Contains(text, "/api/groups") {
		t.Errorf("the room of a server: %s %s", res.Status, text)
	}
	if res, text := do(t, "GET", url+"/api/groups", "", auth...); res.StatusCode != 200 || !strings.Contains(text, `"name":"all"`) || strings.Contains(text, "inside\",\"state") {
		t.Errorf("all groups: %s %s", res.Status, text)
	}
}
