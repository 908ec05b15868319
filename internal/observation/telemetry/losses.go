package telemetry

import (
	"log/slog"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// warnEvery is how often the log says at most that traces can't be exported.
const warnEvery = time.Minute

// losses counts the spans that were not exported, and logs why now and then.
type losses struct {
	log     *slog.Logger
	secrets *redact.Redactor
	count   func(spans int)
	since   *lossesSince
}

// lossesSince is what was lost since the last line.
type lossesSince struct {
	mu    sync.Mutex // guards the fields below
	spans int
	last  time.Time // of the last line
}

func newLosses(o Options) losses {
	l := losses{log: o.Logger, secrets: o.Secrets, count: o.Lost, since: new(lossesSince)}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	if l.count == nil {
		l.count = func(int) {}
	}
	return l
}

// report counts spans, and writes a line unless there was one a moment ago.
func (l *losses) report(spans int, err error) {
	if spans > 0 {
		l.count(spans)
	}
	if n, due := l.since.add(spans); due {
		l.log.Warn("traces were not exported; see OTEL_EXPORTER_OTLP_ENDPOINT", "spans", n, "err", l.secrets.String(err.Error()))
	}
}

func (s *lossesSince) add(spans int) (n int, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spans += spans
	if time.Since(s.last) < warnEvery {
		return 0, false
	}
	n, s.spans, s.last = s.spans, 0, time.Now()
	return n, true
}
