package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// warnEvery is how often the log says at most that traces can't be exported.
const warnEvery = time.Minute

// exports is an exporter whose failures are counted, and logged now and then.
type exports struct {
	to      sdktrace.SpanExporter
	log     *slog.Logger
	secrets interface{ String(string) string }
	count   func(spans int)

	mu   sync.Mutex // guards the fields below
	lost int        // spans, since the last line
	last time.Time  // of the last line
}

func newExports(to sdktrace.SpanExporter, o Options) *exports {
	e := &exports{to: to, log: o.Logger, secrets: o.Secrets, count: o.Lost}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if e.count == nil {
		e.count = func(int) {}
	}
	return e
}

// ExportSpans implements [sdktrace.SpanExporter].
func (e *exports) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.to.ExportSpans(ctx, spans)
	if err != nil {
		e.count(len(spans))
		e.report(len(spans), err)
	}
	return nil // the log says so already
}

// report writes a line, unless there was one a moment ago.
func (e *exports) report(spans int, err error) {
	e.mu.Lock()
	e.lost += spans
	lost, due := e.lost, time.Since(e.last) >= warnEvery
	if due {
		e.lost, e.last = 0, time.Now()
	}
	e.mu.Unlock()
	if due {
		e.log.Warn("traces were not exported; see OTEL_EXPORTER_OTLP_ENDPOINT", "spans", lost, "err", e.secrets.String(err.Error()))
	}
}

// warn logs what the SDK has to say.
func (e *exports) warn(err error) { e.report(0, err) }

// Shutdown implements [sdktrace.SpanExporter].
func (e *exports) Shutdown(ctx context.Context) error { return e.to.Shutdown(ctx) }
