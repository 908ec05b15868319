package reload

import (
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
)

// Each key is one that applies at once, or is reported to need a restart.
func TestNeedsRestart(t *testing.T) {
	base := &config.Config{}
	if got := NeedsRestart(base, base); got != nil {
		t.Errorf("keys of the same = %v", got)
	}
	other := &config.Config{Listen: "a", Admin: "b", AdminToken: "c", Drain: 1, AllowedHosts: []string{"d"}}
	other.TLS.Cert, other.Log.Level, other.Log.Format, other.Log.Access, other.Limits.NewConnections, other.Limits.MetricTools, other.Limits.Body = "e", "f", "g", "text", 7, 9, 8
	if got, want := strings.Join(NeedsRestart(base, other), " "), "listen admin admin_token tls log.format log.access limits.new_connections limits.metric_tools"; got != want {
		t.Errorf("keys = %s, want %s", got, want)
	}
}
