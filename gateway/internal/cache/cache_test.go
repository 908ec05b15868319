package cache

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

func TestM2L08KeptResultsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCache(t)
		k := key{scope: "peer/1", method: spec.MethodToolsList}
		_, f, _ := c.lookup("peer", k, false)
		c.store(f, publicTools())
		c.finish(f, true)
		for _, tt := range []struct {
			wait time.Duration
			want int64
		}{{0, 5000}, {2 * time.Second, 3000}, {2999500 * time.Microsecond, 0}} {
			time.Sleep(tt.wait)
			got, f, _ := c.lookup("peer", k, false)
			switch {
			case got == nil && tt.want != 0, got != nil && got.Cache != mcp.CacheHint{TTL: tt.want, Public: true}:
				t.Errorf("after %v more: %+v, want %d ms left", tt.wait, got, tt.want)
			case got == nil:
				c.finish(f, true)
			}
		}
		if got := c.Snapshot(); got != (Snapshot{}) || len(c.scopes) != 0 {
			t.Errorf("cache = %+v with %d scopes, want what expired gone", got, len(c.scopes))
		}
	})
}

func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		uri, at string
		want    bool
	}{
		{"file:///d", "file:///d", true},
		{"file:///d/x", "file:///d", true},
		{"file:///d/x", "file:///d/", true},
		{"file:///d?v", "file:///d", true},
		{"file:///d#f", "file:///d", true},
		{"file:///dx", "file:///d", false},
		{"file:///d", "file:///d/x", false},
		{"note:todo", "note", false},
		{"u:x", "u:y", false},
	} {
		if got := within(tt.uri, tt.at); got != tt.want {
			t.Errorf("within(%q, %q) = %v, want %v", tt.uri, tt.at, got, tt.want)
		}
	}
}
