package output

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/linebuffer"
	"github.com/mcpbridge/mcpbridge/internal/redact"
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
			log := NewLog(&out, tt.c, nil)
			log.Debug("unseen")
			log.Info("seen", "took", 1500*time.Millisecond)
			if got := out.String(); !strings.Contains(got, tt.want) || tt.want == "" && got != "" || strings.Contains(got, "unseen") {
				t.Errorf("logged %q, want %q", got, tt.want)
			}
		})
	}
}

// Lines in a file wait for a moment, but for errors, and none is lost at the end.
func TestLogOfAFileIsGathered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	read := func() string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	log, done := NewGatheredLog(slog.LevelInfo, f, config.Log{Level: "info", Format: "auto"}, redact.New())
	begin := time.Now()
	log.Info("one")
	if text := read(); text != "" && time.Since(begin) < linebuffer.Delay {
		t.Errorf("a line did not wait: %q", text)
	}
	log.Error("two")
	if text := read(); strings.Count(text, "\n") != 2 || !strings.HasPrefix(text, `{"time":`) {
		t.Errorf("after an error the file holds %q, want two lines of JSON", text)
	}
	log.Info("three")
	done()
	log.Info("four")
	if text := read(); strings.Count(text, "\n") != 4 {
		t.Errorf("after the end the file holds %q, want four lines", text)
	}
}
