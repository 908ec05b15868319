package process

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// begun returns when a process began, in the system's own unit, or nothing if there is
// none: a number that was given to another process tells by it.
func begun(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	const starttime = 22 // counted from 1, as proc_pid_stat(5) does
	_, rest, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	fields := bytes.Fields(rest) // from the third on
	if len(fields) < starttime-2 {
		return ""
	}
	return string(fields[starttime-3])
}

// readersOf returns the groups of the processes that hold one of the pipes: mcpbridge
// was killed after it had started them and before it could say so. Its own half of a
// fork is not among them, since that holds this process's standard input open too.
func readersOf(pipes map[uint64]bool) map[int]bool {
	groups := make(map[int]bool)
	if len(pipes) == 0 {
		return groups
	}
	for _, name := range names("/proc") {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() || !holds("/proc/"+name+"/fd", pipes) {
			continue
		}
		if leader, err := syscall.Getpgid(pid); err == nil && leader > 1 {
			groups[leader] = true
		}
	}
	return groups
}

// holds reports whether one of the open files in dir is one of the pipes.
func holds(dir string, pipes map[uint64]bool) bool {
	for _, fd := range names(dir) {
		target, err := os.Readlink(dir + "/" + fd)
		if err != nil || len(target) < len("pipe:[]") || target[:len("pipe:[")] != "pipe:[" {
			continue
		}
		inode, err := strconv.ParseUint(target[len("pipe:["):len(target)-1], 10, 63)
		if err == nil && pipes[inode] {
			return true
		}
	}
	return false
}

// names returns what is in a folder, nothing if it can't be read.
func names(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	list, _ := f.Readdirnames(-1) // as far as it can be read
	_ = f.Close()
	return list
}
