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

// Word is the argument that makes the program the watchdog.
const Word = "process-guard"

// Grace is the time between SIGTERM and SIGKILL.
const Grace = time.Second

const (
	// pause is the interval at which groups are checked after SIGTERM.
	pause = 20 * time.Millisecond
	// maxLine bounds a line of standard input: a word, a number, and a mark.
	maxLine = 256
)

func init() {
	if len(os.Args) == 2 && os.Args[1] == Word {
		run(os.Stdin, Grace)
		syscall.Exit(0)
	}
}

// The messages on standard input: one of these words and a number.
const (
	Starting = "starting" // a process that reads from the pipe with that inode is about to be started; behind it, the entry of its environment that no other command has
	Settled  = "settled"  // it was started, or could not be started
	Group    = "group"    // a process group with that id is running
	Ended    = "ended"    // it has no processes left
)

// A tracker holds the state of the process.
type tracker struct {
	groups   map[int]string    // by id: the leader's start time, empty if unknown
	starting map[uint64]string // marks, by the inodes of pipes
}

// run reads messages until the end of in, and then ends the remaining groups.
func run(in *os.File, grace time.Duration) {
	ignoreSignals()
	p := &tracker{groups: make(map[int]string), starting: make(map[uint64]string)}
	buf := make([]byte, 0, 4096)
	for {
		n, err := in.Read(buf[len(buf):cap(buf)])
		if err != nil {
			break
		}
		buf = p.receive(buf[:len(buf)+n])
	}
	p.end(grace)
}

// receive handles every complete line, and returns the rest in the same buffer.
func (p *tracker) receive(buf []byte) []byte {
	rest := buf
	for {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		if !whole {
			break
		}
		rest = after
		p.handle(line)
	}
	if len(rest) > maxLine {
		rest = nil
	}
	return append(buf[:0], rest...)
}

func (p *tracker) handle(line []byte) {
	word, rest, _ := bytes.Cut(line, []byte(" "))
	number, mark, _ := bytes.Cut(rest, []byte(" "))
	n, err := strconv.ParseUint(string(number), 10, 63)
	if err != nil {
		return
	}
	switch string(word) {
	case Starting:
		p.starting[n] = string(mark)
	case Settled:
		delete(p.starting, n)
	case Group:
		if n > 1 { // a signal to group 1 would reach every process
			p.groups[int(n)] = begun(int(n))
		}
	case Ended:
		delete(p.groups, int(n))
	}
}

// end sends SIGTERM to every group, and SIGKILL to the groups that still run after grace.
func (p *tracker) end(grace time.Duration) {
	for leader := range startedOf(p.starting) {
		p.groups[leader] = begun(leader)
	}
	p.signal(syscall.SIGTERM)
	for late := time.Now().Add(grace); len(p.groups) > 0 && time.Now().Before(late); time.Sleep(pause) {
		p.signal(0)
	}
	p.signal(syscall.SIGKILL)
}

// signal sends sig to every group, and removes the groups that have ended.
func (p *tracker) signal(sig syscall.Signal) {
	for leader, was := range p.groups {
		now := begun(leader)
		reused := was != "" && now != "" && was != now
		if reused || !signalGroup(leader, sig) {
			delete(p.groups, leader)
		}
	}
}

// ignoreSignals ignores the signals that end mcpbridge, and leaves the working directory,
// whose file system could not be unmounted otherwise.
func ignoreSignals() {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	_ = os.Chdir("/") // not essential
}

// signalGroup sends sig to a process group, and reports whether the group exists.
func signalGroup(leader int, sig syscall.Signal) bool {
	return !errors.Is(syscall.Kill(-leader, sig), syscall.ESRCH)
}
