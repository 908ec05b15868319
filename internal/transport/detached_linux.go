package transport

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// maxCommandLine bounds what is read of a command line.
const maxCommandLine = 200

// findDetached returns the processes of this user that have the mark in their environment.
// Those that have another environment are not found.
func findDetached(mark string) (found []detached) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1) // those up to an error, if there is one
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && bears(pid, mark) {
			line, _ := os.ReadFile("/proc/" + name + "/cmdline") // it may have ended by now
			line = bytes.ReplaceAll(bytes.TrimRight(line, "\x00"), []byte{0}, []byte{' '})
			found = append(found, detached{pid, redact.Cut(string(line), maxCommandLine)})
		}
	}
	return found
}

// bears reports whether a process runs and has the mark in its environment.
func bears(pid int, mark string) bool {
	env := environ("/proc/" + strconv.Itoa(pid))
	return bytes.Contains(append([]byte{0}, env...), []byte("\x00"+mark+"\x00"))
}

// environ returns the environment of the process of a folder of /proc; nil if it can't be read.
// That of a process is empty for a moment while it becomes another program, which a busy machine
// draws out.
func environ(of string) []byte {
	for range 100 {
		env, err := os.ReadFile(of + "/environ")
		if err != nil || len(env) > 0 {
			return env
		}
		if _, err := os.Readlink(of + "/exe"); err != nil {
			return nil // it has ended, or belongs to the kernel
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// endDetached sends SIGTERM to processes with the mark, and SIGKILL to those that have it
// after a while. An id whose process has no mark has been reused.
func endDetached(left []detached, mark string) {
	signalDetached(left, mark, syscall.SIGTERM)
	for late := time.Now().Add(detachedGrace); time.Now().Before(late); time.Sleep(10 * time.Millisecond) {
		left = slices.DeleteFunc(left, func(d detached) bool { return !bears(d.pid, mark) })
		if len(left) == 0 {
			break
		}
	}
	signalDetached(findDetached(mark), mark, syscall.SIGKILL) // and what they have started since
}

func signalDetached(left []detached, mark string, sig syscall.Signal) {
	for _, d := range left {
		if bears(d.pid, mark) {
			_ = syscall.Kill(d.pid, sig) // it may have ended by now
		}
	}
}
