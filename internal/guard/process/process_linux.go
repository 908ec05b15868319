package process

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// begun returns the start time of a process in clock ticks, or "" if there is no such
// process. It differs if the id was reused for another process.
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

// startedOf returns the groups of the processes that have one of the pipes open, or one of
// the marks in their environment: mcpbridge was killed after it had started them and before
// it could report that. The leader, which reads from the pipe, may have ended since, with
// its input, and have left others. A fork of mcpbridge that has not yet executed the command
// is not among them, because it would keep this process's standard input open.
func startedOf(starting map[uint64]string) map[int]bool {
	groups := make(map[int]bool)
	if len(starting) == 0 {
		return groups
	}
	for _, name := range names("/proc") {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() || !holds("/proc/"+name+"/fd", starting) && !bears("/proc/"+name, starting) {
			continue
		}
		if leader, err := syscall.Getpgid(pid); err == nil && leader > 1 {
			groups[leader] = true
		}
	}
	return groups
}

// holds reports whether one of the open files in dir is one of the pipes.
func holds(dir string, pipes map[uint64]string) bool {
	for _, fd := range names(dir) {
		target, err := os.Readlink(dir + "/" + fd)
		if err != nil || len(target) < len("pipe:[]") || target[:len("pipe:[")] != "pipe:[" {
			continue
		}
		inode, err := strconv.ParseUint(target[len("pipe:["):len(target)-1], 10, 63)
		if _, has := pipes[inode]; err == nil && has {
			return true
		}
	}
	return false
}

// bears reports whether the process of a folder of /proc has one of the marks in its
// environment, which is empty for a moment while it becomes another program.
func bears(dir string, marks map[uint64]string) bool {
	var env []byte
	for range 20 {
		var err error
		if env, err = os.ReadFile(dir + "/environ"); err != nil || len(env) > 0 {
			break
		}
		if _, err := os.Readlink(dir + "/exe"); err != nil {
			return false // it has ended, or belongs to the kernel
		}
		time.Sleep(time.Millisecond)
	}
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		for _, mark := range marks {
			if mark != "" && string(entry) == mark {
				return true
			}
		}
	}
	return false
}

// names returns the names in a folder, or nothing if it can't be read.
func names(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	list, _ := f.Readdirnames(-1) // the names up to an error, if any
	_ = f.Close()
	return list
}
