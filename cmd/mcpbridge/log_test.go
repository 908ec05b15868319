package main

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/config"
)

func TestLogger(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    config.Log
		want string
	}{
		{"auto is JSON where nobody looks, durations in seconds", config.Log{Level: "info", Format: "auto"}, `"level":"INFO","msg":"seen","took":1.5}`},
		{"json", config.Log{Level: "info", Format: "json"}, `"msg":"seen"`},
		{"text", config.Log{Level: "info", Format: "text"}, "INF seen took=1.5s"},
		{"level", config.Log{Level: "warn", Format: "json"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bridgetest.Log
			log := newLogger(&out, tt.c, nil)
			log.Debug("unseen")
			log.Info("seen", "took", 1500*time.Millisecond)
			if got := out.String(); !strings.Contains(got, tt.want) || tt.want == "" && got != "" || strings.Contains(got, "unseen") {
				t.Errorf("logged %q, want %q", got, tt.want)
			}
		})
	}
}
