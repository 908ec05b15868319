package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	// DefaultCloseGrace is how long a child may take for each step of its shutdown.
	DefaultCloseGrace = 2 * time.Second

	// leftoverGrace is how long the rest of a child's process group and its standard
	// error may outlive it.
	leftoverGrace = 500 * time.Millisecond

	// leastGrace is how long a child may take to end, from the end of its input, even if
	// there is a hurry.
	leastGrace = 500 * time.Millisecond

	// drainIdle is how long to wait for more output after a child's end, if a descendant outside the
	// process group keeps the output open. What was written before is there at once.
	drainIdle = 100 * time.Millisecond
)

// CommandOptions configure a Command. Argv is required; the zero values of the other
// fields are useful. Negative durations and sizes are errors.
type CommandOptions struct {
	Argv []string // the program, looked up in PATH, and its arguments
	Dir  string   // working directory; empty means that of this process

	// Environ is the environment to inherit from, in the form of os.Environ. The child
	// inherits only the variables that programs need to run (PATH, HOME, USER and the
	// like), so that it does not get the secrets of this process.
	Environ []string
	// Env has additional variables, which override inherited ones.
	Env map[string]string

	Name   string           // the server's name, for the log and for errors; Argv[0] if empty
	Logger *slog.Logger     // logs standard error and skipped output, at a bounded rate; nil means no log
	Quirks *quirks.Recorder // is told of skipped output; nil tells nobody

	// Secrets hides secrets in errors that quote the child's output; nil means none.
	Secrets *redact.Redactor

	MaxMessage int // bytes of a message read; zero means DefaultMaxMessage

	// CloseGrace is how long Close waits for the child to end after closing its
	// standard input, and again after SIGTERM. Zero means DefaultCloseGrace.
	CloseGrace time.Duration
	// Hurry is closed when this process may soon be killed: Close then sends SIGTERM as
	// soon as the child has had 0.5 s, and waits three quarters of CloseGrace after it. Nil
	// means never.
	Hurry <-chan struct{}

	// EndDetached ends the processes that have left the child's process group, once it has
	// ended. Otherwise they are logged. They are found on Linux alone.
	EndDetached bool

	// Guard ends the child's process group if this process is killed; nil means no guard.
	Guard Guard

	// Wrote is told of each line on standard error, cut to 2 KiB, with its secrets. It does not
	// block. Nil tells nobody.
	Wrote func(line string)

	// Quiet is what [Process.SetQuiet] is first: of a child that is started to be probed,
	// whoever probes it reports what it did.
	Quiet bool
}

// A Guard ends the process groups that this process has started if it can't end them
// itself.
type Guard interface {
	// Start calls start, which starts the leader of a group with standard input stdin and
	// the mark in its environment, and returns the leader's id. An error other than that of
	// start means that no more processes may be started.
	Start(stdin *os.File, mark string, start func() (leader int, err error)) error
	// Ended reports that a group has no processes left.
	Ended(leader int)
}

// noGuard is the default Guard.
type noGuard struct{}

func (noGuard) Start(_ *os.File, _ string, start func() (int, error)) error {
	_, err := start()
	return err
}

func (noGuard) Ended(int) {}

// An ExitError reports how a child ended that ended by itself, or with a bad status.
type ExitError struct {
	Name   string
	Status string   // "exit status 1", "signal: killed"
	Stderr []string // lines on standard error that tell most, the last ones among them, oldest first; bounded
}

func (e *ExitError) Error() string {
	msg := e.Public()
	if len(e.Stderr) > 0 {
		msg += fmt.Sprintf("; its last lines on standard error: %q", e.Stderr)
	}
	return msg
}

// Public returns how the child ended, without its output.
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
	mark       string // see newMark
	stdin      *os.File
	stdout     *os.File
	stderr     *os.File
	stderrTail *stderrTail
	noise      atomic.Pointer[string] // the first skipped line; nil if none
	early      int                    // the skipped lines that were not told of; for Read alone
	speaks     bool                   // a message was read; for Read alone
	skips      *lineLimit             // for skipped lines after the first
	stray      strayOutput            // the first skipped line

	lines *lineReader // owned by Read

	out lineWriter // to its standard input; see [Command.start]

	closing  chan struct{} // closed when Close begins
	once     sync.Once
	closeErr error       // read only after once
	killed   atomic.Bool // the whole group, by Close

	done    chan struct{} // closed when the child and its process group have ended
	exitErr error         // how it ended; read only after done
}

// StartCommand starts the child. If it returns an error, no process or file is left
// behind.
func StartCommand(opts CommandOptions) (*Command, error) {
	if len(opts.Argv) == 0 || opts.Argv[0] == "" {
		return nil, errors.New("transport: StartCommand: empty Argv")
	}
	if opts.MaxMessage < 0 || opts.CloseGrace < 0 {
		return nil, errors.New("transport: StartCommand: negative limit")
	}
	opts.MaxMessage = cmp.Or(opts.MaxMessage, DefaultMaxMessage)
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
	c.stderrTail = &stderrTail{secrets: opts.Secrets, wrote: opts.Wrote, lines: &lineLimit{log: c.log, source: "standard error"}, done: make(chan struct{})}
	c.stderrTail.quiet.Store(opts.Quiet)
	c.stray = strayOutput{log: c.log, level: c.stderrTail.level}
	if err := c.start(); err != nil {
		return nil, fmt.Errorf("starting server %s: %w", name, err)
	}
	return c, nil
}

// start starts the child and two goroutines, which end with it: one reads its standard
// error, the other waits for its end.
func (c *Command) start() error {
	c.cmd = exec.Command(c.opts.Argv[0], c.opts.Argv[1:]...)
	c.cmd.Dir = c.opts.Dir
	c.mark = newMark()
	c.cmd.Env = append(c.opts.ChildEnv(), c.mark)
	newGroup(c.cmd)

	// Do not use the pipes of package exec: its Wait would close them before everything
	// is read, or wait for other processes that have them open.
	var p pipes
	if err := p.open(); err != nil {
		return err
	}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = p.inR, p.outW, p.errW
	err := c.opts.Guard.Start(p.inR, c.mark, c.launch)
	closeAll(p.inR, p.outW, p.errW)
	if err != nil {
		closeAll(p.inW, p.outR, p.errR)
		return c.whyNotStarted(err)
	}
	c.stdin, c.stdout, c.stderr = p.inW, p.outR, p.errR
	c.lines = &lineReader{src: drainer{c.stdout, drainUntil}, limit: c.opts.MaxMessage}
	lock := writeLock{
		turn: make(chan struct{}, 1), doing: "writing to server " + c.name,
		closing: c.closing, gone: c.done, goneErr: c.gone,
	}
	c.out = newLineWriter(lock, c.stdin)
	c.log.Debug("command started", "pid", c.cmd.Process.Pid)
	go c.stderrTail.drain(c.stderr)
	go c.wait()
	return nil
}

// whyNotStarted names the working directory if that is missing: the system says the same as of a
// program that is missing, and names that.
func (c *Command) whyNotStarted(err error) error {
	if c.opts.Dir == "" {
		return err
	}
	at, missing := os.Stat(c.opts.Dir)
	switch {
	case missing != nil:
		return &fs.PathError{Op: "chdir", Path: c.opts.Dir, Err: errors.Unwrap(missing)}
	case !at.IsDir():
		return &fs.PathError{Op: "chdir", Path: c.opts.Dir, Err: errors.New("it is no folder")}
	}
	return err
}

func (c *Command) launch() (leader int, err error) {
	if err := c.cmd.Start(); err != nil {
		return 0, err
	}
	return c.cmd.Process.Pid, nil
}

// Read returns the next message; see [Conn]. When the child ends, Read returns the output
// that it wrote before, and then io.EOF; [Command.Err] returns how it ended.
func (c *Command) Read() ([]byte, error) {
	for {
		line, partial, err := c.lines.next()
		if err == io.EOF {
			c.skips.end() // what the child wrote before its end has been read by now
			c.stray.end()
		}
		if err != nil {
			return nil, c.readError(err)
		}
		if msg, ok := c.message(line, partial); ok {
			return msg, nil
		}
	}
}

// Done returns a channel that is closed when the child and its process group have ended.
func (c *Command) Done() <-chan struct{} { return c.done }

// Err returns nil while the child runs or if it ended with status 0, and else an
// [*ExitError].
func (c *Command) Err() error {
	select {
	case <-c.done:
		return c.exitErr
	default:
		return nil
	}
}

// Close ends the child: it closes its standard input, waits CloseGrace, sends SIGTERM to
// its process group, waits again, then SIGKILL; sooner if there is a Hurry. On systems without these signals it kills
// the child in the second step. Close returns an error if it had to kill the child; Err
// has the exit status.
//
// Spec: 2025-11-25, basic/lifecycle, Shutdown, stdio.
func (c *Command) Close() error {
	c.once.Do(func() {
		close(c.closing)
		c.stdin.Close()
		discarded := make(chan struct{})
		go c.discard(discarded) // ends when the child does, or stdout is closed
		c.closeErr = c.end()
		c.out.join()
		c.stdout.Close()
		<-discarded
		c.skips.end()
		c.stray.end()
		c.reportDetached()
	})
	return c.closeErr
}

// end waits for the child, and sends SIGTERM and SIGKILL if it does not end.
func (c *Command) end() error {
	least := min(leastGrace, c.opts.CloseGrace)
	if c.exits(least, nil) || c.exits(c.opts.CloseGrace-least, c.opts.Hurry) {
		return nil
	}
	grace := c.opts.CloseGrace
	if wake.Closed(c.opts.Hurry) {
		grace -= grace / 4
	}
	if terminateGroup(c.cmd.Process.Pid) && c.exits(grace, nil) {
		c.log.Warn("command was terminated: it did not end at the end of its input", "grace", c.opts.CloseGrace)
		return nil
	}
	c.killed.Store(true)
	killGroup(c.cmd.Process.Pid)
	if c.exits(c.opts.CloseGrace+2*leftoverGrace, nil) { // wait has its own time-outs
		return fmt.Errorf("closing server %s: it ignored the end of its input and was killed", c.name)
	}
	return fmt.Errorf("closing server %s: process %d does not end", c.name, c.cmd.Process.Pid)
}

// discard reads the child's output while it ends, because a child that is blocked in a
// write does not notice the end of its input.
func (c *Command) discard(done chan<- struct{}) {
	defer close(done)
	io.Copy(io.Discard, c.stdout)
}

// exits reports whether the child and its process group end within grace, and before hurry
// is closed.
func (c *Command) exits(grace time.Duration, hurry <-chan struct{}) bool {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.done:
		return true
	case <-timer.C:
	case <-hurry:
	}
	return wake.Closed(c.done)
}

// wait waits for the end of the child, and then for the rest of its process group.
func (c *Command) wait() {
	defer close(c.done)
	err := c.cmd.Wait()
	pid := c.cmd.Process.Pid
	// A killed process counts as alive until its new parent has waited for it.
	if !c.killed.Load() && groupAlive(pid) && terminateGroup(pid) && !groupEnds(pid) {
		killGroup(pid)
	}
	c.opts.Guard.Ended(pid) // at once, because the id is free
	c.stderrTail.finish(c.stderr)
	c.stdout.SetReadDeadline(time.Now()) // see drainer
	c.exitErr = c.exitError(err)
	if !wake.Closed(c.closing) {
		level := slog.LevelWarn
		if c.stderrTail.quiet.Load() {
			level = slog.LevelDebug
		}
		c.log.Log(context.Background(), level, "command ended by itself", "pid", pid, "status", c.cmd.ProcessState.String())
	}
}

// groupEnds polls until the group has no processes left. They are not children of this
// process, so it can't wait for them.
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
	return &ExitError{Name: c.name, Status: err.Error(), Stderr: c.stderrTail.telling()}
}

func (c *Command) readError(err error) error {
	switch {
	case errors.As(err, new(*TooLongError)):
		return err
	case wake.Closed(c.closing):
		return ErrClosed
	case err == io.EOF:
		return io.EOF
	}
	return fmt.Errorf("reading from server %s: %v", c.name, err)
}
