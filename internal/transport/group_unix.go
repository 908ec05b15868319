//go:build unix

package transport

import (
	"os/exec"
	"syscall"
)

// newGroup makes cmd the leader of a process group of its own, so that what it
// starts can be ended with it, and a terminal's Ctrl-C does not end it before
// us.
func newGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// A group's id is its leader's, and is not given to another process while the
// group has members.

// terminateGroup asks every process of the leader's group to end. It reports
// whether there was any.
func terminateGroup(leader int) bool { return syscall.Kill(-leader, syscall.SIGTERM) == nil }

// killGroup ends every process of the leader's group.
func killGroup(leader int) { syscall.Kill(-leader, syscall.SIGKILL) }

// groupAlive reports whether the leader's group has members.
func groupAlive(leader int) bool { return syscall.Kill(-leader, 0) == nil }
