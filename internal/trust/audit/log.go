package audit

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	// DefaultMaxPending limits the lines that wait to be written, in bytes.
	DefaultMaxPending = 8 << 20
	// flushTime is how long a line waits, so that several are written together.
	flushTime = 200 * time.Millisecond
	// complainTime is the minimum time between two log messages about lost lines.
	complainTime = 10 * time.Second
)

// Stdout is the path of standard output.
const Stdout = "stdout"

// Options configure a Log.
type Options struct {
	// Path is a file, which is created with mode 0600 and appended to, or [Stdout].
	// Required.
	Path string
	// MaxPending limits the lines that wait to be written, in bytes. Zero means
	// DefaultMaxPending.
	MaxPending int
	Logger     *slog.Logger // nil discards
	Metrics    mcp.Metrics  // nil counts nothing
}

// A Log is an open audit log. Its methods are safe for concurrent use. A nil *Log writes
// nothing.
type Log struct {
	opts Options
	due  wake.Signal   // there are lines, or the Log is closed
	done chan struct{} // closed when the writer has returned
	last error         // the writer's last error; read only after done is closed

	// mu guards the fields below. It is held while a line is encoded, but not while it is
	// written.
	mu      sync.Mutex
	pending []byte
	lost    int // lines lost since the last log message
	closed  bool
}

// Open opens the audit log, and starts its writer, which Close stops.
func Open(o Options) (*Log, error) {
	o.MaxPending = cmp.Or(o.MaxPending, DefaultMaxPending)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = mcp.NoMetrics{}
	}
	var out target = stdout{os.Stdout}
	if o.Path != Stdout {
		f, err := openFile(o.Path)
		if err != nil {
			return nil, fmt.Errorf("opening the audit log: %w", err)
		}
		out = f
	}
	l := &Log{opts: o, due: wake.NewSignal(), done: make(chan struct{})}
	w := &writer{log: l, out: out}
	go w.run() // ends with Close
	return l, nil
}

// IsStdout reports whether the Log writes to standard output.
func (l *Log) IsStdout() bool { return l != nil && l.opts.Path == Stdout }

// Write adds a line. It never waits for the file: if too much is pending, the line is lost,
// which is counted and logged.
func (l *Log) Write(r *Record) {
	if l == nil {
		return
	}
	l.mu.Lock()
	full := l.closed || len(l.pending) >= l.opts.MaxPending
	if full {
		l.lost++
	} else {
		l.pending = r.append(l.pending)
	}
	l.mu.Unlock()
	if full {
		l.opts.Metrics.Limit(r.Server, "audit")
	}
	l.due.Send()
}

// Close writes the pending lines, and closes the file. It returns the last error of
// writing.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	l.closed = true // it may be closed already
	l.mu.Unlock()
	l.due.Send()
	<-l.done
	return l.last
}

// take returns the pending lines, in exchange for a written buffer.
func (l *Log) take(written []byte) (lines []byte, lost int, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines, l.pending = l.pending, written[:0]
	lost, l.lost = l.lost, 0
	return lines, lost, l.closed
}

// A target is where lines are written.
type target interface {
	io.Writer
	// refresh reopens a file that was renamed or removed, as log rotation does.
	refresh() error
	Close() error
}

// A writer writes the lines of a Log. It is used by one goroutine only.
type writer struct {
	log      *Log
	out      target
	lost     int       // lost lines that have not been logged
	told     time.Time // when lost lines were last logged
	failures error     // the last error
}

// run writes until the Log is closed.
func (w *writer) run() {
	defer close(w.log.done)
	var lines []byte
	for closed := false; !closed; {
		<-w.log.due
		var lost int
		lines, lost, closed = w.log.take(lines)
		w.write(lines, lost, closed)
		if !closed {
			time.Sleep(flushTime) // so that several lines are written together
		}
	}
	w.log.last = errors.Join(w.failures, w.out.Close())
}

func (w *writer) write(lines []byte, lost int, now bool) {
	w.lost += lost
	if len(lines) > 0 {
		if err := w.try(lines); err != nil {
			w.failures = err
			w.lost += count(lines)
		}
	}
	if w.lost == 0 || !now && time.Since(w.told) < complainTime {
		return
	}
	w.log.opts.Metrics.Limit("", "audit")
	w.log.opts.Logger.Error("audit log: lines were lost", "file", w.log.opts.Path, "lines", w.lost, "err", w.failures)
	w.lost, w.told = 0, time.Now()
}

// try writes lines once. It first reopens a file that was moved away.
func (w *writer) try(lines []byte) error {
	if err := w.out.refresh(); err != nil {
		return err
	}
	_, err := w.out.Write(lines)
	return err
}

func count(lines []byte) (n int) {
	for _, b := range lines {
		if b == '\n' {
			n++
		}
	}
	return n
}
