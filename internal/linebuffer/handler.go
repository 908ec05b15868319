package linebuffer

import (
	"context"
	"log/slog"
)

// A handler is one that writes to a Writer.
type handler struct {
	slog.Handler
	w *Writer
}

// Handler returns h, which writes to w, with errors written at once.
func (w *Writer) Handler(h slog.Handler) slog.Handler { return &handler{h, w} }

// Handle implements [slog.Handler].
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	err := h.Handler.Handle(ctx, r)
	if err == nil && r.Level >= slog.LevelError {
		err = h.w.Flush()
	}
	return err
}

// WithAttrs implements [slog.Handler].
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.Handler.WithAttrs(attrs), h.w}
}

// WithGroup implements [slog.Handler].
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.Handler.WithGroup(name), h.w}
}
