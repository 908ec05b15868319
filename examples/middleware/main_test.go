package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

// Each response has an id of its own, and the program's even if the request has one.
func TestRequestIDs(t *testing.T) {
	p := program.Start(t)
	seen := make(map[string]bool)
	for range 3 {
		got := p.Modern("today", http.Header{"X-Request-Id": {"mine"}})
		if got.Status != http.StatusOK || got.Text != "buy milk" {
			t.Errorf("call = %d %s, want 200 buy milk", got.Status, got.Body)
		}
		id := got.Header.Get("X-Request-Id")
		if len(id) < 16 || seen[id] {
			t.Errorf("X-Request-Id = %q, want an id that no other response has", id)
		}
		seen[id] = true
	}
}

// The third request of a minute is refused before the gateway sees it.
func TestTooManyRequests(t *testing.T) {
	p := program.Start(t, "-most", "2")
	session := p.Open(nil) // initialize and notifications/initialized
	got := p.Legacy(session, "today", nil)
	if got.Status != http.StatusTooManyRequests || got.Header.Get("Retry-After") == "" || got.Header.Get("X-Request-Id") == "" {
		t.Errorf("third request = %d %v, want 429 with Retry-After and X-Request-Id", got.Status, got.Header)
	}
}

func TestLimiterWindows(t *testing.T) {
	l := &limiter{most: 1, window: time.Minute}
	began := time.Unix(1000, 0)
	for _, tt := range []struct {
		name, address string
		after         time.Duration
		want          time.Duration
	}{
		{"first", "192.0.2.1", 0, 0},
		{"second of the same address", "192.0.2.1", 20 * time.Second, 40 * time.Second},
		{"another address", "192.0.2.2", 30 * time.Second, 0},
		{"in the next window", "192.0.2.1", time.Minute, 0},
	} {
		if got := l.wait(tt.address, began.Add(tt.after)); got != tt.want {
			t.Errorf("%s: wait(%s, %v) = %v, want %v", tt.name, tt.address, tt.after, got, tt.want)
		}
	}
}
