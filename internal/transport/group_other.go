//go:build !unix && !windows

package transport

import (
	"os"
	"os/exec"
)

// Without process groups only the child itself can be ended.

func newGroup(*exec.Cmd) {}

func terminateGroup(leader int) bool { return false }

func killGroup(leader int) {
	if p, err := os.FindProcess(leader); err == nil {
		p.Kill()
	}
}

func groupAlive(leader int) bool { return false }
