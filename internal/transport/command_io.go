package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/redact"
)

const loggedNoise = 256 // how much of a skipped line is logged

// Write sends one message on a line of its own; see [Conn]. It waits until the child reads, or
// the end of the connection.
func (c *Command) Write(msg []byte) error { return c.WriteUntil(context.Background(), msg) }

// WriteUntil is [WriteUntil] for a child. Where the system can't interrupt a write, as on
// Windows, a message that has begun to wait for the child can't be withdrawn.
func (c *Command) WriteUntil(ctx context.Context, msg []byte) error {
	line := oneLine(msg)
	if !looksLikeMessage(line) {
		return fmt.Errorf("writing to server %s: not a JSON object", c.name)
	}
	return c.out.write(ctx, line)
}

// gone returns the error of a Write to a child that has ended.
func (c *Command) gone() error {
	if c.exitErr != nil {
		return c.exitErr
	}
	return fmt.Errorf("writing to server %s: it has ended", c.name)
}

// message returns the message on a line, if the line is one. A last line without LF must
// be complete JSON.
func (c *Command) message(line []byte, partial bool) ([]byte, bool) {
	msg := bytes.TrimSpace(line)
	if len(msg) == 0 {
		return nil, false
	}
	if !looksLikeMessage(msg) || partial && !json.Valid(msg) {
		c.skip(msg)
		c.early++
		c.tellNoise()
		return nil, false
	}
	if !c.speaks {
		c.speaks = true
		c.stray.spoke()
	}
	c.tellNoise()
	return msg, true
}

// tellNoise tells of skipped lines, once a message has shown that the child is a server.
func (c *Command) tellNoise() {
	for ; c.speaks && c.early > 0; c.early-- {
		c.opts.Quirks.Met(quirks.StdoutNoise, "")
	}
}

// skip logs a line that is not a message.
func (c *Command) skip(line []byte) {
	isFirst := c.noise.Load() == nil
	level := c.stderrTail.level()
	if !isFirst && !c.skips.allows(level) {
		return
	}
	text := redact.Cut(string(line[:min(len(line), 2*loggedNoise)]), loggedNoise)
	if isFirst {
		c.noise.Store(&text)
		c.stray.begin(text, len(line), c.speaks)
		return
	}
	c.log.Log(context.Background(), level, MsgStray, StrayLine, text, "bytes", len(line))
}

// A drainer reads a child's output. After the end of the child its deadline is set: it still reads what
// was written, but does not wait for a descendant outside the process group that keeps the pipe open.
type drainer struct {
	f     *os.File
	until func() time.Time // when the wait for more ends
}

// Read implements [io.Reader]. Where it is known that there is more, the time may be over because this
// process did not run.
func (d drainer) Read(p []byte) (int, error) {
	n, err := d.f.Read(p)
	for waited := false; n == 0 && errors.Is(err, os.ErrDeadlineExceeded); waited = true {
		if left, _ := unread(d.f); waited && left == 0 {
			return 0, io.EOF
		}
		d.f.SetReadDeadline(d.until())
		n, err = d.f.Read(p)
	}
	return n, err
}

func drainUntil() time.Time { return time.Now().Add(drainIdle) }

// pipes are both ends of the three standard streams.
type pipes struct{ inR, inW, outR, outW, errR, errW *os.File }

// open opens all of them or none.
func (p *pipes) open() error {
	var errs [3]error
	p.inR, p.inW, errs[0] = os.Pipe()
	p.outR, p.outW, errs[1] = openOutput()
	p.errR, p.errW, errs[2] = os.Pipe()
	err := errors.Join(errs[:]...)
	if err != nil {
		closeAll(p.inR, p.inW, p.outR, p.outW, p.errR, p.errW)
	}
	return err
}

// closeAll closes files, and ignores nil ones.
func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close() // a nil *os.File returns os.ErrInvalid
	}
}
