package transport

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		var s WarnLimiter
		for range 1000 {
			s.Warn(log, "odd", "error", "x")
		}
		time.Sleep(warnEvery)
		s.Warn(log, "odd", "error", "y")
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 2 || !strings.HasSuffix(lines[0], "msg=odd error=x") || !strings.HasSuffix(lines[1], "msg=odd error=y times=1000") {
			t.Errorf("logged %q, want the first, and then how often", lines)
		}
	})
}
