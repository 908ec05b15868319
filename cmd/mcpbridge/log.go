package main

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/term"

	"github.com/mcpbridge/mcpbridge/internal/config"
)

// newLogger logs to w: text with colours for people at a terminal, JSON for
// whatever else reads.
func newLogger(w io.Writer, c config.Log) *slog.Logger {
	level := logLevel(c.Level)
	tty := isTerminal(w)
	if c.Format == "json" || c.Format == "auto" && !tty {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: inSeconds}))
	}
	return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: !tty}))
}

// inSeconds writes durations as what collectors expect; slog's own are bare
// nanoseconds.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}

// logLevel reads a level that the configuration has checked.
func logLevel(name string) slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(name)); err != nil {
		return slog.LevelInfo
	}
	return level
}

func isTerminal(w io.Writer) bool {
	if _, ok := w.(*screen); ok {
		return true
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
