//go:build linux

package endings

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// left returns the processes that carry the mark, by their ids. One that has ended and
// that nobody has waited for carries nothing.
func left(mark string) map[int]string {
	found := make(map[int]string)
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		line, _ := os.ReadFile(dir + "/cmdline") // it may have ended meanwhile
		env, _ := os.ReadFile(dir + "/environ")
		if pid != os.Getpid() && (bytes.Contains(line, []byte(mark)) || bytes.Contains(env, []byte(mark))) {
			found[pid] = strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " ")
		}
	}
	return found
}

func killLeft(mark string) {
	for pid := range left(mark) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
	}
}
