package transport

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/redact"
)

const (
	stderrBuffer = 16 << 10
	stderrLine   = 2 << 10 // longer lines are cut
	keptLines    = 32      // of which the error about the end quotes some
	keptWord     = 512     // bytes of a line
)

// A stderrTail reads a child's standard error line by line, logs the lines, and keeps the
// last ones for the error about its end.
type stderrTail struct {
	secrets *redact.Redactor // may be nil
	lines   *lineLimit       // of the log
	done    chan struct{}    // closed when drain has returned
	quiet   atomic.Bool      // lines are logged at debug level
	wrote   func(string)     // of the options; may be nil

	// mu guards the fields below.
	mu   sync.Mutex
	kept [keptLines][]byte // a ring buffer, which reuses its lines
	seen int               // number of lines
}

// drain reads r to its end, because a child blocks if its standard error is not read.
func (w *stderrTail) drain(r io.Reader) {
	defer close(w.done)
	defer w.lines.end()
	br := bufio.NewReaderSize(r, stderrBuffer)
	for continued := false; ; {
		piece, more, err := br.ReadLine()
		if !continued {
			w.take(piece)
		}
		continued = more
		if err != nil {
			return
		}
	}
}

// take logs and keeps a line, or the part of it that fits into the buffer.
func (w *stderrTail) take(line []byte) {
	line = bytes.TrimRight(line, " \t\r")
	if len(line) == 0 {
		return
	}
	w.keep(line[:min(len(line), stderrLine)])
	if w.wrote != nil {
		w.wrote(redact.Cut(string(line[:min(len(line), stderrLine+1)]), stderrLine))
	}
	level := w.level()
	if w.lines.allows(level) {
		text := redact.Cut(string(line[:min(len(line), stderrLine+1)]), stderrLine)
		w.lines.log.Log(context.Background(), level, "server wrote to standard error", "line", text)
	}
}

func (w *stderrTail) level() slog.Level {
	if w.quiet.Load() {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

func (w *stderrTail) keep(line []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.seen % keptLines
	w.kept[at] = append(w.kept[at][:0], line...)
	w.seen++
}

// telling returns the lines that tell most about the end, oldest first, with secrets hidden.
func (w *stderrTail) telling() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lines []string
	for i := max(0, w.seen-keptLines); i < w.seen; i++ {
		lines = append(lines, string(w.kept[i%keptLines]))
	}
	chosen := tellingLines(lines, w.seen <= keptLines)
	for i, line := range chosen {
		chosen[i] = w.secrets.String(redact.Cut(line, keptWord))
	}
	return chosen
}

// finish waits until drain has read the rest of f, and closes f. It does not wait for a
// descendant that keeps it open.
func (w *stderrTail) finish(f *os.File) {
	timer := time.NewTimer(leftoverGrace)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-timer.C:
	}
	f.Close()
	<-w.done
}
