package audit

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	// DefaultMaxPending limits the lines that wait to be written, in bytes.
	DefaultMaxPending = 8 << 20
	// flushTime is how long a line waits, so that several are written together.
	flushTime = 200 * time.Millisecond
	// retryTime is the pause after a write that failed.
	retryTime = time.Second
	// complainTime is the minimum time between two log messages about lines that can't be
	// written.
	complainTime = 10 * time.Second
)

// Stdout is the path of standard output.
const Stdout = "stdout"

// Options configure a Log.
type Options struct {
	// Path is a file, which is created with mode 0600 and appended to, or [Stdout].
	// Required.
	Path string
	// Required says that [Log.Refuses] is true while lines can't be written. Each write
	// then also waits until the lines are on the disk.
	Required bool
	// MaxPending limits the lines that wait to be written, in bytes. Zero means
	// DefaultMaxPending. A Log that is Required holds as much again, for requests that are in
	// flight when it is reached.
	MaxPending int
	Logger     *slog.Logger // nil discards
	Metrics    mcp.Metrics  // nil counts nothing
}

// A Log is an open audit log. Its methods are safe for concurrent use. A nil *Log writes
// nothing.
type Log struct {
	opts    Options
	prefix  string        // of ids
	due     wake.Signal   // there are lines, or the Log is closed
	closing chan struct{} // closed by Close
	once    sync.Once     // closes it
	done    chan struct{} // closed when the writer has returned
	last    error         // the writer's last error; read only after done is closed
	ids     atomic.Uint64
	failing atomic.Bool // lines could not be written last, or too many wait

	// mu guards the fields below. It is held while a line is encoded, but not while it is
	// written.
	mu       sync.Mutex
	pending  []byte
	lost     int // lines lost since the last log message
	closed   bool
	refusals refusals
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
	return start(o, out), nil
}

// start returns a Log that writes to out.
func start(o Options, out target) *Log {
	l := &Log{opts: o, prefix: rand.Text()[:6] + "-", due: wake.NewSignal(), closing: make(chan struct{}), done: make(chan struct{})}
	w := &writer{log: l, out: out}
	go w.run() // ends with Close
	return l
}

// IsStdout reports whether the Log writes to standard output.
func (l *Log) IsStdout() bool { return l != nil && l.opts.Path == Stdout }

// Failing reports whether lines can't be written at the moment.
func (l *Log) Failing() bool { return l != nil && l.failing.Load() }

// Refuses reports whether requests are to be refused, because the Log is required and lines
// can't be written: from the first write that fails, or too many lines that wait, until a
// write succeeds.
func (l *Log) Refuses() bool { return l.Failing() && l.opts.Required }

// AppendID appends a new id for a request that has none.
func (l *Log) AppendID(dst []byte) []byte {
	return strconv.AppendUint(append(dst, l.prefix...), l.ids.Add(1), 36)
}

// Write adds a line. It never waits for the file: if too much is pending, the line is lost,
// which is counted and logged.
func (l *Log) Write(r *Record) {
	if l == nil {
		return
	}
	l.mu.Lock()
	full := l.writeLocked(r)
	l.mu.Unlock()
	l.due.Send()
	if full {
		l.opts.Logger.Error("audit log: too many lines wait to be written", "file", l.opts.Path, "bytes", l.opts.MaxPending, "refusing", l.Refuses())
	}
}

// writeLocked adds a line. full says that too many lines wait from now on.
func (l *Log) writeLocked(r *Record) (full bool) {
	most := l.opts.MaxPending
	if l.opts.Required {
		most *= 2
	}
	if l.closed || len(l.pending) >= most {
		l.lost++
		return false
	}
	l.pending = r.append(l.pending)
	return len(l.pending) >= l.opts.MaxPending && l.fails(true)
}

// fails notes whether lines can be written, and reports whether that is new.
func (l *Log) fails(now bool) bool {
	if l.failing.Swap(now) == now {
		return false
	}
	l.opts.Metrics.AuditFailing(now)
	return true
}

// Close writes the pending lines, and closes the file. It returns the last error of
// writing.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.once.Do(func() {
		l.mu.Lock()
		l.settleLocked(time.Now(), true)
		l.closed = true
		l.mu.Unlock()
		close(l.closing)
		l.due.Send()
	})
	<-l.done
	return l.last
}

// take returns the pending lines, in exchange for a written buffer.
func (l *Log) take(written []byte) (lines []byte, lost int, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settleLocked(time.Now(), false)
	lines, l.pending = l.pending, written[:0]
	lost, l.lost = l.lost, 0
	return lines, lost, l.closed
}

// restore puts lines back that could not be written, before those that came since.
func (l *Log) restore(lines []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(lines, l.pending...)
}

// A target is where lines are written.
type target interface {
	io.Writer
	// refresh reopens a file that was renamed or removed, as log rotation does. fresh says
	// that the file has nothing of what was written before.
	refresh() (fresh bool, err error)
	// Sync waits until all that was written is on the disk.
	Sync() error
	Close() error
}

// A writer writes the lines of a Log. It is used by one goroutine only.
type writer struct {
	log      *Log
	out      target
	torn     int       // bytes of the first pending line that were written already
	lost     int       // lost lines that have not been logged
	told     time.Time // when the last message was logged about lines that can't be written
	failures error     // the last error; nil after a success
}

// run writes until the Log is closed.
func (w *writer) run() {
	defer close(w.log.done)
	var written []byte
	for closed := false; !closed; {
		<-w.log.due
		var lines []byte
		var lost int
		lines, lost, closed = w.log.take(written)
		written = w.write(lines, lost, closed)
		pause := flushTime // so that several lines are written together
		if w.failures != nil {
			pause = retryTime
			w.log.due.Send()
		}
		select {
		case <-time.After(pause):
		case <-w.log.closing:
		}
	}
	w.log.last = errors.Join(w.failures, w.out.Close())
	w.log.fails(false) // there is nothing left to write
}

// write writes lines, of which it keeps those that can't be written. It returns a buffer that
// is not used any more. last says that there is no other attempt.
func (w *writer) write(lines []byte, lost int, last bool) (written []byte) {
	w.lose(lost)
	before, written := w.failures, lines
	if len(lines) > 0 {
		var rest []byte
		rest, w.failures = w.try(lines)
		switch {
		case w.failures != nil && last:
			w.lose(count(rest))
		case w.failures != nil:
			w.log.restore(rest)
			written = nil
		}
	}
	w.report(before, len(lines) > 0, last)
	return written
}

func (w *writer) lose(lines int) {
	if lines > 0 {
		w.lost += lines
		w.log.opts.Metrics.AuditLost(lines)
	}
}

// report says what has changed. tried says that there was something to write.
func (w *writer) report(before error, tried, last bool) {
	o := &w.log.opts
	if tried {
		w.log.fails(w.failures != nil)
	}
	if w.failures == nil && before != nil {
		o.Logger.Info("audit log: lines are written again", "file", o.Path)
	}
	if w.lost == 0 && w.failures == nil || !last && time.Since(w.told) < complainTime {
		return
	}
	msg := "audit log: lines were lost"
	if w.lost == 0 {
		msg = "audit log: lines can't be written; they are kept and tried again"
	}
	o.Logger.Error(msg, "file", o.Path, "lines", w.lost, "refusing", w.log.Refuses(), "err", w.failures)
	w.lost, w.told = 0, time.Now()
}

// try writes lines once. It first reopens a file that was moved away. rest are the lines that
// were not written as a whole.
func (w *writer) try(lines []byte) (rest []byte, err error) {
	fresh, err := w.out.refresh()
	if err != nil {
		return lines, err
	}
	if fresh {
		w.torn = 0 // its beginning is elsewhere: the line is written anew
	}
	n, err := w.out.Write(lines[w.torn:])
	if err == nil && w.log.opts.Required {
		if err = w.out.Sync(); err != nil {
			w.torn = 0
			return lines, err // what of it is on the disk nobody knows: some lines may be there twice
		}
	}
	if err == nil {
		w.torn = 0
		return nil, nil
	}
	n += w.torn
	whole := lastLine(lines[:n])
	w.torn = n - whole
	return lines[whole:], err
}

// lastLine returns where the last line of text begins, which may be unfinished.
func lastLine(text []byte) int {
	n := len(text)
	for n > 0 && text[n-1] != '\n' {
		n--
	}
	return n
}

func count(lines []byte) (n int) {
	for _, b := range lines {
		if b == '\n' {
			n++
		}
	}
	return n
}
