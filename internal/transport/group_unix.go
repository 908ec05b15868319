//go:build unix

package transport

import (
	"os/exec"
	"syscall"
)

// newGroup makes cmd the leader of its own process group, so that the processes it starts
// can be ended with it, and Ctrl-C on a terminal does not end it before this process.
func newGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// A group's id is its leader's, and is not given to another process while the
// group has members.

// terminateGroup sends SIGTERM to the leader's group. It reports whether the group has
// processes.
func terminateGroup(leader int) bool { return syscall.Kill(-leader, syscall.SIGTERM) == nil }

// killGroup sends SIGKILL to the leader's group.
func killGroup(leader int) { syscall.Kill(-leader, syscall.SIGKILL) }

// groupAlive reports whether the leader's group has members.
func groupAlive(leader int) bool { return syscall.Kill(-leader, 0) == nil }
