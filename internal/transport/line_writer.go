package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const gatherMessage = 64 << 10 // messages up to this size go out in one write with their LF

// A lineWriter writes messages to a file, one at a time and one per line. With a time-out, a
// write that takes longer is an error, and after a part of a message no other can follow.
// Without one, a write ends with its context, and what is left of the message is written in
// the background.
type lineWriter struct {
	writeLock
	f *os.File
	// abrupt says that the system can't interrupt a write of f.
	abrupt bool

	buf    []byte // owned by the holder of the token
	broken error  // why no more can be written; owned likewise
}

func newLineWriter(lock writeLock, f *os.File) lineWriter {
	return lineWriter{writeLock: lock, f: f, abrupt: f.SetWriteDeadline(time.Time{}) != nil}
}

// write writes one line with its LF; see [WriteUntil].
func (w *lineWriter) write(ctx context.Context, line []byte) error {
	if err := w.acquire(ctx); err != nil {
		return err
	}
	switch {
	case w.broken != nil:
		defer w.release()
		return w.broken
	case w.timeout > 0 || ctx.Done() == nil:
		defer w.release()
		return w.writeLine(line)
	case w.abrupt:
		line = bytes.Clone(line)
		return w.aside(ctx, func() error { return w.writeLine(line) })
	}
	return w.writeUntil(ctx, line)
}

// writeLine writes a line within the time-out, if there is one. The caller holds the token.
func (w *lineWriter) writeLine(line []byte) error {
	if w.timeout > 0 && !w.abrupt {
		_ = w.f.SetWriteDeadline(time.Now().Add(w.timeout)) // if the file is closed, the write says so
	}
	n, err := w.put(line)
	return w.result(n, err)
}

// writeUntil writes a line until ctx ends. Then it withdraws the line, or leaves the rest of it
// to another goroutine, which ends with the line or the file. The caller holds the token, which
// is released when the line has ended.
func (w *lineWriter) writeUntil(ctx context.Context, line []byte) error {
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		_ = w.f.SetWriteDeadline(time.Unix(1, 0))
	})
	n, err := w.put(line)
	if !stop() {
		<-interrupted
		_ = w.f.SetWriteDeadline(time.Time{})
	}
	switch {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		defer w.release()
		return w.result(n, err)
	case n == 0:
		defer w.release()
		return w.unwritten(ctx)
	}
	rest := append(append(make([]byte, 0, len(line)+1-n), line[n:]...), '\n')
	return w.aside(ctx, func() error { // join waits for it
		_, err := w.f.Write(rest)
		return w.result(n, err) // the next write returns it, too
	})
}

// put writes a line and its LF, and returns how many bytes were written. The caller holds the
// token.
func (w *lineWriter) put(line []byte) (n int, err error) {
	if len(line) < gatherMessage {
		w.buf = append(append(w.buf[:0], line...), '\n')
		return w.f.Write(w.buf)
	}
	if n, err = w.f.Write(line); err == nil {
		_, err = w.f.Write([]byte{'\n'})
	}
	return n, err
}

// join returns when nobody writes, after the file was closed, and lets nobody write again. It
// does not wait for a write that can't be interrupted.
func (w *lineWriter) join() {
	if !w.abrupt {
		w.turn <- struct{}{}
	}
}

// result returns the error of a write that ended after n bytes with err. Another message can
// follow if this one was written whole, or nothing of it within the time-out.
func (w *lineWriter) result(n int, err error) error {
	switch {
	case err == nil:
		return nil
	case wake.Closed(w.closing):
		return ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = w.late()
		if n == 0 {
			return err
		}
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
