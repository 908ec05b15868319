package transport

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const gatherMessage = 64 << 10 // messages up to this size go out in one write with their LF

// A lineWriter writes messages to a file, one at a time and one per line, with a
// time-out.
type lineWriter struct {
	writeLock
	f *os.File
	// cut ends the connection, and with it a write without a deadline. After a partial
	// write no other message can follow.
	cut func()

	buf    []byte // owned by the holder of the token
	broken error  // why no more can be written; owned likewise
}

// write writes one line within the time-out, with its LF.
func (w *lineWriter) write(line []byte) error {
	if err := w.acquire(); err != nil {
		return err
	}
	defer w.release()
	if w.broken != nil {
		return w.broken
	}
	return w.writeLine(line)
}

// writeLine writes a line and its LF. The caller holds the token.
func (w *lineWriter) writeLine(line []byte) error {
	disarm := w.arm()
	defer disarm()
	var n int
	var err error
	if len(line) < gatherMessage {
		w.buf = append(append(w.buf[:0], line...), '\n')
		n, err = w.f.Write(w.buf)
	} else if n, err = w.f.Write(line); err == nil {
		_, err = w.f.Write([]byte{'\n'})
	}
	if err == nil {
		return nil
	}
	return w.failed(n, err)
}

// arm bounds the writes until disarm is called.
func (w *lineWriter) arm() (disarm func()) {
	if w.f.SetWriteDeadline(time.Now().Add(w.timeout)) == nil {
		return func() {}
	}
	timer := time.AfterFunc(w.timeout, w.cut)
	return func() { timer.Stop() }
}

// failed returns the error of a write that failed after n bytes.
func (w *lineWriter) failed(n int, err error) error {
	switch {
	case wake.Closed(w.closing):
		return ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = w.late()
		if n == 0 {
			return err
		}
		w.cut()
	case w.endsSoon():
		return w.goneErr()
	default:
		err = fmt.Errorf("%s: %v", w.doing, err)
	}
	w.broken = err
	return err
}

// endsSoon reports whether the reading process has ended, which is known a moment after
// it has closed the file. How it ended is the better error.
func (w *lineWriter) endsSoon() bool {
	if w.gone == nil {
		return false
	}
	late := time.NewTimer(exitGrace)
	defer late.Stop()
	select {
	case <-w.gone:
		return true
	case <-w.closing:
	case <-late.C:
	}
	return false
}
