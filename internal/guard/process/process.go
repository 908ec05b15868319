//go:build unix

package process

import (
	"bytes"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// Word is the argument that makes the program this process.
const Word = "process-guard"

// Grace is how long groups may take to end that were sent SIGTERM.
const Grace = time.Second

const (
	// pause is the time between two looks at groups that are to end.
	pause = 20 * time.Millisecond
	// maxLine bounds a line on standard input: a word and a number.
	maxLine = 64
)

func init() {
	if len(os.Args) == 2 && os.Args[1] == Word {
		run(os.Stdin, Grace)
		syscall.Exit(0)
	}
}

// The words that mcpbridge says on standard input, a number after each.
const (
	Starting = "starting" // a process that reads from the pipe of that inode is about to be started
	Settled  = "settled"  // it has been, or can't be
	Group    = "group"    // a process group of that id runs
	Ended    = "ended"    // nothing is left of it
)

// A watch is what the process knows.
type watch struct {
	groups   map[int]string  // when the leader began, empty if that can't be told; by id
	starting map[uint64]bool // inodes of pipes
}

// run hears of groups until the end of in, and ends those that are left.
func run(in *os.File, grace time.Duration) {
	shield()
	w := &watch{groups: make(map[int]string), starting: make(map[uint64]bool)}
	buf := make([]byte, 0, 4096)
	for {
		n, err := in.Read(buf[len(buf):cap(buf)])
		if err != nil {
			break
		}
		buf = w.take(buf[:len(buf)+n])
	}
	w.end(grace)
}

// take hears every whole line, and returns the rest in the same buffer.
func (w *watch) take(buf []byte) []byte {
	rest := buf
	for {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		if !whole {
			break
		}
		rest = after
		w.hear(line)
	}
	if len(rest) > maxLine {
		rest = nil
	}
	return append(buf[:0], rest...)
}

func (w *watch) hear(line []byte) {
	word, number, _ := bytes.Cut(line, []byte(" "))
	n, err := strconv.ParseUint(string(number), 10, 63)
	if err != nil {
		return
	}
	switch string(word) {
	case Starting:
		w.starting[n] = true
	case Settled:
		delete(w.starting, n)
	case Group:
		if n > 1 { // a signal to group 1 would reach every process
			w.groups[int(n)] = begun(int(n))
		}
	case Ended:
		delete(w.groups, int(n))
	}
}

// end asks every group to end, and after grace makes those that have not.
func (w *watch) end(grace time.Duration) {
	for leader := range readersOf(w.starting) {
		w.groups[leader] = begun(leader)
	}
	w.signal(syscall.SIGTERM)
	for late := time.Now().Add(grace); len(w.groups) > 0 && time.Now().Before(late); time.Sleep(pause) {
		w.signal(0)
	}
	w.signal(syscall.SIGKILL)
}

// signal sends sig to every group, and forgets those that are gone.
func (w *watch) signal(sig syscall.Signal) {
	for leader, was := range w.groups {
		now := begun(leader)
		reused := was != "" && now != "" && was != now
		if reused || !signalGroup(leader, sig) {
			delete(w.groups, leader)
		}
	}
}

// shield keeps from this process what is meant to end mcpbridge, which it outlives, and
// holds no folder that somebody wants to unmount.
func shield() {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	_ = os.Chdir("/") // it is a courtesy
}

// signalGroup sends sig to a process group, and reports whether there is one.
func signalGroup(leader int, sig syscall.Signal) bool {
	return !errors.Is(syscall.Kill(-leader, sig), syscall.ESRCH)
}
