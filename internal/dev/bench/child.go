//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// A child is the parent's end of a control.
type child struct {
	name string
	addr string // where it serves; empty if it does not
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
}

// start starts this binary in another role.
func (b *bench) start(role string, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args = append([]string{"-role", role, "-log", b.o.log}, args...)
	c := &child{name: role, cmd: exec.CommandContext(b.ctx, self, args...)}
	// The log of the gateway costs what it costs in production, and is not read.
	if c.cmd.Stderr, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
		return nil, err
	}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	if err := c.read(&c.addr); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// stop ends the child's input, which is its sign to end, and waits for it.
func (c *child) stop() error {
	_ = c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}

// ask runs a command of the child's and reads its answer into into, if that is
// not nil. One goroutine asks at a time.
func (c *child) ask(into any, format string, args ...any) error {
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		return err
	}
	return c.read(into)
}

func (c *child) read(into any) error {
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return fmt.Errorf("%s answered %q: %w", c.name, line, err)
	}
	if a.Err != "" {
		return fmt.Errorf("%s: %s", c.name, a.Err)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(a.Value, into)
}

// cpu returns the nanoseconds of CPU that c takes while f runs.
func (c *child) cpu(f func() error) (float64, error) {
	var before, after usage
	if err := c.ask(&before, "usage"); err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	err := c.ask(&after, "usage")
	return float64(after.CPU - before.CPU), err
}

// profiled writes a CPU profile of c over f, if profiles are wanted.
func (b *bench) profiled(c *child, name string, f func() error) error {
	if b.o.profile == "" {
		return f()
	}
	if err := c.ask(nil, "profile %s", filepath.Join(b.o.profile, name+".cpu.pprof")); err != nil {
		return err
	}
	return errors.Join(f(), c.ask(nil, "stop"))
}

// A crew is the children of one part; stop ends them, the last started first.
type crew []*child

// hire starts a child for the crew.
func (cr *crew) hire(b *bench, role string, args ...string) (*child, error) {
	c, err := b.start(role, args...)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", role, err)
	}
	*cr = append(*cr, c)
	return c, nil
}

func (cr *crew) stop(ctx context.Context) error {
	var errs []error
	for i := len(*cr) - 1; i >= 0; i-- {
		errs = append(errs, (*cr)[i].stop())
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // they were killed
	}
	return errors.Join(errs...)
}
