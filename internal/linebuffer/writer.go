package linebuffer

import (
	"io"
	"sync"
	"time"
)

const (
	// Delay is how long a line waits at most.
	Delay = 100 * time.Millisecond
	// most is how many bytes wait at most.
	most = 32 << 10
)

// A Writer gathers what is written to it, and writes it to another writer. Its owner calls
// Close. It is safe for concurrent use; lines keep their order.
type Writer struct {
	to io.Writer

	// mu guards the fields below, and is held while to is written to.
	mu     sync.Mutex
	lines  []byte
	timer  *time.Timer // flushes; nil before the first line
	closed bool
}

// New returns a Writer that writes to another one.
func New(to io.Writer) *Writer { return &Writer{to: to} }

// Write implements [io.Writer]. It keeps a copy of line. The error is that of a write
// which was due. After Close it writes at once.
func (w *Writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return w.to.Write(line)
	case len(w.lines) == 0:
		w.startLocked()
	}
	w.lines = append(w.lines, line...)
	if len(w.lines) < most {
		return len(line), nil
	}
	return len(line), w.flushLocked()
}

// Flush writes what waits.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flushLocked()
}

// Close writes what waits. Nothing waits after it.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	return w.flushLocked()
}

// startLocked starts the timer, which is stopped whenever nothing waits.
func (w *Writer) startLocked() {
	if w.timer == nil {
		w.timer = time.AfterFunc(Delay, w.flushLate)
		return
	}
	w.timer.Reset(Delay)
}

// flushLate runs on the timer's goroutine, which ends with the write.
func (w *Writer) flushLate() { _ = w.Flush() } // there is nobody to tell, as after a line of its own

func (w *Writer) flushLocked() error {
	if len(w.lines) == 0 {
		return nil
	}
	w.timer.Stop()
	_, err := w.to.Write(w.lines)
	if w.lines = w.lines[:0]; cap(w.lines) > 2*most {
		w.lines = nil // one line was huge
	}
	return err
}
