package output

import (
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// The line of a request, by how many secrets are known.
func BenchmarkLog(b *testing.B) {
	for _, n := range []int{0, 1, 100} {
		secrets := redact.New()
		for i := range n {
			secrets.Learn(fmt.Sprintf("%032x", i*7919))
		}
		log := NewLog(io.Discard, config.Log{Level: "info", Format: "json"}, secrets).With("upstream", "files")
		b.Run(fmt.Sprintf("secrets=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				log.LogAttrs(b.Context(), slog.LevelInfo, "request", slog.String("method", "tools/call"), slog.String("era", "legacy"),
					slog.Duration("took", time.Millisecond), slog.String("outcome", "ok"))
			}
		})
	}
}
