package transport

import (
	"os/exec"
	"strconv"
	"syscall"
)

// newGroup keeps a console's Ctrl-C from cmd, so that we end it ourselves.
func newGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// terminateGroup does nothing: Windows has no signal that programs without a
// window heed. It reports whether waiting is of use.
func terminateGroup(leader int) bool { return false }

// killGroup ends the leader and its descendants. Descendants can be found only
// while their parents live, so nothing happens once the leader has exited.
func killGroup(leader int) {
	exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(leader)).Run()
}

// groupAlive reports that there is nothing left that could be ended.
func groupAlive(leader int) bool { return false }
