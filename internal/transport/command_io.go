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

	"github.com/mcpbridge/mcpbridge/internal/redact"
)

const loggedNoise = 256 // how much of a skipped line is logged

// Write sends one message on a line of its own; see [Conn]. Where the child has
// taken part of a message when the time is up, no other can follow, and the
// child is killed: [Command.Done] tells.
func (c *Command) Write(msg []byte) error {
	line := oneLine(msg)
	if !looksLikeMessage(line) {
		return fmt.Errorf("writing to server %s: not a JSON object", c.name)
	}
	return c.out.write(line)
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
		c.skip(msg)
		return nil, false
	}
	return msg, true
}

// skip tells of a line that is not a message.
func (c *Command) skip(line []byte) {
	isFirst := c.noise.Load() == nil
	level := c.stderrTail.level()
	admitted := c.skips.admits(level)
	if !isFirst && !admitted {
		return
	}
	text := redact.Cut(string(line[:min(len(line), 2*loggedNoise)]), loggedNoise)
	c.noise.CompareAndSwap(nil, &text)
	if admitted {
		c.log.Log(context.Background(), level, "skipping output that is not a message", "line", text, "bytes", len(line))
	}
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
	p.outR, p.outW, errs[1] = openOutput()
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
