//go:build !linux

package process

import "os/exec"

// start starts a command. On Linux it ends with this process, however that ends.
func start(cmd *exec.Cmd) error { return cmd.Start() }
