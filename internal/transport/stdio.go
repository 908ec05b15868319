package transport

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// StdioOptions configure a Stdio. The zero values of optional fields are useful. Negative
// limits are errors.
type StdioOptions struct {
	// In and Out are os.Stdin and os.Stdout, or other files. Required. The Stdio owns
	// them.
	In, Out *os.File

	MaxMessage   int           // bytes of a message read; zero means DefaultMaxMessage
	WriteTimeout time.Duration // of one message; zero means DefaultWriteTimeout
}

// A Stdio is a Conn to the client that started this process, one message per line. It
// does not check that a line is a message.
//
// If the system can't interrupt a read of a file (a terminal, or any file on Windows),
// Close leaves a goroutine behind, which ends with the file or the process. A write to
// such a file that is not read blocks; other writes wait for it until their time-out.
//
// Spec: 2026-07-28, basic/transports/stdio.
type Stdio struct {
	in, out *os.File
	lines   *lineReader // owned by Read
	w       lineWriter

	closing chan struct{} // closed by Close
	once    sync.Once
}

// OpenStdio returns a conn over the standard streams of the process, or over two other
// files.
func OpenStdio(opts StdioOptions) (*Stdio, error) {
	if opts.In == nil || opts.Out == nil {
		return nil, errors.New("transport: OpenStdio: nil file")
	}
	if opts.MaxMessage < 0 || opts.WriteTimeout < 0 {
		return nil, errors.New("transport: OpenStdio: negative limit")
	}
	in, err := interruptible(opts.In)
	if err != nil {
		return nil, fmt.Errorf("opening standard input: %w", err)
	}
	out, err := interruptible(opts.Out)
	if err != nil {
		closeAll(in)
		return nil, fmt.Errorf("opening standard output: %w", err)
	}
	s := &Stdio{in: in, out: out, closing: make(chan struct{})}
	s.lines = &lineReader{src: s.source(), limit: cmp.Or(opts.MaxMessage, DefaultMaxMessage)}
	turn, timeout := make(chan struct{}, 1), cmp.Or(opts.WriteTimeout, DefaultWriteTimeout)
	lock := writeLock{turn: turn, timeout: timeout, doing: "writing to standard output", closing: s.closing}
	s.w = newLineWriter(lock, out)
	return s, nil
}

// source returns the reader of lines: the file, or a pump if its reads can't be
// interrupted.
func (s *Stdio) source() io.Reader {
	if s.in.SetReadDeadline(time.Time{}) == nil {
		return s.in
	}
	p := &pump{f: s.in, closing: s.closing, parts: make(chan part)}
	go p.run() // ends with its file, or at the first input after Close
	return p
}

// Read returns the next line that is not blank; see [Conn]. The last line may lack the
// LF.
func (s *Stdio) Read() ([]byte, error) {
	for {
		line, _, err := s.lines.next()
		switch tooLong := (*TooLongError)(nil); {
		case err == nil:
			if msg := bytes.TrimSpace(line); len(msg) > 0 {
				return msg, nil
			}
		case errors.As(err, &tooLong) || err == io.EOF:
			return nil, err
		case wake.Closed(s.closing):
			return nil, ErrClosed
		default:
			return nil, fmt.Errorf("reading from standard input: %w", err)
		}
	}
}

// Write sends one message on a line of its own; see [Conn]. If only a part of a message
// is written at the time-out, no other message can follow.
func (s *Stdio) Write(msg []byte) error { return s.w.write(context.Background(), oneLine(msg)) }

// Close closes the connection; see [Conn]. For the client, the output ends when the
// process ends.
func (s *Stdio) Close() error {
	s.once.Do(func() {
		close(s.closing)
		closeAll(s.in, s.out)
	})
	return nil
}

// A pump reads a file whose reads can't be interrupted in its own goroutine, and returns
// the bytes from Read.
type pump struct {
	f       *os.File
	closing <-chan struct{}
	parts   chan part

	rest part // received, but not yet read; owned by Read
}

type part struct {
	text []byte
	err  error
}

func (p *pump) run() {
	for {
		buf := make([]byte, copiedLine)
		n, err := p.f.Read(buf)
		select {
		case p.parts <- part{buf[:n], err}:
		case <-p.closing:
			return
		}
		if err != nil {
			return
		}
	}
}

// Read returns os.ErrClosed after closing is closed.
func (p *pump) Read(b []byte) (int, error) {
	if len(p.rest.text) == 0 && p.rest.err == nil {
		select {
		case p.rest = <-p.parts:
		case <-p.closing:
			return 0, os.ErrClosed
		}
	}
	n := copy(b, p.rest.text)
	if p.rest.text = p.rest.text[n:]; len(p.rest.text) > 0 {
		return n, nil
	}
	return n, p.rest.err
}
