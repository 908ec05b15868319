package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	gatherMessage = 64 << 10 // messages up to this size go out in one write with their LF
	loggedNoise   = 256      // how much of a skipped line is logged
)

// Write sends one message on a line of its own; see [Conn]. Where the child has
// taken part of a message when the time is up, no other can follow, and the
// child is killed: [Command.Done] tells.
func (c *Command) Write(msg []byte) error {
	line := oneLine(msg)
	if !looksLikeMessage(line) {
		return fmt.Errorf("writing to server %s: not a JSON object", c.name)
	}
	if err := c.acquireWrite(); err != nil {
		return err
	}
	defer func() { <-c.writing }()
	if c.broken != nil {
		return c.broken
	}
	return c.writeLine(line)
}

// acquireWrite takes the token, unless the connection is over.
func (c *Command) acquireWrite() error {
	switch {
	case isClosed(c.closing):
		return ErrClosed
	case isClosed(c.done):
		return c.gone()
	}
	timer := time.NewTimer(c.opts.WriteTimeout)
	defer timer.Stop()
	select {
	case c.writing <- struct{}{}:
		return nil
	case <-timer.C:
		return fmt.Errorf("writing to server %s: %w after %v", c.name, ErrWriteTimeout, c.opts.WriteTimeout)
	case <-c.closing:
		return ErrClosed
	case <-c.done:
		return c.gone()
	}
}

// writeLine writes a line and its LF within the write time-out. The caller
// holds the token.
func (c *Command) writeLine(line []byte) error {
	disarm := c.armWrite()
	defer disarm()
	var n int
	var err error
	if len(line) < gatherMessage {
		c.wbuf = append(append(c.wbuf[:0], line...), '\n')
		n, err = c.stdin.Write(c.wbuf)
	} else if n, err = c.stdin.Write(line); err == nil {
		_, err = c.stdin.Write([]byte{'\n'})
	}
	if err == nil {
		return nil
	}
	return c.writeError(n, err)
}

// armWrite bounds the writes until disarm is called. Where a pipe has no
// deadlines the child is killed, which ends the write as well.
func (c *Command) armWrite() (disarm func()) {
	if c.stdin.SetWriteDeadline(time.Now().Add(c.opts.WriteTimeout)) == nil {
		return func() {}
	}
	timer := time.AfterFunc(c.opts.WriteTimeout, func() { killGroup(c.cmd.Process.Pid) })
	return func() { timer.Stop() }
}

// writeError says why a write failed of which n bytes went out.
func (c *Command) writeError(n int, err error) error {
	switch {
	case isClosed(c.closing):
		return ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("writing to server %s: %w after %v", c.name, ErrWriteTimeout, c.opts.WriteTimeout)
		if n == 0 {
			return err
		}
		killGroup(c.cmd.Process.Pid)
	default:
		err = fmt.Errorf("writing to server %s: %v", c.name, err)
	}
	c.broken = err
	return err
}

// gone is the error of a Write to a child that has ended.
func (c *Command) gone() error {
	if c.exitErr != nil {
		return c.exitErr
	}
	return fmt.Errorf("writing to server %s: it has ended", c.name)
}

// message returns the message on a line, if it is one. A line that the end of
// the stream cut short must be whole all the same.
func (c *Command) message(line []byte, partial bool) ([]byte, bool) {
	msg := bytes.TrimSpace(line)
	if len(msg) == 0 {
		return nil, false
	}
	if !looksLikeMessage(msg) || partial && !json.Valid(msg) {
		c.log.Info("skipping output that is not a message",
			"line", string(msg[:min(len(msg), loggedNoise)]), "bytes", len(msg))
		return nil, false
	}
	return msg, true
}

// drainer reads a child's output. Once the child has ended its deadline is set:
// what was written is still read, but a descendant that escaped the process
// group and keeps the pipe open is not waited for.
type drainer struct{ f *os.File }

func (d drainer) Read(p []byte) (int, error) {
	n, err := d.f.Read(p)
	if !errors.Is(err, os.ErrDeadlineExceeded) || n > 0 {
		return n, err
	}
	d.f.SetReadDeadline(time.Now().Add(drainIdle))
	n, err = d.f.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) && n == 0 {
		return 0, io.EOF
	}
	return n, err
}

// pipes are the three standard streams, both ends each.
type pipes struct{ inR, inW, outR, outW, errR, errW *os.File }

// open opens all of them or none.
func (p *pipes) open() error {
	var errs [3]error
	p.inR, p.inW, errs[0] = os.Pipe()
	p.outR, p.outW, errs[1] = os.Pipe()
	p.errR, p.errW, errs[2] = os.Pipe()
	err := errors.Join(errs[:]...)
	if err != nil {
		closeAll(p.inR, p.inW, p.outR, p.outW, p.errR, p.errW)
	}
	return err
}

// closeAll closes files; those that are nil it passes over.
func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close() // a nil *os.File returns os.ErrInvalid
	}
}
