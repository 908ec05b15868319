package admin

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The page reaches an endpoint by the messages of a client alone: JSON, an event stream, or the end
// of a session; what forms of other pages can send gets nothing, as it gets nothing of /api/call.
func TestHardeningTry(t *testing.T) {
	h, g := handler(t, nil)
	for _, tt := range []struct {
		method  string
		headers []string
		status  int
	}{
		{"POST", nil, 200},
		{"GET", []string{"Accept", "text/event-stream"}, 200},
		{"DELETE", nil, 200},
		{"POST", []string{"Content-Type", "text/plain"}, 415},
		{"GET", nil, 406},
		{"GET", []string{"Accept", "text/event-stream", "Upgrade", "websocket"}, 406},
		{"PUT", nil, 405},
		{"POST", []string{"Origin", "https://elsewhere.example"}, 403},
	} {
		g.asked = nil
		r := httptest.NewRequest(tt.method, "/api/mcp/inside", strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(tt.headers); i += 2 {
			r.Header.Set(tt.headers[i], tt.headers[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.status || (len(g.asked) == 1) != (tt.status == 200) {
			t.Errorf("%s with %q = %d, passed on: %q; want %d", tt.method, tt.headers, w.Code, g.asked, tt.status)
		}
	}
}

// So many requests are passed on at a time, and no more.
func TestHardeningTriesAreBounded(t *testing.T) {
	h, g := handler(t, nil)
	entered, leave := make(chan struct{}), make(chan struct{})
	g.tried = func() {
		entered <- struct{}{}
		<-leave
	}
	done := make(chan struct{})
	for range maxTries {
		go func() { // ends when leave is closed
			ask(h, "POST", "/api/mcp/inside", "{}")
			done <- struct{}{}
		}()
		<-entered
	}
	if w := ask(h, "POST", "/api/mcp/inside", "{}"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "end one") {
		t.Errorf("one more = %d %s", w.Code, w.Body)
	}
	close(leave)
	for range maxTries {
		<-done
	}
	g.tried = nil
	if w := ask(h, "POST", "/api/mcp/inside", "{}"); w.Code != http.StatusOK {
		t.Errorf("after they have ended = %d %s", w.Code, w.Body)
	}
}
