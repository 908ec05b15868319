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
	// tellTime bounds a message to the process: it reads at once, unless it was stopped.
	tellTime = time.Second
	// soon is when the process's end shows that another would end, too.
	soon = time.Second
)

// self is this program, even where its file was replaced meanwhile.
const self = "/proc/self/exe"

// A keeper is the process that outlives this one, and what it was told.
type keeper struct {
	cmd   *exec.Cmd
	pipe  *os.File // its standard input
	begun time.Time
	done  chan struct{} // closed when it has been waited for

	groups map[int]bool
	marks  map[uint64]bool
}

// newKeeper starts the process. lost is called when it ends by itself.
func newKeeper(lost func(*keeper, error)) (*keeper, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	k := &keeper{cmd: program(), pipe: w, begun: time.Now(), done: make(chan struct{}), groups: make(map[int]bool), marks: make(map[uint64]bool)}
	k.cmd.Stdin = r // and nothing else of ours: a client waits for the end of our output
	err = errors.Join(k.cmd.Start(), r.Close())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the guard: %w", err), w.Close())
	}
	go k.wait(lost) // ends with the process
	return k, nil
}

// program is this one, as the process. It has a session of its own: what is sent to our
// process group, or to that of a terminal, does not reach it.
func program() *exec.Cmd {
	path := self
	if _, err := os.Stat(path); err != nil {
		if path, err = os.Executable(); err != nil {
			path = os.Args[0]
		}
	}
	cmd := exec.Command(path, process.Word)
	cmd.Args[0] = os.Args[0]
	cmd.Env = []string{"GOMAXPROCS=1"} // it has no business with the rest
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

func (k *keeper) wait(lost func(*keeper, error)) {
	defer close(k.done)
	lost(k, k.cmd.Wait())
}

// lasted reports whether the process ran for a while before its end.
func (k *keeper) lasted() bool { return time.Since(k.begun) >= soon }

// starting says that a process is about to be started.
func (k *keeper) starting(mark uint64) error {
	k.marks[mark] = true
	return k.say(process.Starting, mark)
}

// settled says that it was started, as the leader of a group, or not.
func (k *keeper) settled(mark uint64, leader int, started bool) error {
	delete(k.marks, mark)
	var lines string
	if started {
		k.groups[leader] = true
		lines = line(process.Group, uint64(leader))
	}
	return k.write(lines + line(process.Settled, mark))
}

// ended says that nothing is left of a group.
func (k *keeper) ended(leader int) error {
	delete(k.groups, leader)
	return k.say(process.Ended, uint64(leader))
}

// inherit tells the process what another was told.
func (k *keeper) inherit(from *keeper) error {
	k.groups, k.marks = from.groups, from.marks
	var lines strings.Builder
	for mark := range k.marks {
		lines.WriteString(line(process.Starting, mark))
	}
	for leader := range k.groups {
		lines.WriteString(line(process.Group, uint64(leader)))
	}
	return k.write(lines.String())
}

func (k *keeper) say(word string, n uint64) error { return k.write(line(word, n)) }

func line(word string, n uint64) string { return fmt.Sprintf("%s %d\n", word, n) }

func (k *keeper) write(lines string) error {
	if err := k.pipe.SetWriteDeadline(time.Now().Add(tellTime)); err != nil {
		return err
	}
	_, err := k.pipe.WriteString(lines)
	return err
}

// abandon gives up what a process that has ended was told by.
func (k *keeper) abandon() { _ = k.pipe.Close() } // nobody reads it

// close ends the process, which first ends the groups that are left.
func (k *keeper) close() {
	_ = k.pipe.Close() // that is the sign
	late := time.NewTimer(process.Grace + tellTime)
	defer late.Stop()
	select {
	case <-k.done:
	case <-late.C:
		_ = k.cmd.Process.Kill() // it may have ended by now
		<-k.done
	}
}

// inode tells a pipe from all others.
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
