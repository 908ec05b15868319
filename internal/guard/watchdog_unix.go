//go:build unix

package guard

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/guard/process"
)

const (
	// tellTime bounds the time to send a message to the process, which reads at once
	// unless it is stopped.
	tellTime = time.Second
	// soon is the lifetime of a process below which another one is assumed to end as
	// well.
	soon = time.Second
)

// self is this program, even if its file has been replaced.
const self = "/proc/self/exe"

// A watchdog is the process that outlives this one, and the state that was sent to it.
type watchdog struct {
	cmd   *exec.Cmd
	pipe  *os.File // its standard input
	begun time.Time
	done  chan struct{} // closed after Wait has returned

	groups map[int]bool      // ids of running groups
	starts map[uint64]string // marks of commands that are being started, by the inodes of their pipes
}

// newWatchdog starts the process. It calls lost when the process has ended.
func newWatchdog(lost func(*watchdog, error)) (*watchdog, error) {
	r, pipe, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	w := &watchdog{cmd: program(), pipe: pipe, begun: time.Now(), done: make(chan struct{}), groups: make(map[int]bool), starts: make(map[uint64]string)}
	w.cmd.Stdin = r // inherit nothing else: a client may wait until all copies of our standard output are closed
	err = errors.Join(w.cmd.Start(), r.Close())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the guard: %w", err), pipe.Close())
	}
	go w.wait(lost) // ends with the process
	return w, nil
}

// program returns the command that runs this program as the watchdog. The watchdog has
// its own session, so that signals to our process group or to that of the terminal do not
// reach it.
func program() *exec.Cmd {
	path := self
	if _, err := os.Stat(path); err != nil {
		if path, err = os.Executable(); err != nil {
			path = os.Args[0]
		}
	}
	cmd := exec.Command(path, process.Word)
	cmd.Args[0] = os.Args[0]
	cmd.Env = []string{"GOMAXPROCS=1"} // it needs nothing else
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

func (w *watchdog) wait(lost func(*watchdog, error)) {
	defer close(w.done)
	lost(w, w.cmd.Wait())
}

// lasted reports whether the process ran for at least soon.
func (w *watchdog) lasted() bool { return time.Since(w.begun) >= soon }

// starting announces the start of a process.
func (w *watchdog) starting(pipe uint64, mark string) error {
	w.starts[pipe] = mark
	return w.write(starting(pipe, mark))
}

func starting(pipe uint64, mark string) string {
	return fmt.Sprintf("%s %d %s\n", process.Starting, pipe, mark)
}

// settled reports the result of that start: the process is the leader of a group, or
// could not be started.
func (w *watchdog) settled(pipe uint64, leader int, started bool) error {
	delete(w.starts, pipe)
	var lines string
	if started {
		w.groups[leader] = true
		lines = line(process.Group, uint64(leader))
	}
	return w.write(lines + line(process.Settled, pipe))
}

// ended reports that a group has no processes left.
func (w *watchdog) ended(leader int) error {
	delete(w.groups, leader)
	return w.say(process.Ended, uint64(leader))
}

// inherit sends the state of another watchdog to the process.
func (w *watchdog) inherit(from *watchdog) error {
	w.groups, w.starts = from.groups, from.starts
	var lines strings.Builder
	for pipe, mark := range w.starts {
		lines.WriteString(starting(pipe, mark))
	}
	for leader := range w.groups {
		lines.WriteString(line(process.Group, uint64(leader)))
	}
	return w.write(lines.String())
}

func (w *watchdog) say(word string, n uint64) error { return w.write(line(word, n)) }

func line(word string, n uint64) string { return fmt.Sprintf("%s %d\n", word, n) }

func (w *watchdog) write(lines string) error {
	if err := w.pipe.SetWriteDeadline(time.Now().Add(tellTime)); err != nil {
		return err
	}
	_, err := w.pipe.WriteString(lines)
	return err
}

// abandon closes the pipe of a process that has ended.
func (w *watchdog) abandon() { _ = w.pipe.Close() } // nothing is lost

// close ends the process, which first ends the remaining groups.
func (w *watchdog) close() {
	_ = w.pipe.Close() // the process ends when its input does
	late := time.NewTimer(process.Grace + tellTime)
	defer late.Stop()
	select {
	case <-w.done:
	case <-late.C:
		_ = w.cmd.Process.Kill() // it may have ended by now
		<-w.done
	}
}

// inode returns the number that identifies a pipe.
func inode(pipe *os.File) uint64 {
	info, err := pipe.Stat()
	if err != nil {
		return 0
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Ino)
	}
	return 0
}
