package client

import (
	"context"
	"io"
	"log/slog"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// StrayLog returns a log for a command that asks a server once: of all that is logged, it says
// only that a server writes what is no message to its standard output. hide hides secrets.
func StrayLog(w io.Writer, hide func(string) string) *slog.Logger {
	return slog.New(&strayHandler{w: w, hide: hide})
}

// A strayHandler implements [slog.Handler].
type strayHandler struct {
	w      io.Writer
	hide   func(string) string // hides secrets
	server string
}

// Enabled implements [slog.Handler].
func (h *strayHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}

// Handle implements [slog.Handler].
func (h *strayHandler) Handle(_ context.Context, r slog.Record) error {
	var line string
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == transport.StrayLine {
			line = h.hide(a.Value.String())
		}
		return true
	})
	switch r.Message {
	case transport.MsgStray:
		_, err := output.Printf(h.w, "mcpbridge: %s wrote %q to its standard output, where only messages belong; the line is skipped\n", h.server, line)
		return err
	case transport.MsgMute:
		_, err := output.Printf(h.w, "mcpbridge: %s has written text, such as %q, but no message for 10 s: does it speak MCP on its standard output?\n", h.server, line)
		return err
	}
	return nil
}

// WithAttrs implements [slog.Handler].
func (h *strayHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	for _, a := range attrs {
		if a.Key == "upstream" {
			with.server = a.Value.String()
		}
	}
	return &with
}

// WithGroup implements [slog.Handler].
func (h *strayHandler) WithGroup(string) slog.Handler { return h }
