package transport

import (
	"os/exec"
	"strconv"
	"syscall"
)

// newGroup excludes cmd from Ctrl-C on a console, so that this process ends it.
func newGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// terminateGroup does nothing: Windows has no such signal for programs without a window.
// It reports whether it is useful to wait.
func terminateGroup(leader int) bool { return false }

// killGroup ends the leader and its descendants. Descendants can be found only while
// their parents run, so it does nothing after the leader has exited.
func killGroup(leader int) {
	exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(leader)).Run()
}

// groupAlive reports false, because there is nothing left that could be ended.
func groupAlive(leader int) bool { return false }
