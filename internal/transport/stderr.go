package transport

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	stderrLine = 4 << 10 // longer lines are logged in pieces
	keptWords  = 5       // lines
	keptWord   = 512     // bytes of a line
)

// lastWords reads a child's standard error line by line: for the log, and the
// last few for whoever asks why the child ended.
type lastWords struct {
	done  chan struct{} // closed when drain has returned
	quiet atomic.Bool   // lines are logged at debug level

	mu    sync.Mutex // guards lines
	lines []string   // at most keptWords, oldest first
}

// drain reads until the end of r, which nobody else reads. A child whose
// standard error nobody reads would block.
func (w *lastWords) drain(r io.Reader, log *slog.Logger) {
	defer close(w.done)
	for br := bufio.NewReaderSize(r, stderrLine); ; {
		piece, _, err := br.ReadLine()
		if line := strings.TrimRight(string(piece), " \t\r"); line != "" {
			log.Log(context.Background(), w.level(), "server wrote to standard error", "line", line)
			w.add(line)
		}
		if err != nil {
			return
		}
	}
}

func (w *lastWords) level() slog.Level {
	if w.quiet.Load() {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

func (w *lastWords) add(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lines) == keptWords {
		w.lines = slices.Delete(w.lines, 0, 1)
	}
	w.lines = append(w.lines, line[:min(len(line), keptWord)])
}

func (w *lastWords) last() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lines)
}

// finish waits for drain to read the rest of f, and closes it. A descendant
// that keeps it open is not waited for.
func (w *lastWords) finish(f *os.File) {
	timer := time.NewTimer(leftoverGrace)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-timer.C:
	}
	f.Close()
	<-w.done
}
