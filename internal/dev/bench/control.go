//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"
)

// A control is the child's end of the pipe to the parent: a line asks, a line of
// JSON answers. The child's life is the pipe's.
type control struct {
	in       *bufio.Scanner
	out      io.Writer
	commands map[string]func(args []string) (any, error)
	profile  *os.File // of a CPU profile in progress; else nil
}

// An answer is what a child writes on a line.
type answer struct {
	Err   string          `json:"err,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

func newControl(in io.Reader, out io.Writer) *control {
	c := &control{in: bufio.NewScanner(in), out: out}
	c.commands = map[string]func([]string) (any, error){
		"usage":   func([]string) (any, error) { return readUsage() },
		"settle":  settle,
		"profile": c.startProfile,
		"stop":    c.stopProfile,
		"heap":    writeHeap,
	}
	return c
}

// run tells the parent where the child is to be found, and serves it to the end.
func (c *control) run(addr string) error {
	if err := c.reply(addr, nil); err != nil {
		return err
	}
	for c.in.Scan() {
		args := strings.Fields(c.in.Text())
		do, ok := c.commands[args[0]]
		if !ok {
			return fmt.Errorf("no command %q", args[0])
		}
		if err := c.reply(do(args[1:])); err != nil {
			return err
		}
	}
	return c.in.Err()
}

func (c *control) reply(v any, err error) error {
	var a answer
	if err == nil {
		a.Value, err = json.Marshal(v)
	}
	if err != nil {
		a.Err = err.Error()
	}
	line, err := json.Marshal(a)
	if err != nil {
		return err
	}
	_, err = c.out.Write(append(line, '\n'))
	return err
}

// serve serves h on a listener of its own until the parent is gone.
func (c *control) serve(l net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(l) }() // ends with the process
	return c.run(l.Addr().String())
}

// A usage is what a process has taken so far.
type usage struct {
	CPU        int64 `json:"cpu"` // nanoseconds, in user and kernel mode
	RSS        int64 `json:"rss"` // bytes
	InUse      int64 `json:"in_use"`
	Goroutines int   `json:"goroutines"`
}

func readUsage() (usage, error) {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return usage{}, err
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	rss, err := readRSS()
	return usage{
		CPU:        ru.Utime.Nano() + ru.Stime.Nano(),
		RSS:        rss,
		InUse:      int64(m.HeapAlloc + m.StackInuse),
		Goroutines: runtime.NumGoroutine(),
	}, err
}

func readRSS() (int64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0, err
	}
	return resident * int64(os.Getpagesize()), nil
}

// settle leaves what is in use, and nothing that only waits to be collected.
func settle([]string) (any, error) {
	runtime.GC() // twice: pools keep their contents over the first
	debug.FreeOSMemory()
	return readUsage()
}

func (c *control) startProfile(args []string) (any, error) {
	f, err := os.Create(args[0])
	if err != nil {
		return nil, err
	}
	c.profile = f
	return nil, pprof.StartCPUProfile(f)
}

func (c *control) stopProfile([]string) (any, error) {
	pprof.StopCPUProfile()
	return nil, c.profile.Close()
}

func writeHeap(args []string) (any, error) {
	f, err := os.Create(args[0])
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return nil, pprof.Lookup("heap").WriteTo(f, 0)
}
