package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/clients"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// probeAs runs probe --as --json and returns what it printed, by client.
func probeAs(t *testing.T, environ []string, args ...string) (map[string]clients.Result, ran) {
	t.Helper()
	got := runCommand(t.Context(), environ, append([]string{"probe", "--json", "--as"}, args...)...)
	var results []clients.Result
	if err := json.Unmarshal([]byte(got.out), &results); err != nil {
		t.Fatalf("probe --as --json printed %q, %q: %v", got.out, got.err, err)
	}
	by := make(map[string]clients.Result)
	for _, r := range results {
		by[r.Client] = r
	}
	return by, got
}

// Every client that is known lists the tools of the notebook, over a pipe, and behind
// mcpbridge or not in the era that it prefers.
func TestProbeAsAtTheNotebook(t *testing.T) {
	environ := []string{"GORACE=atexit_sleep_ms=0", "GOCOVERDIR=" + t.TempDir()}
	by, _ := probeAs(t, environ, "all", "--", os.Args[0], "notebook-on-stdio")
	if len(by) != len(clients.All()) {
		t.Errorf("%d clients, want %d", len(by), len(clients.All()))
	}
	for id, r := range by {
		if !r.Directly.Connects || r.Directly.Revision == "2026-07-28" {
			t.Errorf("%s directly: %s, want a session", id, r.Directly.String())
		}
	}
	for _, id := range []string{"go-sdk", "python-2", "typescript-2-auto"} {
		if r := by[id]; r.Bridged.Revision != "2026-07-28" || r.Worse {
			t.Errorf("%s through mcpbridge: %s, want the modern revision", id, r.Bridged.String())
		}
	}
	for _, id := range []string{"python-1", "typescript-1", "vscode"} {
		if r := by[id]; r.Bridged.Revision != "2025-11-25" || r.Worse {
			t.Errorf("%s through mcpbridge: %s, want a session", id, r.Bridged.String())
		}
	}
}

// A strict is a legacy server that takes nothing but what it is told to.
type strict struct {
	refuse func(r *http.Request, m *wire.Message) int // the status; 0 for none
}

func (s strict) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	m, _ := wire.Parse(text, wire.Options{})
	switch status := s.refuse(r, &m); {
	case status != 0:
		http.Error(w, "not \x1b[31mhere", status)
	default:
		(&featured{capabilities: `{"tools":{}}`, list: `[]`}).serve(w, r, &m)
	}
}

// The exit code says whether mcpbridge is to blame.
func TestProbeAsBlames(t *testing.T) {
	mine := func(r *http.Request) bool { return strings.HasPrefix(r.UserAgent(), "Visual Studio Code") } // rather than mcpbridge's
	for _, tt := range []struct {
		name     string
		refuse   func(*http.Request, *wire.Message) int
		directly bool // it connects
		bridged  bool
		code     int
	}{
		{"nothing is refused", func(*http.Request, *wire.Message) int { return 0 }, true, true, 0},
		{"the server refuses both", func(_ *http.Request, m *wire.Message) int {
			if m.Method == "tools/list" {
				return http.StatusTeapot
			}
			return 0
		}, false, false, 0},
		{"mcpbridge mends it", func(r *http.Request, m *wire.Message) int {
			if m.Method == "tools/list" && mine(r) {
				return http.StatusTeapot
			}
			return 0
		}, false, true, 0},
		{"mcpbridge alone is refused", func(r *http.Request, m *wire.Message) int {
			if m.Method == "tools/list" && !mine(r) {
				return http.StatusTeapot
			}
			return 0
		}, true, false, exitFailure},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := httptest.NewServer(strict{tt.refuse})
			defer srv.Close()
			by, got := probeAs(t, nil, "vscode", srv.URL)
			r := by["vscode"]
			if r.Directly.Connects != tt.directly || r.Bridged.Connects != tt.bridged || got.code != tt.code || r.Worse != (tt.code != 0) {
				t.Errorf("directly %s, through mcpbridge %s, worse %v, code %d, want %v, %v, %d", r.Directly.String(), r.Bridged.String(), r.Worse, got.code, tt.directly, tt.bridged, tt.code)
			}
			if refused := r.Directly.Refused; !tt.directly && (refused.Message != "tools/list" || refused.Status != http.StatusTeapot) {
				t.Errorf("refused %+v, want tools/list and its status", refused)
			}
			if text := runCommand(t.Context(), nil, "probe", "--as", "vscode", srv.URL).out; strings.Contains(text, "\x1b") || !strings.Contains(text, "through mcpbridge") {
				t.Errorf("printed %q, want two lines without what steers a terminal", text)
			}
		})
	}
}
