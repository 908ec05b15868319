package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/redact"
)

const (
	// DefaultCloseGrace is how long a child may take over each step of its end.
	DefaultCloseGrace = 2 * time.Second

	// leftoverGrace is how long what a child left behind in its process group,
	// and its standard error, may outlive it.
	leftoverGrace = 500 * time.Millisecond

	// drainIdle is how long output is awaited that was written before a
	// child's end but is held up by a descendant outside the process group.
	drainIdle = 100 * time.Millisecond
)

// CommandOptions say which child to start and how to treat it. Argv is
// required; the zero value of the rest is useful. Negative durations and sizes
// are errors.
type CommandOptions struct {
	Argv []string // the program, looked up in PATH, and its arguments
	Dir  string   // working directory; empty means ours

	// Environ is the environment to inherit from, as os.Environ gives it. Only
	// what programs need to run is taken (PATH, HOME, USER and their like): a
	// server has no business with the secrets of the process that starts it.
	Environ []string
	// Env is added, and wins.
	Env map[string]string

	Name   string       // the server's name, for the log and for errors; Argv[0] if empty
	Logger *slog.Logger // hears standard error and what is skipped, within a bound; nil means nobody

	// Secrets are hidden in what errors repeat of the child's output; nil means none.
	Secrets *redact.Redactor

	MaxMessage   int           // bytes of a message read; zero means DefaultMaxMessage
	WriteTimeout time.Duration // of one message; zero means DefaultWriteTimeout

	// CloseGrace is how long Close waits for the child to end after closing its
	// standard input, and again after SIGTERM. Zero means DefaultCloseGrace.
	CloseGrace time.Duration

	// Guard ends what is left of the child should this process be killed; nil means
	// nobody.
	Guard Guard
}

// A Guard ends the process groups that this process has started and can't end itself.
type Guard interface {
	// Start calls start, which starts the leader of a group, whose id it returns, and
	// who reads from stdin. An error that is not start's says that nothing may be
	// started any more.
	Start(stdin *os.File, start func() (leader int, err error)) error
	// Ended says that nothing is left of a group.
	Ended(leader int)
}

// noGuard is what there is where nobody needs one.
type noGuard struct{}

func (noGuard) Start(_ *os.File, start func() (int, error)) error {
	_, err := start()
	return err
}

func (noGuard) Ended(int) {}

// An ExitError says how a child ended that was not asked to, or not well.
type ExitError struct {
	Name   string
	Status string   // "exit status 1", "signal: killed"
	Stderr []string // its last lines on standard error, oldest first; bounded
}

func (e *ExitError) Error() string {
	msg := e.Public()
	if len(e.Stderr) > 0 {
		msg += fmt.Sprintf("; its last lines on standard error: %q", e.Stderr)
	}
	return msg
}

// Public returns how the child ended, without what it wrote.
func (e *ExitError) Public() string { return fmt.Sprintf("server %s ended: %s", e.Name, e.Status) }

// A Command is a Conn to a child process: one message per line on its standard
// input and output. Lines on its standard output that can't be messages are
// logged and skipped, its standard error is logged.
//
// Spec: 2025-11-25, basic/transports, stdio.
type Command struct {
	// Set by StartCommand, read-only after.
	name       string
	opts       CommandOptions
	log        *slog.Logger
	cmd        *exec.Cmd
	stdin      *os.File
	stdout     *os.File
	stderr     *os.File
	stderrTail *stderrTail
	noise      atomic.Pointer[string] // the first line that was skipped; nil before
	skips      *lineLimit             // of lines that are skipped

	lines *lineReader // owned by Read

	out lineWriter // to its standard input; see [Command.start]

	closing  chan struct{} // closed when Close begins
	once     sync.Once
	closeErr error       // read only after once
	killed   atomic.Bool // the whole group, by Close

	done    chan struct{} // closed when nothing of the child is left
	exitErr error         // how it ended; read only after done
}

// StartCommand starts the child. If it returns an error nothing is left of the
// attempt.
func StartCommand(opts CommandOptions) (*Command, error) {
	if len(opts.Argv) == 0 || opts.Argv[0] == "" {
		return nil, errors.New("transport: StartCommand: empty Argv")
	}
	if opts.MaxMessage < 0 || opts.WriteTimeout < 0 || opts.CloseGrace < 0 {
		return nil, errors.New("transport: StartCommand: negative limit")
	}
	opts.MaxMessage = cmp.Or(opts.MaxMessage, DefaultMaxMessage)
	opts.WriteTimeout = cmp.Or(opts.WriteTimeout, DefaultWriteTimeout)
	opts.CloseGrace = cmp.Or(opts.CloseGrace, DefaultCloseGrace)
	opts.Guard = cmp.Or[Guard](opts.Guard, noGuard{})
	name := cmp.Or(opts.Name, opts.Argv[0])
	c := &Command{
		name:    name,
		opts:    opts,
		log:     cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)).With("upstream", name),
		closing: make(chan struct{}),
		done:    make(chan struct{}),
	}
	c.skips = &lineLimit{log: c.log, source: "standard output"}
	c.stderrTail = &stderrTail{secrets: opts.Secrets, lines: &lineLimit{log: c.log, source: "standard error"}, done: make(chan struct{})}
	if err := c.start(); err != nil {
		return nil, fmt.Errorf("starting server %s: %w", name, err)
	}
	return c, nil
}

// start runs the child and the two goroutines that attend to it, which end with
// it: one reads its standard error, the other waits for its end.
func (c *Command) start() error {
	c.cmd = exec.Command(c.opts.Argv[0], c.opts.Argv[1:]...)
	c.cmd.Dir = c.opts.Dir
	c.cmd.Env = c.opts.ChildEnv()
	newGroup(c.cmd)

	// Pipes of our own rather than exec's: its Wait would close them before
	// everything was read, or wait for whoever else holds them.
	var p pipes
	if err := p.open(); err != nil {
		return err
	}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = p.inR, p.outW, p.errW
	err := c.opts.Guard.Start(p.inR, c.launch)
	closeAll(p.inR, p.outW, p.errW)
	if err != nil {
		closeAll(p.inW, p.outR, p.errR)
		return err
	}
	c.stdin, c.stdout, c.stderr = p.inW, p.outR, p.errR
	c.lines = &lineReader{src: drainer{c.stdout}, limit: c.opts.MaxMessage}
	lock := writeLock{
		turn: make(chan struct{}, 1), timeout: c.opts.WriteTimeout, doing: "writing to server " + c.name,
		closing: c.closing, gone: c.done, goneErr: c.gone,
	}
	c.out = lineWriter{writeLock: lock, f: c.stdin, cut: func() { killGroup(c.cmd.Process.Pid) }}
	c.log.Debug("command started", "pid", c.cmd.Process.Pid)
	go c.stderrTail.drain(c.stderr)
	go c.wait()
	return nil
}

func (c *Command) launch() (leader int, err error) {
	if err := c.cmd.Start(); err != nil {
		return 0, err
	}
	return c.cmd.Process.Pid, nil
}

// Read returns the next message; see [Conn]. When the child ends, Read returns
// what it wrote before and then io.EOF; [Command.Err] says how it ended.
func (c *Command) Read() ([]byte, error) {
	for {
		line, partial, err := c.lines.next()
		if err != nil {
			return nil, c.readError(err)
		}
		if msg, ok := c.message(line, partial); ok {
			return msg, nil
		}
	}
}

// Done returns a channel that is closed once the child has ended and nothing is
// left of it.
func (c *Command) Done() <-chan struct{} { return c.done }

// Err returns nil while the child runs, and if it ended with status 0; else an
// [*ExitError].
func (c *Command) Err() error {
	select {
	case <-c.done:
		return c.exitErr
	default:
		return nil
	}
}

// Close ends the child: it closes its standard input, waits CloseGrace, sends
// SIGTERM to its process group, waits again, then SIGKILL. Where there are no
// such signals it is killed at the second step. Close returns an error if the
// child had to be forced; Err has its exit status.
//
// Spec: 2025-11-25, basic/lifecycle, Shutdown, stdio.
func (c *Command) Close() error {
	c.once.Do(func() {
		close(c.closing)
		c.stdin.Close()
		discarded := make(chan struct{})
		go c.discard(discarded) // ends when the child does, or stdout is closed
		c.closeErr = c.end()
		c.stdout.Close()
		<-discarded
	})
	return c.closeErr
}

// end waits for the child, ever less politely.
func (c *Command) end() error {
	if c.exits(c.opts.CloseGrace) {
		return nil
	}
	if terminateGroup(c.cmd.Process.Pid) && c.exits(c.opts.CloseGrace) {
		c.log.Warn("command was terminated: it took no notice of the end of its input", "grace", c.opts.CloseGrace)
		return nil
	}
	c.killed.Store(true)
	killGroup(c.cmd.Process.Pid)
	if c.exits(c.opts.CloseGrace + 2*leftoverGrace) { // wait has graces of its own
		return fmt.Errorf("closing server %s: it ignored the end of its input and was killed", c.name)
	}
	return fmt.Errorf("closing server %s: process %d does not end", c.name, c.cmd.Process.Pid)
}

// discard reads what the child says while it ends: one that waits for a reader
// of its output does not notice the end of its input.
func (c *Command) discard(done chan<- struct{}) {
	defer close(done)
	io.Copy(io.Discard, c.stdout)
}

// exits reports whether the child ends within grace, and all that it left.
func (c *Command) exits(grace time.Duration) bool {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.done:
		return true
	case <-timer.C:
		return false
	}
}

// wait waits for the child's end, and then for that of all that it left.
func (c *Command) wait() {
	defer close(c.done)
	err := c.cmd.Wait()
	pid := c.cmd.Process.Pid
	// What was killed counts as alive until whoever adopts orphans has looked.
	if !c.killed.Load() && groupAlive(pid) && terminateGroup(pid) && !groupEnds(pid) {
		killGroup(pid)
	}
	c.opts.Guard.Ended(pid) // at once: the number is free
	c.stderrTail.finish(c.stderr)
	c.skips.end()
	c.stdout.SetReadDeadline(time.Now()) // see drainer
	c.exitErr = c.exitError(err)
	if !isClosed(c.closing) {
		level := slog.LevelWarn
		if c.stderrTail.quiet.Load() {
			level = slog.LevelDebug
		}
		c.log.Log(context.Background(), level, "command ended by itself", "pid", pid, "status", c.cmd.ProcessState.String())
	}
}

// groupEnds waits for the group to lose its last process. There is nothing to
// wait on: they are not our children.
func groupEnds(leader int) bool {
	for deadline := time.Now().Add(leftoverGrace); time.Now().Before(deadline); {
		if !groupAlive(leader) {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

func (c *Command) exitError(err error) error {
	if err == nil {
		return nil
	}
	return &ExitError{Name: c.name, Status: err.Error(), Stderr: c.stderrTail.last()}
}

func (c *Command) readError(err error) error {
	var tooLong *TooLongError
	switch {
	case errors.As(err, &tooLong):
		return err
	case isClosed(c.closing):
		return ErrClosed
	case err == io.EOF:
		return io.EOF
	}
	return fmt.Errorf("reading from server %s: %v", c.name, err)
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
