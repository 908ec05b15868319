package downstream

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// hits counts limits.
type hits struct {
	mcp.NoMetrics
	n map[string]int
}

func (h *hits) Limit(server, limit string) { h.n[server+" "+limit]++ }

// Each limit has a line of its own in ten seconds, however often it is hit (CWE-779).
func TestHardeningLimitLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counts, log := &hits{n: make(map[string]int)}, new(bytes.Buffer)
		l := NewLimitLog("docs", counts, slog.New(slog.NewTextHandler(log, nil)))
		for range 1000 {
			l.Hit("body", "too large", "limit", 7)
			l.Hit("depth", "too deep")
		}
		time.Sleep(11 * time.Second)
		l.Hit("body", "too large", "limit", 7)
		if counts.n["docs body"] != 1001 || counts.n["docs depth"] != 1000 {
			t.Errorf("counted %v, want 1001 and 1000 of docs", counts.n)
		}
		if n := strings.Count(log.String(), "\n"); n != 3 || strings.Count(log.String(), "too deep") != 1 || !strings.Contains(log.String(), `msg="too large" limit=7 times=1000`) {
			t.Errorf("%d lines, want one of each, and later one with the number:\n%s", n, log)
		}
	})
}
